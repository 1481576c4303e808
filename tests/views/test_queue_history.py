"""What the conditions of Workloads say of waits for quota and of preemption."""

from __future__ import annotations

import msgspec
import pytest

from shoal.views.dashboard.facts import PreemptionFacts, WorkloadFacts
from shoal.views.dashboard.queue_reading import workload
from shoal.views.queue_history import percentile, queue_history

CREATED = "2026-01-01T00:00:00Z"


def waited(name: str, seconds: int, queue: str = "vision", requeued: str = "") -> WorkloadFacts:
    reserved = f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"
    facts = WorkloadFacts("team", name, "main", queue, f"job/{name}", 1, 8, "admitted", "", CREATED)
    return msgspec.structs.replace(facts, reserved=reserved, requeued=requeued)


def test_waits_of_a_queue_have_their_median_and_their_slowest_twentieth() -> None:
    found = queue_history([*(waited(f"w{at}", at) for at in range(1, 101)), waited("other", 7, "language")])
    assert found.waits["vision"].p50_s == 50
    assert found.waits["vision"].p95_s == 95
    assert found.waits["vision"].admitted == 100
    assert found.waits["language"].p95_s == 7


def test_a_workload_that_was_queued_again_waits_from_then_on() -> None:
    found = queue_history([waited("w", 90, requeued="2026-01-01T00:01:00Z")])
    assert found.waits["vision"].p50_s == 30


def test_a_workload_that_waits_still_is_in_no_percentile() -> None:
    pending = WorkloadFacts("team", "w", "main", "vision", "job/w", 1, 8, "pending", "no quota", CREATED)
    assert queue_history([pending]).waits == {}


@pytest.mark.parametrize(("percent", "value"), [(50, 2), (95, 4), (1, 1), (100, 4)])
def test_a_percentile_is_the_value_at_the_nearest_rank(percent: int, value: float) -> None:
    assert percentile([4, 1, 3, 2], percent) == value


@pytest.mark.parametrize(("status", "prefix"), [("True", ""), ("False", "Previously: ")])
def test_the_condition_of_a_preempted_workload_names_both_queues(status: str, prefix: str) -> None:
    message = (
        f"{prefix}Preempted to accommodate a workload (UID: u, JobUID: j) due to reclamation within the cohort; "
        "preemptor path: /research/language; preemptee path: /research/vision"
    )
    condition = {"type": "Preempted", "status": status, "reason": "InCohortReclamation", "message": message}
    condition["lastTransitionTime"] = CREATED
    found = workload(
        msgspec.json.encode(
            {
                "metadata": {"namespace": "team", "name": "w", "creationTimestamp": CREATED},
                "spec": {"queueName": "main", "podSets": []},
                "status": {"conditions": [condition]},
            }
        )
    )
    assert found.preemption == PreemptionFacts("language", "vision", "InCohortReclamation", CREATED)
    (one,) = queue_history([found]).preemptions
    assert (one.by_queue, one.queue, one.workload) == ("language", "vision", "team/w")
