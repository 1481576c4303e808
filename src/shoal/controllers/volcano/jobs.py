"""Volcano's jobs: when each is looked at."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.controllers.volcano.absence import IsAway
from shoal.controllers.volcano.job import FINISHED, VolcanoJob, job_of
from shoal.controllers.volcano.job_look import Look
from shoal.controllers.volcano.job_office import JobOffice
from shoal.controllers.volcano.job_pods import pod_of_job
from shoal.controllers.volcano.names import BATCH, JOB_NAME
from shoal.controllers.volcano.sights import Meta, group_of
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import VOLCANO_JOBS, VOLCANO_POD_GROUPS
from shoal.store.live.informer import Informer
from shoal.store.live.item import Item, Key
from shoal.store.live.kind import PODS, PRIORITY_CLASSES
from shoal.store.live.loop import Loop

_GATHER_S = 0.05
_JOB_NAME = JOB_NAME.encode()
_MOST_PODS = 50_000
"""Every look goes over all of them: a number that somebody mistyped would stop all other jobs."""


class Jobs:
    def __init__(self, context: Context, is_away: IsAway) -> None:
        self._is_away = is_away
        self._jobs = context.informers.of(VOLCANO_JOBS)
        self._office = JobOffice(context)
        self.loop = Loop(context, self._reconcile)
        self.loop.need(VOLCANO_JOBS, PODS, VOLCANO_POD_GROUPS, PRIORITY_CLASSES)
        self._jobs.on_change(self._job_changed)
        self._follow(context.informers.of(PODS))
        self._follow(context.informers.of(VOLCANO_POD_GROUPS))

    def wake(self) -> None:
        for item in self._jobs:
            self.loop.wake(item.key)

    def look_at(self, item: Item, job: VolcanoJob) -> Look:
        return Look(self._office, item, job)

    def _follow(self, informer: Informer) -> None:
        """Pods that change together are one look."""

        def changed(before: Item | None, after: Item | None) -> None:
            if after is None and before is not None and informer.kind == PODS:
                self._office.lose(before)
            for item in (before, after):
                for key in _owners(item) if item is not None else ():
                    self.loop.wake(key, _GATHER_S)

        informer.on_change(changed)

    def _job_changed(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            self.loop.wake(after.key)
        elif before is not None:
            self._office.forget(before.uid)

    async def _reconcile(self, key: Key) -> float | None:
        item = self._jobs.get(*key)
        if item is None or not self._is_away():
            return None
        job = job_of(item)
        if job is None:
            self._office.warn(_nameless(item), "JobStatusError", f"the job cannot be read: {job_of.fault(item)}")
            return None
        fault = _fault(job)
        if fault and job.phase not in FINISHED:
            self._office.warn(job, "JobStatusError", fault)
            await self.look_at(item, job).refuse(fault)
            return None
        return await self.look_at(item, job).go()


def _fault(job: VolcanoJob) -> str:
    """Why no pod can be made of it; Volcano's admission would have refused it."""
    tasks = job.tasks()
    names = [task.name for task in tasks]
    if not tasks:
        return "No task specified in job spec"
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        return f"duplicated task name {doubled[0]}"
    if job.replicas > _MOST_PODS:
        return f"the job asks for {job.replicas} pods, more than the {_MOST_PODS} that one job may have"
    if job.least > job.replicas:
        return "job 'minAvailable' should not be greater than total replicas in tasks"
    for task in tasks:
        unknown = [name for name in (task.depends_on.name if task.depends_on else ()) if name not in names]
        if unknown:
            return f"task {task.name} depends on {unknown[0]}, which is no task of the job"
    return ""


def _nameless(item: Item) -> VolcanoJob:
    """Enough of a job that cannot be read to say so about it."""
    return VolcanoJob(Meta(item.name, item.namespace, item.uid))


def _owners(item: Item) -> Iterator[Key]:
    if _JOB_NAME not in item.data and b'"minMember"' not in item.data:
        return
    read = pod_of_job(item) if _JOB_NAME in item.data else group_of(item)
    owner = read.metadata.controller() if read is not None else None
    if owner is not None and owner.kind == VOLCANO_JOBS.name and owner.api_version.startswith(f"{BATCH}/"):
        yield (item.namespace, owner.name)
