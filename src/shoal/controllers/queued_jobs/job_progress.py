"""Reads from the status of each kind of job whether pods run, whether all are ready, and which will not be replaced."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.controllers.queued_jobs.job_kind import JobProgress
from shoal.store.queues.job_parts import Obj, PodPart, Steps, dig
from shoal.store.queues.job_parts.endings import conditions
from shoal.units.numbers import whole_of

_SPARK_INACTIVE = frozenset({"", "NEW", "SUSPENDED", "COMPLETED", "FAILED", "SUBMISSION_FAILED"})
_VOLCANO_INACTIVE = frozenset({"", "Aborted", "Completed", "Failed", "Terminated"})


def _number(job: Obj, *steps: str) -> int:
    found = dig(job, ("status", *steps))
    return found if isinstance(found, int) else 0


def batch_job(job: Obj, parts: Sequence[PodPart]) -> JobProgress:
    count, succeeded = parts[0].count, _number(job, "succeeded")
    parallelism = dig(job, ("spec", "parallelism"))
    parallelism = parallelism if isinstance(parallelism, int) else 1
    completions = dig(job, ("spec", "completions"))
    remaining = (completions if isinstance(completions, int) else parallelism) - succeeded - _indexes(job)
    spare = count - max(remaining, 0) if parallelism > 1 and succeeded + _indexes(job) else 0
    return JobProgress(
        is_active=_number(job, "active") > 0,
        is_ready=succeeded + _uncounted(job) + _number(job, "ready") >= count,
        reclaimable={"main": spare} if spare > 0 else {},
    )


def _uncounted(job: Obj) -> int:
    """Pods that succeeded and are not counted yet: they are not ready any more, but have not failed."""
    found = dig(job, ("status", "uncountedTerminatedPods", "succeeded"))
    return len(found) if isinstance(found, list) else 0


def _indexes(job: Obj) -> int:
    """Number of indexes that failed permanently."""
    text = dig(job, ("status", "failedIndexes"))
    total = 0
    for span in text.split(",") if isinstance(text, str) and text else ():
        first, _, last = span.partition("-")
        low, high = whole_of(first), whole_of(last or first)
        if low is not None and high is not None:
            total += high - low + 1
    return total


def _replicated(job: Obj, parts: Sequence[PodPart], field: str) -> JobProgress:
    states = {str(one.get("name")): one for one in dig(job, ("status", field)) or ()}
    wanted = sum(part.sub_groups or 0 for part in parts)
    ready = sum(int(one.get("ready") or 0) + int(one.get("succeeded") or 0) for one in states.values())
    reclaimable = {}
    for part in parts:
        succeeded = int((states.get(part.name) or {}).get("succeeded") or 0)
        if part.sub_groups and 0 < succeeded <= part.sub_groups:
            reclaimable[part.name] = succeeded * part.count // part.sub_groups
    active = any(int(one.get("active") or 0) for one in states.values())
    return JobProgress(active, is_ready=ready == wanted, reclaimable=reclaimable)


def job_set(job: Obj, parts: Sequence[PodPart]) -> JobProgress:
    return _replicated(job, parts, "replicatedJobsStatus")


def train_job(job: Obj, parts: Sequence[PodPart]) -> JobProgress:
    return _replicated(job, parts, "jobsStatus")


def training(job: Obj, _parts: Sequence[PodPart]) -> JobProgress:
    """Kubeflow's operators report pods by role, and a condition once all run."""
    roles = (dig(job, ("status", "replicaStatuses")) or {}).values()
    return JobProgress(any((role or {}).get("active") for role in roles), is_ready="Running" in conditions(job))


def ray_job(job: Obj, _parts: Sequence[PodPart]) -> JobProgress:
    deployed = dig(job, ("status", "jobDeploymentStatus")) or ""
    ready = dig(job, ("status", "rayClusterStatus", "state")) == "ready"
    return JobProgress(deployed not in ("", "Suspended"), ready)


def ray_cluster(job: Obj, _parts: Sequence[PodPart]) -> JobProgress:
    state, true = dig(job, ("status", "state")), conditions(job)
    stopped = state == "suspended" or "RayClusterSuspended" in true
    runs = state == "ready" or _number(job, "availableWorkerReplicas") > 0 or "RayClusterSuspending" in true
    return JobProgress(runs and not stopped, is_ready=state == "ready")


def ray_service(job: Obj, _parts: Sequence[PodPart]) -> JobProgress:
    ready = "Ready" in conditions(job)
    return JobProgress(ready, ready)


def spark(job: Obj, parts: Sequence[PodPart]) -> JobProgress:
    state = dig(job, ("status", "applicationState", "state")) or ""
    states = (dig(job, ("status", "executorState")) or {}).values()
    there = sum(1 for one in states if one in ("RUNNING", "COMPLETED"))
    return JobProgress(state not in _SPARK_INACTIVE, state == "RUNNING" and there >= parts[-1].count)


def app_wrapper(job: Obj, _parts: Sequence[PodPart]) -> JobProgress:
    true = conditions(job)
    return JobProgress("QuotaReserved" in true, "PodsReady" in true)


def volcano_job(job: Obj, parts: Sequence[PodPart]) -> JobProgress:
    phase: str = dig(job, ("status", "state", "phase")) or ""
    ready = _number(job, "running") + _number(job, "succeeded") >= sum(part.count for part in parts)
    return JobProgress(phase not in _VOLCANO_INACTIVE, phase == "Running" and ready)


SUSPENDED_BY_VOLCANO = frozenset({"Aborting", "Aborted"})
VOLCANO_PHASE: Steps = ("status", "state", "phase")
