"""The number of new Jobs by strategy, and the laws that every strategy keeps."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.autoscale.scaled_objects.scaled_jobs import (
    FinishedJob,
    JobCounts,
    JobDemand,
    ScaledJobSpec,
    ScalingStrategy,
    TriggerDemand,
    job_demand,
    job_of,
    new_jobs,
    surplus_jobs,
)


def spec(strategy: str = "", most: int = 10, least: int | None = None, **fields: Any) -> ScaledJobSpec:
    return ScaledJobSpec(
        min_replica_count=least, max_replica_count=most, scaling_strategy=ScalingStrategy(strategy, **fields)
    )


CUSTOM: dict[str, Any] = {"custom_scaling_queue_length_deduction": 1, "custom_scaling_running_job_percentage": "0.5"}
COUNTS = [
    ("the queue, without what runs", spec(), (6, 6), (2, 0), 4),
    ("nothing while enough runs", spec(), (2, 2), (5, 0), 0),
    ("not more than the maximum", spec(), (50, 10), (4, 0), 6),
    ("the minimum first", spec(least=3), (0, 0), (1, 0), 2),
    ("beside the minimum", spec(least=3), (5, 5), (3, 0), 5),
    ("accurate: all of the queue", spec("accurate"), (3, 3), (2, 0), 3),
    ("accurate: without what is pending", spec("accurate"), (3, 3), (2, 2), 1),
    ("accurate: the free places", spec("accurate"), (9, 9), (4, 0), 6),
    ("eager: the free places", spec("eager"), (3, 3), (2, 0), 3),
    ("eager: not beyond the maximum", spec("eager", most=4), (3, 3), (2, 1), 1),
    ("custom: by its own figures", spec("custom", **CUSTOM), (8, 8), (4, 0), 5),
    ("custom: without a number it is the default", spec("custom"), (6, 6), (2, 0), 4),
]


@pytest.mark.parametrize(("_name", "one", "demand", "counts", "wanted"), COUNTS, ids=[row[0] for row in COUNTS])
def test_the_number_of_new_jobs(
    _name: str, one: ScaledJobSpec, demand: tuple[int, int], counts: tuple[int, int], wanted: int
) -> None:
    assert new_jobs(one, JobDemand(True, *demand), JobCounts(*counts)) == wanted


DEMANDS = [TriggerDemand(10.0, 5.0, True), TriggerDemand(4.0, 1.0, True), TriggerDemand(99.0, 1.0, False)]
COMBINED = [("", 10, 2), ("max", 10, 2), ("min", 4, 4), ("avg", 7, 3), ("sum", 14, 6)]


@pytest.mark.parametrize(("how", "queue", "most"), COMBINED)
def test_several_triggers_are_combined(how: str, queue: int, most: int) -> None:
    found = job_demand(DEMANDS, spec(multiple_scalers_calculation=how))
    assert (found.is_active, found.queue, found.most) == (True, queue, most)


def test_without_an_active_trigger_only_a_minimum_is_active() -> None:
    assert not job_demand(DEMANDS[2:], spec()).is_active
    assert job_demand(DEMANDS[2:], spec(least=1)).is_active


@settings(max_examples=examples(200))
@given(
    st.sampled_from(["default", "accurate", "eager", "custom"]),
    st.integers(1, 20),
    st.integers(0, 30),
    st.lists(st.builds(TriggerDemand, st.floats(0, 100), st.floats(0, 10), st.booleans()), max_size=3),
    st.integers(0, 30),
    st.integers(0, 30),
)
def test_jobs_are_never_more_than_the_maximum_and_never_negative(
    strategy: str, most: int, least: int, demands: list[TriggerDemand], running: int, pending: int
) -> None:
    one = spec(strategy, most, least)
    counts = JobCounts(running, min(pending, running))
    created = new_jobs(one, job_demand(demands, one), counts)
    assert created >= 0
    if created:
        assert running + created <= max(most, running)


def test_the_oldest_finished_jobs_go_beyond_the_history() -> None:
    limits = ScaledJobSpec(successful_jobs_history_limit=1, failed_jobs_history_limit=0)
    finished = [FinishedJob("b", False, "2"), FinishedJob("a", False, "1"), FinishedJob("c", True, "3")]
    assert surplus_jobs(finished, limits) == ["a", "c"]
    assert surplus_jobs(finished, ScaledJobSpec()) == []


def test_a_job_has_the_template_its_owner_and_the_labels() -> None:
    template = {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c"}]}}
    written = {"jobTargetRef": {"parallelism": 2, "template": template}, "triggers": []}
    one = msgspec.convert(written, ScaledJobSpec)
    job = job_of({"metadata": {"name": "j", "namespace": "ns", "uid": "u", "generation": 3}}, one)
    assert (job["metadata"]["generateName"], job["spec"]["parallelism"]) == ("j-", 2)
    assert job["spec"]["template"]["metadata"]["labels"] == {"x": "y", "scaledjob.keda.sh/name": "j"}
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"
    assert job["metadata"]["annotations"] == {"scaledjob.keda.sh/generation": "3"}
    assert job["metadata"]["ownerReferences"][0]["kind"] == "ScaledJob"
