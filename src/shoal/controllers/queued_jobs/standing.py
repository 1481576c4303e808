"""The conditions of a Workload that are its job's to tell: that it is ready, has ended, or has stopped and left."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shoal.controllers.queued_jobs.workloads import Workload
from shoal.controllers.queued_work.kueue_names import ADMITTED, EVICTED, FINISHED, PODS_READY, QUOTA_RESERVED, REQUEUED
from shoal.store.live.clock import Clock
from shoal.store.live.item import Obj
from shoal.store.queues.job_parts import dig

_LONGEST_MESSAGE = 32_768
_COMES_AGAIN = frozenset({"Preempted", "NodeFailures"})
"""Evicted for these it waits in line at once; after others somebody else says when."""
_NOT_READY = "Not all pods are ready or succeeded"
_RECOVERING = "At least one pod has failed, waiting for recovery"
_READY = "All pods reached readiness and the workload is running"


class Standing:
    """Conditions being changed, to be written in one patch."""

    def __init__(self, workload: Workload, clock: Clock) -> None:
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

    def patch(self, **more: Any) -> Obj:
        return {"conditions": self._conditions, **more}


def finished(workload: Workload, clock: Clock, reason: str, message: str) -> Obj:
    standing = Standing(workload, clock)
    standing.set(FINISHED, "True", reason, message)
    return standing.patch()


def left(workload: Workload, clock: Clock) -> Obj:
    """No pod of an evicted workload runs any more: its quota is free."""
    evicted = workload.condition(EVICTED) or {}
    reason, message = str(evicted.get("reason") or ""), str(evicted.get("message") or "")
    standing = Standing(workload, clock)
    standing.set(QUOTA_RESERVED, "False", "PendingEvaluation", message)
    standing.set(REQUEUED, "True" if reason in _COMES_AGAIN else "False", reason, message)
    more: Obj = {"admission": None}
    if workload.is_admitted:
        if _checks_are_ready(workload):
            standing.set(ADMITTED, "False", "NoReservation", "The workload has no reservation")
        else:
            words = "The workload has no reservation and not all checks ready"
            standing.set(ADMITTED, "False", "NoReservationUnsatisfiedChecks", words)
        before = dig(workload.obj, ("status", "accumulatedPastExecutionTimeSeconds")) or 0
        more["accumulatedPastExecutionTimeSeconds"] = before + _ran_s(workload, clock)
    return standing.patch(**more)


def _checks_are_ready(workload: Workload) -> bool:
    return all(one.get("state") == "Ready" for one in dig(workload.obj, ("status", "admissionChecks")) or ())


def _ran_s(workload: Workload, clock: Clock) -> int:
    since = str((workload.condition(ADMITTED) or {}).get("lastTransitionTime") or "")
    try:
        return max(int((clock.now() - datetime.fromisoformat(since)).total_seconds()), 0)
    except (ValueError, TypeError):
        return 0


def readiness(workload: Workload, clock: Clock, *, is_ready: bool) -> Obj | None:
    """None where nothing new is to be said."""
    present = workload.condition(PODS_READY) or {}
    wanted = _readiness(workload, present, is_ready=is_ready)
    if (present.get("status"), present.get("reason")) == wanted[:2]:
        return None
    standing = Standing(workload, clock)
    standing.set(PODS_READY, *wanted)
    return standing.patch()


def _readiness(workload: Workload, present: Obj, *, is_ready: bool) -> tuple[str, str, str]:
    reason = present.get("reason")
    if not workload.is_admitted:
        return "False", "WaitForStart", _NOT_READY
    if is_ready:
        return "True", "Recovered" if reason in ("WaitForRecovery", "Recovered") else "Started", _READY
    if present.get("status") == "True" or reason == "WaitForRecovery":
        return "False", "WaitForRecovery", _RECOVERING
    return "False", "WaitForStart", _NOT_READY


def reclaimed(workload: Workload, reclaimable: Mapping[str, int]) -> Obj | None:
    """Pods that will not come again give their quota back: more and more of them while it is reserved."""
    present = {one["name"]: one["count"] for one in dig(workload.obj, ("status", "reclaimablePods")) or ()}
    counts = {name: int(pod_set.get("count", 1)) for name, pod_set in workload.pod_sets.items()}
    wanted = {name: min(count, counts[name]) for name, count in reclaimable.items() if name in counts}
    if workload.has_quota:
        wanted = {name: max(wanted.get(name, 0), present.get(name, 0)) for name in {**present, **wanted}}
    if wanted == present:
        return None
    return {"reclaimablePods": [{"name": name, "count": count} for name, count in wanted.items()]}
