"""Which cases can be decided without queues: the others are told apart by the reason, never counted as passed."""

from __future__ import annotations

from typing import Any

from .case import Case, Job, Queue, Task
from .claims import claimed_gpus

_HARMLESS = {"allocate", "backfill", "preempt", "consolidation"}
_NEEDS_QUEUES = {"reclaim", "enqueue"}


def out_of_scope(case: Case) -> str:
    """Why the case is not ours yet; empty when it is."""
    if case.kind == "node-score":
        return ""
    if case.kind == "schedule" and not case.is_kai:
        return ""
    if case.kind != "schedule":
        return f"kind {case.kind or 'unknown'}: fair shares of queues are not computed yet"
    return _queues(case) or _actions(case)


def contested(case: Case) -> str:
    """Why it may matter whose turn it is among queues; it does not when everybody who waits gets a place at once."""
    if not case.is_kai:
        return ""
    waiting = {job.queue for job in case.jobs if any(task.state in ("Pending", "Nominated") for task in job.tasks)}
    if len(waiting) > 1:
        return "pods of several queues wait: their order is a matter of fair shares"
    holding = {job.queue for job in case.jobs if job.tasks}
    if len(holding) > 1 and "reclaim" in case.config.actions:
        return "pods of several queues: who may reclaim from whom is a matter of fair shares"
    return ""


def _actions(case: Case) -> str:
    for action in case.config.actions:
        if action not in _HARMLESS | _NEEDS_QUEUES | {"stalegangeviction"}:
            return f"action {action} is not known"
    if set(case.config.actions) <= {"reclaim", "stalegangeviction"}:
        return f"only {' and '.join(case.config.actions)}, which is not built yet"
    if any(job.stale_for_seconds is not None for job in case.jobs):
        return "stale gangs are not evicted yet"
    return ""


def _queues(case: Case) -> str:
    """Queues do not matter where everybody in them may have everything they ask for."""
    by_name = {queue.name: queue for queue in case.queues}
    for queue in case.queues:
        if queue.state and queue.state != "Open":
            return f"queue {queue.name} is {queue.state}"
        if queue.guarantee:
            return f"queue {queue.name} has a guarantee"
        jobs = [job for job in case.jobs if _is_below(job.queue, queue.name, by_name)]
        # KAI lets work that may be preempted go beyond the quota; a limit binds all.
        quota = [job for job in jobs if not job.preemptible] if case.is_kai else jobs
        reason = _bound_by(case, queue, "quota", quota) or _bound_by(case, queue, "limit", _lasting(case, jobs))
        if reason:
            return reason
    return ""


def _lasting(case: Case, jobs: list[Job]) -> list[Job]:
    """What may stand at once: where preemption is on, lower work yields before a queue is beyond its limit."""
    if "preempt" not in case.config.actions:
        return jobs
    highest = max((job.priority for job in jobs if any(task.state == "Pending" for task in job.tasks)), default=0)
    return [job for job in jobs if job.priority >= highest or job.preemptible is False]


def _is_below(name: str, ancestor: str, by_name: dict[str, Queue]) -> bool:
    seen: set[str] = set()
    while name and name not in seen:
        if name == ancestor:
            return True
        seen.add(name)
        name = by_name[name].parent if name in by_name else ""
    return False


def _bound_by(case: Case, queue: Queue, what: str, jobs: list[Job]) -> str:
    asked = {"gpu": 0.0, "cpu": 0.0, "memory": 0.0}
    for job in jobs:
        for task in job.tasks:
            asked["gpu"] += _gpus(task) + claimed_gpus(case, job.namespace, task)
            asked["cpu"] += task.cpu
            asked["memory"] += task.memory
    for resource, amount in asked.items():
        bound = _amount(getattr(queue, what), resource)
        if bound is not None and amount > bound + 1e-9:
            return f"{what} of queue {queue.name}: {bound:g} {resource}, asked for {amount:g}"
    return ""


def _gpus(task: Task) -> float:
    mig = sum(
        int(profile.removeprefix("mig-").partition("g.")[0]) * count for profile, count in task.mig_profiles.items()
    )
    return task.gpus + task.gpu_fraction + mig + (1 if task.gpu_memory else 0)


def _amount(amounts: Any, resource: str) -> float | None:
    if not isinstance(amounts, dict):
        return None
    value = amounts.get(resource, amounts.get("nvidia.com/gpu") if resource == "gpu" else None)
    return None if value is None or value < 0 else float(value)
