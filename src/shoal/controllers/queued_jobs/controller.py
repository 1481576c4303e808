"""Reconciles queued jobs: one loop for each kind, started when the server serves the kind.

A job is reconciled when it or its Workload changes. The admission loop communicates with this controller only through
Workloads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import msgspec

from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import RESOURCE_FLAVORS, WORKLOAD_PRIORITY_CLASSES, WORKLOADS
from shoal.client.item import Item, Key
from shoal.client.kind import JOBS, NAMESPACES, PRIORITY_CLASSES, Kind
from shoal.client.loop import Loop
from shoal.client.served import Served
from shoal.controllers.queued_jobs.job_context import QueuedJobContext
from shoal.controllers.queued_jobs.job_kind import QueuedJobKind
from shoal.controllers.queued_jobs.job_kinds import JOB_KINDS
from shoal.controllers.queued_jobs.reconciler import JobReconciler, may_be_queued
from shoal.controllers.queued_jobs.workload_search import release_all
from shoal.controllers.queued_jobs.workloads import controller_of
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.kueue_names import PREBUILT
from shoal.controllers.queued_work.rules import JobRules, Rules
from shoal.store.watched.queue_configuration import WhenNew, never_new

_KUEUE_RUNS_S = 30.0
_NOTHING = msgspec.Raw()
_OLDER_VERSION = "v1beta1"
_PREBUILT = PREBUILT.encode()


class _RawLabels(msgspec.Struct, gc=False):
    labels: msgspec.Raw = _NOTHING


class _Namespace(msgspec.Struct, gc=False):
    metadata: _RawLabels


def queued_jobs_controller(
    context: Context, served: Served, rules: Rules = JobRules, when_new: WhenNew = never_new
) -> Controller:
    """Another part refreshes `served` at intervals."""
    controller = QueuedJobs(context, served, rules)
    when_new(controller.reconcile_all)
    return controller


class QueuedJobs:
    def __init__(self, context: Context, served: Served, rules: Rules) -> None:
        self.name = context.name
        self._context = context
        self._served = served
        self._rules = rules
        self._loops: dict[Kind, Loop] = {}
        self._group: asyncio.TaskGroup | None = None
        context.informers.of(NAMESPACES).on_change(self._namespace_changed)
        for kind in (WORKLOADS, RESOURCE_FLAVORS, WORKLOAD_PRIORITY_CLASSES):
            served.when_there(kind, self._kind_served, kind._replace(version=_OLDER_VERSION))
        for job_kind in JOB_KINDS:
            if job_kind.kind != JOBS:
                served.when_there(job_kind.kind, self._kind_served, *job_kind.kinds[1:])
            for kind in job_kind.refers_to:
                served.when_there(kind, self._kind_served)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                # Loops of an earlier run continue: they are registered with the caches already.
                for loop in self._loops.values():
                    group.create_task(loop.run())
                self._start_loops()
                await asyncio.Event().wait()
            finally:
                self._group = None

    def reconcile_all(self, namespace: str = "") -> None:
        """The rules for all jobs, or for those of a namespace, have changed: jobs may be queued now that were not."""
        for kind, loop in self._loops.items():
            found = self._find(kind)
            for job in self._context.informers.of(found) if found is not None else ():
                if namespace in ("", job.namespace):
                    loop.wake(job.key)

    def _namespace_changed(self, before: Item | None, after: Item | None) -> None:
        if before is not None and after is not None and _labels(before) != _labels(after):
            self.reconcile_all(after.name)

    def _kind_served(self, _kind: Kind) -> None:
        self._start_loops()

    def _start_loops(self) -> None:
        """Start a loop for every served kind that has none. Without the kind Workload none is started."""
        group, find = self._group, self._served.find
        if group is None or any(find(kind) is None for kind in (WORKLOADS, RESOURCE_FLAVORS)):
            return
        there = [kind for job_kind in JOB_KINDS if (kind := self._find(job_kind.kind)) is not None]
        for job_kind in JOB_KINDS:
            kind = self._find(job_kind.kind)
            if kind is not None and job_kind.kind not in self._loops and all(find(each) for each in job_kind.refers_to):
                loop = self._loops[job_kind.kind] = self._make_loop(job_kind, kind)
                # The ancestors of a job have to be known before it is reconciled.
                loop.need(*there)
                group.create_task(loop.run())

    def _make_loop(self, job_kind: QueuedJobKind, kind: Kind) -> Loop:
        context = QueuedJobContext(self._context, job_kind, kind, self._find, self._rules)

        async def reconcile(key: Key) -> float | None:
            rules = self._rules()
            if rules is None:
                return _KUEUE_RUNS_S
            item = context.jobs.get(*key)
            await release_all(context, key, item.uid if item is not None else "")
            if item is None:
                context.forget(key)
            elif rules.frameworks.has(kind.group, kind.name) and may_be_queued(item, rules):
                return await JobReconciler(context, item, rules).reconcile()
            return None

        loop = Loop(self._context, reconcile)
        loop.follow(kind)
        loop.follow(context.workload_kind, keys=_job_keys(context))
        needed = [PRIORITY_CLASSES, NAMESPACES]
        asked = (RESOURCE_FLAVORS, WORKLOAD_PRIORITY_CLASSES, *job_kind.refers_to)
        needed += [found for each in asked if (found := self._find(each)) is not None]
        loop.need(*needed)
        for each in job_kind.refers_to:
            self._wake_on_change(loop, context, each)
        return loop

    def _wake_on_change(self, loop: Loop, context: QueuedJobContext, kind: Kind) -> None:
        """Reconcile the jobs that may use a training runtime when it is created or changed."""
        found = self._find(kind)
        if found is None:
            return

        def changed(_before: Item | None, after: Item | None) -> None:
            if after is not None:
                for job in context.jobs:
                    if job.namespace == after.namespace or not after.namespace:
                        loop.wake(job.key)

        self._context.informers.of(found).on_change(changed)

    def _find(self, kind: Kind) -> Kind | None:
        return kind if kind == JOBS else self._served.find(kind)


def _job_keys(context: QueuedJobContext) -> Callable[[Item], Iterable[Key]]:
    """Returns a function from a Workload to the jobs to reconcile: its controller, or jobs that name it as prebuilt."""
    prebuilt = context.jobs.index("prebuilt workload", _prebuilt_names)
    kind = context.kind

    def keys(item: Item) -> Iterable[Key]:
        owner = controller_of(item)
        if owner is None:
            return [job.key for job in prebuilt[f"{item.namespace}/{item.name}"]]
        if (owner.api_version.rpartition("/")[0], owner.kind) != (kind.group, kind.name):
            return ()
        return ((item.namespace, owner.name),)

    return keys


def _labels(item: Item) -> bytes:
    return bytes(item.read(_Namespace).metadata.labels)


def _prebuilt_names(item: Item) -> Iterable[str]:
    if _PREBUILT in item.data:
        name = string_map(item.obj(), "metadata", "labels").get(PREBUILT)
        if name:
            yield f"{item.namespace}/{name}"
