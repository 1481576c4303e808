"""Runs the sync of each Volcano job when the job, its pods or its pod group change."""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import VOLCANO_JOBS, VOLCANO_POD_GROUPS
from shoal.client.item import Item, Key
from shoal.client.kind import PODS, PRIORITY_CLASSES
from shoal.client.loop import Loop
from shoal.controllers.volcano.job import FINISHED, VolcanoJob, job_of
from shoal.controllers.volcano.job_context import JobContext
from shoal.controllers.volcano.job_pods import JobPod, pod_of_job
from shoal.controllers.volcano.job_sync import JobSync
from shoal.controllers.volcano.names import BATCH, JOB_NAME
from shoal.controllers.volcano.views import group_of
from shoal.engine.queues.disciplines.volcano.objects import QueuedPodGroup, VolcanoMeta

_GATHER_S = 0.05
_JOB_NAME = JOB_NAME.encode()
_MAX_PODS = 50_000
"""Each sync visits every pod of a job: a mistyped number would block all other jobs."""


class JobController:
    def __init__(self, context: Context, is_volcano_absent: Callable[[], bool]) -> None:
        self._is_volcano_absent = is_volcano_absent
        self._jobs = context.informers.of(VOLCANO_JOBS)
        self._context = JobContext(context)
        self.loop = Loop(context, self._reconcile)
        self.loop.need(VOLCANO_JOBS, PODS, VOLCANO_POD_GROUPS, PRIORITY_CLASSES)
        self._jobs.on_change(self._job_changed)
        context.informers.of(PODS).on_change(self._pod_changed)
        context.informers.of(VOLCANO_POD_GROUPS).on_change(self._group_changed)

    def wake(self) -> None:
        for item in self._jobs:
            self.loop.wake(item.key)

    def sync_of(self, item: Item, job: VolcanoJob) -> JobSync:
        return JobSync(self._context, item, job)

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        """Pods that change together cause one sync."""
        if after is None and before is not None:
            self._context.record_lost(before)
        item = after or before
        # Most pods belong to no job, and each change of any pod comes here.
        if item is not None and _JOB_NAME in item.data:
            self._wake_owner(item, pod_of_job(item))

    def _group_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None:
            self._wake_owner(item, group_of(item))

    def _wake_owner(self, item: Item, read: JobPod | QueuedPodGroup | None) -> None:
        owner = read.metadata.controller() if read is not None else None
        if owner is not None and owner.kind == VOLCANO_JOBS.name and owner.api_version.startswith(f"{BATCH}/"):
            self.loop.wake((item.namespace, owner.name), _GATHER_S)

    def _job_changed(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            self.loop.wake(after.key)
        elif before is not None:
            self._context.forget(before.uid)

    async def _reconcile(self, key: Key) -> float | None:
        item = self._jobs.get(*key)
        if item is None or not self._is_volcano_absent():
            return None
        job = job_of(item)
        if job is None:
            self._context.warn(_unreadable_job(item), "JobStatusError", f"invalid Job: {job_of.fault(item)}")
            return None
        error = _spec_error(job)
        if error and job.phase not in FINISHED:
            self._context.warn(job, "JobStatusError", error)
            await self.sync_of(item, job).reject(error)
            return None
        return await self.sync_of(item, job).run()


def _spec_error(job: VolcanoJob) -> str:
    """Why the spec is invalid, where Volcano's admission webhook would have rejected it."""
    tasks = job.tasks()
    names = [task.name for task in tasks]
    if not tasks:
        return "No task specified in job spec"
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        return f"duplicated task name {doubled[0]}"
    if job.replicas > _MAX_PODS:
        return f"the tasks have {job.replicas} replicas in total: a job may have at most {_MAX_PODS} pods"
    if job.minimum > job.replicas:
        return "job 'minAvailable' should not be greater than total replicas in tasks"
    for task in tasks:
        unknown = [name for name in (task.depends_on.name if task.depends_on else ()) if name not in names]
        if unknown:
            return f"task {task.name} depends on unknown task {unknown[0]}"
    return ""


def _unreadable_job(item: Item) -> VolcanoJob:
    """The metadata of a job that cannot be decoded, for the Event about it."""
    return VolcanoJob(VolcanoMeta(item.name, item.namespace, item.uid))
