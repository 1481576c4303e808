"""Computes the status of a job as it is started, suspended, resumed and finished."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.embedded.controllers.jobs.finished_condition import JobOutcome
from shoal.embedded.controllers.jobs.job import BatchJobStatus, JobCondition
from shoal.embedded.controllers.jobs.pods import JobPod


def with_numbers(status: BatchJobStatus, pods: Sequence[JobPod]) -> BatchJobStatus:
    active = [pod for pod in pods if pod.is_active]
    return msgspec.structs.replace(
        status,
        active=len(active),
        ready=sum(pod.is_ready for pod in active),
        terminating=sum(pod.is_terminating for pod in pods),
    )


def with_pause(status: BatchJobStatus, is_suspended: bool, now: str) -> BatchJobStatus:
    """Sets the start time of a resumed job to now, and removes that of a suspended one."""
    if is_suspended:
        changed = with_condition(status, JobCondition("Suspended", "True", now, now, "JobSuspended", "Job suspended"))
        return status if changed is status else msgspec.structs.replace(changed, start_time=None)
    if not any(one.type == "Suspended" for one in status.conditions):
        return status
    changed = with_condition(status, JobCondition("Suspended", "False", now, now, "JobResumed", "Job resumed"))
    return status if changed is status else msgspec.structs.replace(changed, start_time=now)


def with_announcement(status: BatchJobStatus, end: JobOutcome, now: str) -> BatchJobStatus:
    if status.condition(end.announcement) is not None:
        return status
    return with_condition(status, JobCondition(end.announcement, "True", now, now, end.reason, end.message))


def with_end(status: BatchJobStatus, end: JobOutcome, now: str) -> BatchJobStatus:
    ended = with_condition(status, JobCondition(end.condition, "True", now, now, end.reason, end.message))
    # A job may fail just after it was suspended, which removed the start time; a finished job needs one.
    ended = msgspec.structs.replace(ended, start_time=ended.start_time or now)
    return msgspec.structs.replace(ended, completion_time=now) if end.is_success else ended


def with_condition(status: BatchJobStatus, condition: JobCondition) -> BatchJobStatus:
    """Returns the same object if the status already has the condition."""
    meant = (condition.status, condition.reason, condition.message)
    for place, one in enumerate(status.conditions):
        if one.type == condition.type:
            if (one.status, one.reason, one.message) == meant:
                return status
            conditions = (*status.conditions[:place], condition, *status.conditions[place + 1 :])
            return msgspec.structs.replace(status, conditions=conditions)
    return msgspec.structs.replace(status, conditions=(*status.conditions, condition))
