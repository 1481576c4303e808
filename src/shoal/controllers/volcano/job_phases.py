"""Computes the next phase of a job from its current phase, the action that is taken, and its pods.

All functions are pure. The phases and their order are those of Volcano. `ACTION_TRANSITIONS` and `POD_TRANSITIONS` list
the legal changes; tests check them, and `docs/states.md` draws them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.controllers.volcano.job import (
    ABORTED,
    ABORTING,
    COMPLETED,
    COMPLETING,
    FAILED,
    FINISHED,
    PENDING,
    RESTARTING,
    RUNNING,
    TERMINATED,
    TERMINATING,
    VolcanoJob,
)
from shoal.controllers.volcano.policies import ABORT, COMPLETE, RESTART, RESUME, TERMINATE

_ACTIVE = frozenset({PENDING, RUNNING})
_FINAL_PHASE = {ABORTING: ABORTED, TERMINATING: TERMINATED, COMPLETING: COMPLETED}

ACTION_TRANSITIONS: Mapping[tuple[str, str], str] = {
    (PENDING, ABORT): ABORTING,
    (PENDING, TERMINATE): TERMINATING,
    (PENDING, COMPLETE): COMPLETING,
    (PENDING, RESTART): RESTARTING,
    (RUNNING, ABORT): ABORTING,
    (RUNNING, TERMINATE): TERMINATING,
    (RUNNING, COMPLETE): COMPLETING,
    (RUNNING, RESTART): RESTARTING,
    (ABORTING, RESUME): RESTARTING,
    (ABORTED, RESUME): RESTARTING,
}
"""The phase that follows from a phase and an action. Other actions leave the phase unchanged."""
POD_TRANSITIONS: Mapping[str, frozenset[str]] = {
    PENDING: frozenset({RUNNING}),
    RUNNING: frozenset({COMPLETED, FAILED}),
    RESTARTING: frozenset({PENDING, FAILED}),
    **{phase: frozenset({final}) for phase, final in _FINAL_PHASE.items()},
    **{phase: frozenset() for phase in (ABORTED, COMPLETED, FAILED, TERMINATED)},
}
"""The phases that can follow from a phase when the pods change, without an action."""


class JobPodCounts(msgspec.Struct, frozen=True):
    """The pods of a job by phase; a pod that is being deleted counts only as terminating."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    by_task: dict[str, dict[str, int]] = {}

    @property
    def alive(self) -> int:
        return self.pending + self.running + self.terminating + self.unknown


def is_active(phase: str) -> bool:
    """Whether the job should have pods in this phase."""
    return phase in _ACTIVE


def after_action(phase: str, action: str) -> str:
    """The phase that an action leads to; the current phase if the action does not apply in it."""
    return ACTION_TRANSITIONS.get((phase, action), phase)


def keeps_finished_pods(job: VolcanoJob) -> bool:
    """Whether finished pods are kept for inspection while all other pods are deleted."""
    return job.phase != RESTARTING or job.status.retry_count >= job.spec.max_retry


def next_phase(job: VolcanoJob, counts: JobPodCounts) -> str:
    """The phase that follows without an action."""
    phase = job.phase
    if phase in FINISHED or phase == ABORTED:
        return phase
    if phase in _FINAL_PHASE:
        return phase if counts.alive else _FINAL_PHASE[phase]
    if phase == RESTARTING:
        if job.status.retry_count >= job.spec.max_retry:
            return FAILED
        return PENDING if job.replicas - counts.terminating >= job.minimum else phase
    if phase == RUNNING:
        return _while_running(job, counts)
    started = counts.running + counts.succeeded + counts.failed
    return RUNNING if started and job.minimum <= started else PENDING


def _while_running(job: VolcanoJob, counts: JobPodCounts) -> str:
    if not job.replicas:
        return RUNNING
    min_success = job.spec.min_success
    if min_success is not None and counts.succeeded >= min_success:
        return COMPLETED
    if counts.succeeded + counts.failed != job.replicas:
        return RUNNING
    if job.minimum >= sum(task.minimum for task in job.spec.tasks) and _is_a_task_below_minimum(job, counts):
        return FAILED
    if min_success is not None:
        return FAILED
    return COMPLETED if counts.succeeded >= job.minimum else FAILED


def _is_a_task_below_minimum(job: VolcanoJob, counts: JobPodCounts) -> bool:
    return any(
        task.min_available is not None and counts.by_task.get(task.name, {}).get("Succeeded", 0) < task.min_available
        for task in job.tasks()
    )
