"""Syncs one job: reads its pods, decides, and writes pods and status.

The status is written first, finalizers are removed second, and the counts are written third. The process may stop after
each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import JOBS
from shoal.embedded.controllers.jobs.backoff import NO_FAILURES, Failures
from shoal.embedded.controllers.jobs.finished_condition import COMPLETIONS_REACHED, JobOutcome, deadline_s, find_outcome
from shoal.embedded.controllers.jobs.job import BatchJob, BatchJobStatus, JobCondition, Obj, status_object
from shoal.embedded.controllers.jobs.job_snapshot import JobSnapshot, take_snapshot
from shoal.embedded.controllers.jobs.pod_changes import PodChanges, find_pod_changes
from shoal.embedded.controllers.jobs.pod_template import new_pod
from shoal.embedded.controllers.jobs.pod_writes import PodWrites
from shoal.embedded.controllers.jobs.pods import JobPod
from shoal.embedded.controllers.jobs.tracking import count_released, next_tracking_step
from shoal.units.errors import ShoalError


class SyncMemory:
    """What is kept between syncs. It is not required: without it some pods are created earlier, or twice."""

    def __init__(self, context: Context) -> None:
        self.writes = PodWrites(context)
        self.failures: dict[str, Failures] = {}

    def forget(self, job_uid: str) -> None:
        self.failures.pop(job_uid, None)
        self.writes.forget(job_uid)


class JobSync:
    def __init__(self, context: Context, memory: SyncMemory, item: Item, pods: Callable[[], list[JobPod]]) -> None:
        """`pods` returns the current pods of the job."""
        self._context = context
        self._writes = memory.writes
        self._failures = memory.failures
        self._item = item
        self._job = item.read(BatchJob)
        self._pods = pods
        self._about = job_reference(item)
        self._now = context.clock.text()
        self._now_s = context.clock.seconds()

    async def run(self) -> float | None:
        job = self._job
        status = job.status
        if status.start_time is None and not job.spec.suspend:
            status = msgspec.structs.replace(status, start_time=self._now)
        snapshot = take_snapshot(msgspec.structs.replace(job, status=status), self._pods())
        failures = self._failures.get(job.uid, NO_FAILURES).after(snapshot.new_succeeded, snapshot.new_failed)
        end, changes, error = find_outcome(snapshot, self._now_s), PodChanges(), None
        if end is not None:
            error = await self._writes.delete(self._about, snapshot.active, untracked=False)
        elif not job.is_deleting:
            changes = find_pod_changes(snapshot, failures, self._now_s)
            error = await self._apply_changes(snapshot, changes)
        pods = self._pods()
        if end is None and snapshot.is_complete and not any(pod.is_active for pod in pods):
            end = COMPLETIONS_REACHED
        elif end is None and not job.is_deleting:
            status = with_pause(status, job.spec.suspend, self._now)
        done = await self._track(snapshot, with_numbers(status, pods), end if error is None else None, failures)
        raise_if(error)
        if not done:
            return 0.0
        return None if end is not None else _soonest(changes.wait_s, deadline_s(self._job, self._now_s))

    async def _apply_changes(self, snapshot: JobSnapshot, changes: PodChanges) -> ShoalError | None:
        if changes.remove:
            return await self._writes.delete(self._about, changes.remove, untracked=True)
        indexes = changes.indexes or (None,) * changes.create
        pods = [new_pod(self._job, one, snapshot.held.get(one) if one is not None else None) for one in indexes]
        return await self._writes.create(self._about, pods)

    async def _track(
        self, snapshot: JobSnapshot, status: BatchJobStatus, end: JobOutcome | None, failures: Failures
    ) -> bool:
        """Returns False if pods are left to count."""
        count = next_tracking_step(snapshot, status, end)
        status = with_announcement(count.status, end, self._now) if end is not None else count.status
        await self._write(status)
        self._failures[self._job.uid] = failures
        error = await self._writes.remove_finalizers(count.remove_finalizers)
        pods = self._pods()
        status = with_numbers(count_released(status, {pod.uid for pod in pods if pod.is_tracked}), pods)
        is_finished = (
            end is not None and count.is_all and error is None
            and not status.uncounted_terminated_pods and not status.terminating and not status.active
        )  # fmt: skip
        if end is not None and is_finished:
            status = with_end(status, end, self._now)
        await self._write(status)
        if end is not None and is_finished:
            self._record_outcome(end)
        raise_if(error)
        return count.is_all

    async def _write(self, status: BatchJobStatus) -> None:
        before = self._job.status
        if status == before:
            return
        obj = self._item.obj()
        obj["status"] = status_object(status)
        self._item = await self._context.api.update(JOBS, obj, "status")
        self._job = msgspec.structs.replace(self._job, status=status)
        paused, was_paused = status.condition("Suspended"), before.condition("Suspended")
        if paused is not None and was_paused is None:
            self._context.events.record(self._about, "Suspended", "Job suspended")
        elif paused is None and was_paused is not None:
            self._context.events.record(self._about, "Resumed", "Job resumed")

    def _record_outcome(self, end: JobOutcome) -> None:
        record, wanted = self._context.events.record, self._job.spec.completions
        if not end.is_success:
            record(self._about, end.reason, end.message, type_="Warning")
            return
        if wanted is not None and self._job.status.succeeded > wanted:
            words = "Too many succeeded pods running after completion count reached"
            record(self._about, "TooManySucceededPods", words, type_="Warning")
        record(self._about, "Completed", "Job completed")


def job_reference(item: Item) -> Obj:
    metadata = {"name": item.name, "namespace": item.namespace, "uid": item.uid, "resourceVersion": str(item.version)}
    return {"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata}


def _soonest(*waits_s: float | None) -> float | None:
    return min((wait_s for wait_s in waits_s if wait_s is not None), default=None)


def raise_if(error: ShoalError | None) -> None:
    if error is not None:
        raise error


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
