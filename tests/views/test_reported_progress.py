"""How far the pods of a job are: unsaved work, the share of the network, and which pod the others wait for."""

from __future__ import annotations

import pytest

from shoal.views.job_progress import JobProgress, ProgressSource, job_progress

START = "2026-01-01T00:00:00Z"
NOW_S = 1_767_225_600.0 + 3600


def of(*pods: dict[str, str]) -> JobProgress:
    sources = []
    for number, words in enumerate(pods):
        said = tuple((f"shoal.dev/{key.replace('_', '-')}", value) for key, value in words.items())
        sources.append(ProgressSource(f"ml/train-{number}", START, said))
    return job_progress(sources, NOW_S)


def test_unsaved_work_is_that_of_the_pod_that_saved_longest_ago() -> None:
    found = of({"last_checkpoint": "2026-01-01T00:50:00Z"}, {"last_checkpoint": "2026-01-01T00:40:00Z"}, {})
    assert found.unsaved_s == 1200
    assert [one.unsaved_s for one in found.pods] == [600, 1200, None]
    assert not found.no_checkpoint


def test_a_pod_that_says_how_often_it_saves_is_believed() -> None:
    assert of({"checkpoint_every": "25m"}).unsaved_s == 600


def test_what_no_pod_reports_is_unknown_with_its_reason() -> None:
    found = of({}, {"progress": "12/100"})
    assert (found.unsaved_s, found.network_share) == (None, None)
    assert "shoal.dev/last-checkpoint" in found.no_checkpoint
    assert "training.communicating()" in found.no_network
    assert "shoal.dev/step-time" in found.no_stragglers
    assert found.pods[1].step == "12/100"


def test_the_rank_that_waits_least_for_the_others_is_the_straggler() -> None:
    fast = {"step_time": "2s", "network_share": "0.5"}
    found = of(fast, fast, fast, {"step_time": "2s", "network_share": "0.1"})
    assert [one.pod for one in found.stragglers] == ["ml/train-3"]
    assert found.network_share == pytest.approx(0.4)
    assert not found.no_stragglers


def test_a_tenth_more_than_the_median_is_no_straggler() -> None:
    found = of(
        *({"step_time": "100ms", "network_share": "0"} for _ in range(2)), {"step_time": "110ms", "network_share": "0"}
    )
    assert found.stragglers == []
    assert not found.no_stragglers


def test_steps_of_equal_time_without_a_share_tell_no_straggler() -> None:
    found = of({"step_time": "2s"}, {"step_time": "2s"})
    assert found.stragglers == []
    assert "the slow one does not show" in found.no_stragglers


def test_pods_that_do_not_wait_for_each_other_are_compared_by_their_steps() -> None:
    found = of({"step_time": "1s"}, {"step_time": "1s"}, {"step_time": "3s"})
    assert [one.pod for one in found.stragglers] == ["ml/train-2"]
    assert not found.no_stragglers


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"last_checkpoint": "yesterday"}, "is not a time"),
        ({"checkpoint_every": "-1m"}, "is not a time span"),
        ({"step_time": "fast"}, "is not a time span"),
        ({"step_time": "0s"}, "is not a time span"),
        ({"network_share": "nan"}, "is not a share"),
        ({"network_share": "31"}, "is not a share"),
    ],
)
def test_an_annotation_that_cannot_be_read_is_a_fault_of_its_pod_alone(said: dict[str, str], fault: str) -> None:
    found = of(said, {"last_checkpoint": "2026-01-01T00:50:00Z"})
    assert fault in found.pods[0].fault
    assert f"shoal.dev/{next(iter(said)).replace('_', '-')}" in found.pods[0].fault
    assert found.unsaved_s == 600
