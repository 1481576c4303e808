"""Which lines of which run a request for a log means, and the refusals of those that mean none."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.streams.log_options import LogOptions, log_options, passed_on
from shoal.embedded.apiserver.streams.log_runs import is_previous

Obj = dict[str, Any]
ENDED = {"terminated": {"exitCode": 1}}


def pod(state: Obj, last: Obj | None = None) -> Obj:
    status = {"name": "main", "state": state, **({"lastState": last} if last else {})}
    return {"metadata": {"name": "p"}, "status": {"containerStatuses": [status]}}


def test_options_are_read_from_the_query() -> None:
    query = {"follow": "true", "timestamps": "1", "tailLines": "5", "sinceTime": "2026-01-01T01:00:00+01:00"}
    found = log_options(query, "p")
    assert found == LogOptions(follow=True, timestamps=True, tail_lines=5, since_time_s=1_767_225_600.0)
    assert found.since_s(0.0) == 1_767_225_600.0
    assert LogOptions(since_seconds=10).since_s(100.0) == 90.0
    assert LogOptions().since_s(100.0) is None


def test_only_what_kubelets_know_is_passed_on() -> None:
    query = {"container": "main", "tailLines": "5", "follow": "true", "insecureSkipTLSVerifyBackend": "true"}
    assert passed_on(query) == {"tailLines": "5", "follow": "true"}


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ({"sinceTime": "2026-01-01T00:00:00Z", "sinceSeconds": "1"}, 422, "at most one of `sinceTime` or"),
        ({"sinceTime": "yesterday"}, 400, 'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00"'),
        ({"sinceTime": "2026-01-01"}, 400, 'parsing time "2026-01-01"'),
        ({"sinceTime": "2026-01-01T00:00:00"}, 400, 'parsing time "2026-01-01T00:00:00"'),
    ],
)
def test_times_that_make_no_sense_are_refused(query: dict[str, str], code: int, words: str) -> None:
    with pytest.raises(ApiError) as caught:
        log_options(query, "p")
    assert caught.value.code == code
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("found", "previous", "is_before"),
    [
        (pod({"running": {}}), False, False),
        (pod(ENDED), False, False),
        (pod({"running": {}}, ENDED), False, False),
        (pod({"running": {}}, ENDED), True, True),
        (pod({"waiting": {"reason": "CrashLoopBackOff"}}, ENDED), False, True),
    ],
)
def test_the_present_run_is_meant_unless_there_is_none(found: Obj, previous: bool, is_before: bool) -> None:
    assert is_previous(found, "main", previous=previous) is is_before


@pytest.mark.parametrize(
    ("found", "previous", "words"),
    [
        (pod({"running": {}}), True, 'previous terminated container "main" in pod "p" not found'),
        (pod({"waiting": {"reason": "ErrImagePull"}}), False, "is waiting to start: image can't be pulled"),
        (pod({"waiting": {"reason": "PodInitializing"}}), False, "is waiting to start: PodInitializing"),
        (pod({}), False, 'container "main" in pod "p" is waiting to start - no logs yet'),
        ({"metadata": {"name": "p"}}, False, 'container "main" in pod "p" is not available'),
    ],
)
def test_a_run_that_there_is_not_is_refused(found: Obj, previous: bool, words: str) -> None:
    with pytest.raises(ApiError) as caught:
        is_previous(found, "main", previous=previous)
    assert caught.value.message.endswith(words)
