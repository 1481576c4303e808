"""Why containers ended or do not start: exit codes, signals, reasons and last messages."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.views.pod_failures import failure_lines, job_lines


def pod(name: str, state: dict[str, Any], last: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    container = {"name": "main", "state": state, "lastState": last or {}, "restartCount": status.pop("restarts", 0)}
    return {"metadata": {"name": name}, "status": {"containerStatuses": [container], **status}}


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        ({"exitCode": 42}, "exited with code 42"),
        ({"exitCode": 137, "reason": "OOMKilled"}, "exited with code 137 (SIGKILL, OOMKilled)"),
        ({"exitCode": 139, "reason": "Error"}, "exited with code 139 (SIGSEGV)"),
        ({"exitCode": 1, "message": "CUDA out of memory\n"}, "exited with code 1: CUDA out of memory"),
    ],
)
def test_how_a_container_ended(ended: dict[str, Any], told: str) -> None:
    assert failure_lines([pod("a", {"terminated": ended})]) == [f"a: container main {told}"]


def test_a_container_that_succeeded_is_no_failure() -> None:
    assert failure_lines([pod("a", {"terminated": {"exitCode": 0, "reason": "Completed"}})]) == []


def test_pods_that_failed_alike_are_one_line() -> None:
    ended = {"terminated": {"exitCode": 137}}
    assert failure_lines([pod("a", ended), pod("b", ended)]) == [
        "a, b: container main exited with code 137 (SIGKILL)",
    ]


def test_a_restarting_container_tells_how_it_ended_last() -> None:
    waits = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}
    (line,) = failure_lines([pod("a", waits, {"terminated": {"exitCode": 2}}, restarts=5)])
    assert line == "a: container main exited with code 2, 5 restarts"


def test_an_image_that_cannot_be_pulled_is_told() -> None:
    waits = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nosuch:1"'}}
    assert failure_lines([pod("a", waits)]) == [
        'a: container main does not start: ImagePullBackOff: Back-off pulling image "nosuch:1"'
    ]


def test_a_pod_that_the_kubelet_refused_tells_its_reason() -> None:
    refused = {"metadata": {"name": "a"}, "status": {"phase": "Failed", "reason": "UnexpectedAdmissionError"}}
    assert failure_lines([refused]) == ["a: UnexpectedAdmissionError"]


def test_a_job_tells_its_policy_and_its_limit() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too many failures"}
    told = job_lines({"spec": {"backoffLimit": 3}, "status": {"conditions": [failed]}})
    assert told == ["BackoffLimitExceeded: too many failures (backoffLimit 3)"]
    assert job_lines({"status": {"conditions": [{**failed, "status": "False"}]}}) == []
