"""Computes the parts of a Workload's status that follow from its job: PodsReady, reclaimable pods, Finished, and the
release of quota after an eviction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shoal.client.clock import Clock
from shoal.client.item import Obj
from shoal.controllers.queued_jobs.workloads import OwnedWorkload
from shoal.controllers.queued_work.kueue_names import ADMITTED, EVICTED, FINISHED, PODS_READY, QUOTA_RESERVED, REQUEUED
from shoal.store.queues.job_parts import dig

_LONGEST_MESSAGE = 32_768
_REQUEUED_AT_ONCE = frozenset({"Preempted", "NodeFailures"})
"""After an eviction for these reasons the Workload is requeued at once; otherwise the admission loop decides when."""
_NOT_READY = "Not all pods are ready or succeeded"
_RECOVERING = "At least one pod has failed, waiting for recovery"
_READY = "All pods reached readiness and the workload is running"


class ConditionPatch:
    """Changes of conditions that are written in one patch."""

    def __init__(self, workload: OwnedWorkload, clock: Clock) -> None:
        self._workload = workload
        self._clock = clock
        self._conditions: list[Obj] = [dict(one) for one in dig(workload.obj, ("status", "conditions")) or ()]

    def set(self, kind: str, status: str, reason: str, message: str) -> None:
        present = next((one for one in self._conditions if one.get("type") == kind), None)
        if present is None:
            present = {"type": kind}
            self._conditions.append(present)
        if present.get("status") != status:
            present["lastTransitionTime"] = self._clock.text()
        present.update(status=status, reason=reason, message=message[:_LONGEST_MESSAGE])
        generation = self._workload.obj["metadata"].get("generation")
        if generation:
            present["observedGeneration"] = generation

    def to_api(self, **extra: Any) -> Obj:
        return {"conditions": self._conditions, **extra}


def finished_patch(workload: OwnedWorkload, clock: Clock, reason: str, message: str) -> Obj:
    patch = ConditionPatch(workload, clock)
    patch.set(FINISHED, "True", reason, message)
    return patch.to_api()


def quota_released_patch(workload: OwnedWorkload, clock: Clock) -> Obj:
    """Releases the quota of an evicted Workload once none of its pods runs any more."""
    evicted = workload.condition(EVICTED) or {}
    reason, message = str(evicted.get("reason") or ""), str(evicted.get("message") or "")
    patch = ConditionPatch(workload, clock)
    patch.set(QUOTA_RESERVED, "False", "PendingEvaluation", message)
    patch.set(REQUEUED, "True" if reason in _REQUEUED_AT_ONCE else "False", reason, message)
    extra: Obj = {"admission": None}
    if workload.is_admitted:
        if _checks_are_ready(workload):
            patch.set(ADMITTED, "False", "NoReservation", "The workload has no reservation")
        else:
            words = "The workload has no reservation and not all checks ready"
            patch.set(ADMITTED, "False", "NoReservationUnsatisfiedChecks", words)
        before = dig(workload.obj, ("status", "accumulatedPastExecutionTimeSeconds")) or 0
        extra["accumulatedPastExecutionTimeSeconds"] = before + _executed_s(workload, clock)
    return patch.to_api(**extra)


def _checks_are_ready(workload: OwnedWorkload) -> bool:
    return all(one.get("state") == "Ready" for one in dig(workload.obj, ("status", "admissionChecks")) or ())


def _executed_s(workload: OwnedWorkload, clock: Clock) -> int:
    since = str((workload.condition(ADMITTED) or {}).get("lastTransitionTime") or "")
    try:
        return max(int((clock.now() - datetime.fromisoformat(since)).total_seconds()), 0)
    except (ValueError, TypeError):
        return 0


def pods_ready_patch(workload: OwnedWorkload, clock: Clock, *, is_ready: bool) -> Obj | None:
    """None if PodsReady needs no change."""
    present = workload.condition(PODS_READY) or {}
    wanted = _readiness(workload, present, is_ready=is_ready)
    if (present.get("status"), present.get("reason")) == wanted[:2]:
        return None
    patch = ConditionPatch(workload, clock)
    patch.set(PODS_READY, *wanted)
    return patch.to_api()


def _readiness(workload: OwnedWorkload, present: Obj, *, is_ready: bool) -> tuple[str, str, str]:
    reason = present.get("reason")
    if not workload.is_admitted:
        return "False", "WaitForStart", _NOT_READY
    if is_ready:
        return "True", "Recovered" if reason in ("WaitForRecovery", "Recovered") else "Started", _READY
    if present.get("status") == "True" or reason == "WaitForRecovery":
        return "False", "WaitForRecovery", _RECOVERING
    return "False", "WaitForStart", _NOT_READY


def reclaimable_patch(workload: OwnedWorkload, reclaimable: Mapping[str, int]) -> Obj | None:
    """Pods that will not be replaced free their quota; while quota is reserved, their number never decreases."""
    present = {one["name"]: one["count"] for one in dig(workload.obj, ("status", "reclaimablePods")) or ()}
    counts = {name: int(pod_set.get("count", 1)) for name, pod_set in workload.pod_sets.items()}
    wanted = {name: min(count, counts[name]) for name, count in reclaimable.items() if name in counts}
    if workload.has_quota:
        wanted = {name: max(wanted.get(name, 0), present.get(name, 0)) for name in {**present, **wanted}}
    if wanted == present:
        return None
    return {"reclaimablePods": [{"name": name, "count": count} for name, count in wanted.items()]}


def pending_checks(workload: OwnedWorkload) -> str:
    """The messages of the admission checks for which a Workload with quota waits."""
    checks = dig(workload.obj, ("status", "admissionChecks")) or ()
    return "; ".join(
        f"{one.get('name')}: {one['message']}" for one in checks if one.get("state") == "Pending" and one.get("message")
    )
