"""What happens to workloads is read from their conditions, each thing once."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.telemetry.queues import WorkloadTransition
from shoal.telemetry.workload_transitions import _Workload, workload_transitions

Obj = dict[str, Any]


def _workload(
    *conditions: tuple[str, str, int],
    message: str = "",
    denied: tuple[str, int] | None = None,
    namespace: str = "",
    **status: Any,
) -> _Workload:
    listed = [
        {
            "type": type_,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": f"2026-01-01T00:{minute:02}:00Z",
        }
        for type_, reason, minute in conditions
    ]
    if denied is not None:
        listed.append({"type": denied[0], "status": "False", "lastTransitionTime": f"2026-01-01T00:{denied[1]:02}:00Z"})
    obj: Obj = {
        "metadata": {"namespace": namespace, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"priorityClassRef": {"name": "high"}},
        "status": {"admission": {"clusterQueue": "cq"}, "conditions": listed, **status},
    }
    return msgspec.convert(obj, _Workload, strict=False)


_FRESH = _workload()
_RESERVED = ("QuotaReserved", "QuotaReserved", 2)
_ADMITTED = ("Admitted", "Admitted", 5)


def test_a_workload_that_is_admitted_at_once_was_given_quota_too() -> None:
    after = _workload(_RESERVED, _ADMITTED, admissionChecks=[{"name": "check"}])
    assert workload_transitions(_FRESH, after) == [
        WorkloadTransition("quota_reserved", "cq", "high", waited_s=120.0),
        WorkloadTransition("admitted", "cq", "high", waited_s=300.0, since_before_s=180.0),
    ]
    assert workload_transitions(after, after) == []


def test_who_was_put_back_in_line_waits_from_then_on() -> None:
    after = _workload(("Requeued", "Preempted", 1), _RESERVED)
    assert workload_transitions(_FRESH, after) == [WorkloadTransition("quota_reserved", "cq", "high", waited_s=60.0)]


def test_a_preemption_says_for_which_queue() -> None:
    words = (
        "Preempted to accommodate a workload (UID: u, JobUID: j) due to x; preemptor path: /all/b; preemptee path: /a"
    )
    after = _workload(("Preempted", "InCohortReclamation", 7), ("Evicted", "Preempted", 7), message=words)
    assert workload_transitions(_FRESH, after) == [
        WorkloadTransition("preempted", "cq", "high", "InCohortReclamation", by="b"),
        WorkloadTransition("evicted", "cq", "high", "Preempted", is_first=True),
    ]


def test_an_eviction_that_was_there_before_counts_again_at_another_time() -> None:
    before = _workload(("Evicted", "PodsReadyTimeout", 7))
    stats = {"evictions": [{"reason": "PodsReadyTimeout", "underlyingCause": "", "count": 2}]}
    after = _workload(("Evicted", "PodsReadyTimeout", 9), schedulingStats=stats)
    assert workload_transitions(before, after) == [WorkloadTransition("evicted", "cq", "high", "PodsReadyTimeout")]


def test_a_workload_whose_slice_was_replaced_is_not_counted_as_finished() -> None:
    after = _workload(_RESERVED, _ADMITTED, ("Finished", "WorkloadSliceReplaced", 9))
    assert workload_transitions(_workload(_RESERVED, _ADMITTED), after) == [
        WorkloadTransition("replaced", "cq", "high")
    ]


def test_the_cause_of_a_deactivation_is_a_label_of_its_own() -> None:
    after = _workload(("Evicted", "DeactivatedDueToRequeuingLimitExceeded", 9))
    (found,) = workload_transitions(_FRESH, after)
    assert (found.reason, found.cause) == ("Deactivated", "RequeuingLimitExceeded")


def test_quota_that_is_given_back_was_held_so_long_after_the_eviction() -> None:
    before = _workload(_RESERVED, _ADMITTED, ("PodsReady", "PodsReady", 6), ("Evicted", "Preempted", 9))
    after = _workload(("Evicted", "Preempted", 9), denied=("QuotaReserved", 11))
    assert workload_transitions(before, after) == [
        WorkloadTransition("released", "cq", "high", "Preempted", since_before_s=120.0),
    ]
    assert workload_transitions(after, after) == []


def test_an_eviction_that_ends_the_readiness_of_pods_tells_how_long_they_were_ready() -> None:
    before = _workload(_RESERVED, _ADMITTED, ("PodsReady", "PodsReady", 6))
    after = _workload(_RESERVED, _ADMITTED, ("Evicted", "NodeFailures", 9))
    assert [(one.what, one.since_before_s) for one in workload_transitions(before, after)] == [("evicted", 180.0)]


def test_a_workload_is_counted_for_its_local_queue_too() -> None:
    after = _workload(_RESERVED, namespace="team")
    after.spec.queue_name = "gpus"
    assert [one.local_queue for one in workload_transitions(_FRESH, after)] == [("gpus", "team")]


def test_work_that_is_done_took_so_long() -> None:
    before = _workload(_RESERVED, _ADMITTED)
    after = _workload(_RESERVED, _ADMITTED, ("PodsReady", "PodsReady", 6), ("Finished", "Succeeded", 15))
    assert workload_transitions(before, after) == [
        WorkloadTransition("ready", "cq", "high", waited_s=360.0, since_before_s=60.0),
        WorkloadTransition("finished", "cq", "high", waited_s=600.0),
    ]
