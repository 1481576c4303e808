"""What Volcano's hooks make of a job: which minima hold, who may be made to yield, whose turn an action is.

A case lists the plugins and hooks that are on, and a rule without its hook does not exist. They are read here into the
plain facts that the engine knows, instead of teaching the engine another scheduler's switches.
"""

from __future__ import annotations

from .case import Case, Job, Task

_ON_NODES = ("Running", "Bound")


def hooks(case: Case, plugin: str) -> set[str]:
    return set((case.config.plugins.get(plugin) or {}).get("hooks") or ())


def minima(case: Case, job: Job) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Pods, and pods of each role. Roles count only when together they are within the pods' minimum."""
    if case.config.plugins and not hooks(case, "gang") & {"JobReady", "JobPipelined"}:
        return 0, ()
    # Pods that ask for nothing and are left to another action are taken to be there.
    left = sum(not has_a_turn(case, job, task) and is_best_effort(task) for task in job.tasks)
    pods = max(job.min_available - left, 0)
    if job.min_available < sum(job.min_by_role.values()):
        return pods, ()
    return pods, tuple((role, least) for role, least in job.min_by_role.items() if role and least)


def has_a_turn(case: Case, job: Job, task: Task) -> bool:
    """Whether any action looks at a waiting pod."""
    actions = set(case.config.actions)
    if actions & {"preempt", "reclaim"}:
        return "allocate" in actions or _is_wanted(case, job, task)
    return ("backfill" if is_best_effort(task) else "allocate") in actions


def is_best_effort(task: Task) -> bool:
    return not (task.cpu or task.memory or task.gpus or task.gpu_fraction or task.gpu_memory or task.extended)


def _is_wanted(case: Case, job: Job, task: Task) -> bool:
    """Nobody yields for more than a gang's minimum while starving is what makes a job ask."""
    if "JobStarving" not in hooks(case, "gang"):
        return True
    running = sum(each.state in _ON_NODES for each in job.tasks)
    waiting = sorted((each for each in job.tasks if each.state == "Pending"), key=lambda each: -each.task_priority)
    return task.state != "Pending" or task in waiting[: max(job.min_available - running, 0)]
