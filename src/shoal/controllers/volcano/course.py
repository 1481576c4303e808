"""The course of a job: which phase follows, from the phase it is in, the action that is taken and its pods.

Pure, so that the whole table can be read and tried at once. The phases and their order are Volcano's.
"""

from __future__ import annotations

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
_ENDS = {ABORT: ABORTING, TERMINATE: TERMINATING, COMPLETE: COMPLETING, RESTART: RESTARTING}
_AFTER = {ABORTING: ABORTED, TERMINATING: TERMINATED, COMPLETING: COMPLETED}


class Counts(msgspec.Struct, frozen=True):
    """Pods of a job by how they are; those that are being deleted count as nothing else."""

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
    """Its pods are wanted."""
    return phase in _ACTIVE


def after_action(phase: str, action: str) -> str:
    """The phase that an action leads to; the same one where it means nothing."""
    if action == RESUME:
        return RESTARTING if phase in (ABORTING, ABORTED) else phase
    return _ENDS.get(action, phase) if phase in _ACTIVE else phase


def keeps_ended(job: VolcanoJob) -> bool:
    """Whether pods that have ended stay for people to look at, where all others are taken away."""
    return job.phase != RESTARTING or job.status.retry_count >= job.spec.max_retry


def next_phase(job: VolcanoJob, counts: Counts) -> str:
    """Where a job comes by itself."""
    phase = job.phase
    if phase in FINISHED or phase == ABORTED:
        return phase
    if phase in _AFTER:
        return phase if counts.alive else _AFTER[phase]
    if phase == RESTARTING:
        if job.status.retry_count >= job.spec.max_retry:
            return FAILED
        return PENDING if job.replicas - counts.terminating >= job.least else phase
    if phase == RUNNING:
        return _while_running(job, counts)
    settled = counts.running + counts.succeeded + counts.failed
    return RUNNING if settled and job.least <= settled else PENDING


def _while_running(job: VolcanoJob, counts: Counts) -> str:
    if not job.replicas:
        return RUNNING
    enough = job.spec.min_success
    if enough is not None and counts.succeeded >= enough:
        return COMPLETED
    if counts.succeeded + counts.failed != job.replicas:
        return RUNNING
    if job.least >= sum(task.least for task in job.spec.tasks) and _lacks_in_a_task(job, counts):
        return FAILED
    if enough is not None:
        return FAILED
    return COMPLETED if counts.succeeded >= job.least else FAILED


def _lacks_in_a_task(job: VolcanoJob, counts: Counts) -> bool:
    return any(
        task.min_available is not None and counts.by_task.get(task.name, {}).get("Succeeded", 0) < task.min_available
        for task in job.tasks()
    )
