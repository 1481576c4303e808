"""Reads the progress of a workload from its status: its reservation, its admission, its conditions and their times.

A status written by a controller is believed. One written by hand may hold an admission and nothing else: it then holds
quota since it was created, and is admitted unless a check is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shoal.api.conditions import Condition
from shoal.api.kueue import Workload
from shoal.api.kueue.workload_status import PodSetAssignment
from shoal.api.resources import amounts
from shoal.engine.queues.facts import Amounts, PodSet, PodSetAdmission, QuotaAssignment
from shoal.engine.queues.topology_facts import TopologyAssignment

_WERE_READY = frozenset({"WaitForRecovery", "Started", "Recovered"})
"""Reasons of PodsReady from which it follows that all pods were ready once."""
_TELL_NO_LENGTH = frozenset({"Failed", "OutOfSync", "OwnerNotFound", "WorkloadSliceReplaced"})
"""Reasons of Finished for work that was not done."""

ADMISSION_GATES = "kueue.x-k8s.io/admission-gated-by"

Fields = dict[str, Any]
"""Fields of `WorkloadFacts`."""


def is_finished(workload: Workload) -> bool:
    return workload.status.is_true("Finished")


def ran_s(workload: Workload) -> float | None:
    """How long its last admission lasted until its work was done; None where that is not recorded."""
    finished, admitted = workload.status.condition("Finished"), workload.status.condition("Admitted")
    if finished is None or admitted is None or admitted.status != "True" or finished.reason in _TELL_NO_LENGTH:
        return None
    if finished.last_transition_time is None or admitted.last_transition_time is None:
        return None
    ran = (finished.last_transition_time - admitted.last_transition_time).total_seconds()
    return ran if ran > 0 else None


def holds_quota(workload: Workload) -> bool:
    reserved = workload.status.condition("QuotaReserved")
    return workload.status.admission is not None and (reserved is None or reserved.status == "True")


def progress_of(workload: Workload, pod_sets: tuple[PodSet, ...]) -> Fields:
    status = workload.status
    requeue = status.requeue_state
    return {
        "checks": {check.name: check.state for check in status.admission_checks},
        "reclaimable": reclaimable_of(workload),
        "requeue_at_s": _seconds(requeue.requeue_at) if requeue is not None else 0.0,
        "requeues": requeue.count if requeue is not None else 0,
        "closed_gates": gates_of(workload.metadata.annotations),
        "unhealthy_nodes": tuple(node.name for node in status.unhealthy_nodes),
        **_eviction(workload),
        **(_holding(workload, pod_sets) if holds_quota(workload) else {}),
    }


def reclaimable_of(workload: Workload) -> dict[str, int]:
    return {each.name: each.count for each in workload.status.reclaimable_pods if each.count}


def moments_of(workload: Workload) -> list[float]:
    """Everything that has happened to it, but not what is still to come."""
    meta, status = workload.metadata, workload.status
    found = [meta.creation_timestamp, meta.deletion_timestamp]
    found += [condition.last_transition_time for condition in status.conditions]
    found += [check.last_transition_time for check in status.admission_checks]
    return [moment.timestamp() for moment in found if moment is not None]


def _eviction(workload: Workload) -> Fields:
    """A workload that is deleted while it has quota counts as being evicted too."""
    evicted = workload.status.condition("Evicted")
    if evicted is not None and evicted.status == "True":
        return {"evicted_s": _seconds(evicted.last_transition_time), "evicted_why": evicted.reason}
    terminating = workload.metadata.deletion_timestamp
    return {} if terminating is None else {"evicted_s": terminating.timestamp(), "evicted_why": "Deleted"}


def _holding(workload: Workload, pod_sets: tuple[PodSet, ...]) -> Fields:
    status = workload.status
    reserved, admitted = status.condition("QuotaReserved"), status.condition("Admitted")
    since = _seconds(workload.metadata.creation_timestamp)
    reserved_s = _seconds(reserved.last_transition_time) if reserved is not None else since
    if admitted is not None:
        is_admitted = admitted.status == "True"
        admitted_s = _seconds(admitted.last_transition_time) if is_admitted else 0.0
    else:
        is_admitted = reserved is None and all(check.state == "Ready" for check in status.admission_checks)
        admitted_s = reserved_s if is_admitted else 0.0
    ready = status.condition("PodsReady")
    return {
        "admission": _admission(workload, pod_sets),
        "reserved_s": reserved_s,
        "admitted": is_admitted,
        "admitted_s": admitted_s,
        # A missing condition counts as ready: snapshots written by hand lack it.
        "pods_ready": ready is None or ready.status == "True",
        "ready_lost_s": _ready_lost_s(ready, admitted_s),
    }


def _ready_lost_s(ready: Condition | None, admitted_s: float) -> float | None:
    """What was lost under an earlier admission is no loss of this one."""
    if ready is None or ready.status == "True" or ready.reason not in _WERE_READY:
        return None
    lost_s = _seconds(ready.last_transition_time)
    return lost_s if lost_s >= admitted_s else None


def _admission(workload: Workload, pod_sets: tuple[PodSet, ...]) -> QuotaAssignment | None:
    said = workload.status.admission
    if said is None:
        return None
    known = {pod_set.name: pod_set for pod_set in pod_sets}
    over = reclaimable_of(workload)
    return QuotaAssignment(
        said.cluster_queue,
        tuple(
            _pod_set_admission(each, known.get(each.name), over.get(each.name, 0)) for each in said.pod_set_assignments
        ),
    )


def _pod_set_admission(said: PodSetAssignment, pod_set: PodSet | None, over: int) -> PodSetAdmission:
    count = said.count
    if count is None:
        count = pod_set.count if pod_set is not None else 0
    usage = amounts(said.resource_usage)
    if not usage and pod_set is not None:
        usage = {name: pod_set.requests.get(name, 0) * count for name in said.flavors if name in pod_set.requests}
    assigned = said.topology_assignment
    topology = None
    if assigned is not None:
        topology = TopologyAssignment(assigned.levels, tuple(sorted(assigned.domains())))
    if pod_set is not None:
        usage = _left(usage, count, pod_set.count - over)
    return PodSetAdmission(said.name, count, said.flavors, usage, topology, said.delayed_topology_request)


def _left(usage: Amounts, count: int, needed: int) -> Amounts:
    """What is charged still, once pods that ended need it no more."""
    if not 0 <= needed < count:
        return usage
    return {name: amount // count * needed for name, amount in usage.items()}


def gates_of(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Who has to agree before the workload is looked at. Preemption gates are not among them: those that have one
    closed may still be admitted, and Kueue heeds them only where clusters preempt in concert.
    """
    return tuple(name for part in annotations.get(ADMISSION_GATES, "").split(",") if (name := part.strip()))


def _seconds(moment: datetime | None) -> float:
    return 0.0 if moment is None else moment.timestamp()
