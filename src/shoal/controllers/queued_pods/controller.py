"""Holds queued pods until their Workload is admitted, and stops them when it is evicted.

One loop runs over Workloads by name; changes of pods, Workloads and serving kinds wake it. It starts when the server
serves the kind Workload, even if that is installed later.
"""

from __future__ import annotations

import asyncio

from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import (
    LEADER_WORKER_SETS,
    RESOURCE_FLAVORS,
    VOLCANO_JOBS,
    WORKLOAD_PRIORITY_CLASSES,
    WORKLOADS,
)
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import PODS, PRIORITY_CLASSES, STATEFUL_SETS, Kind
from shoal.client.loop import Loop
from shoal.client.refusals import NotFoundError
from shoal.client.served import Served
from shoal.controllers.queued_pods.elastic_workloads import ElasticWorkloads
from shoal.controllers.queued_pods.fault_reports import FaultReports
from shoal.controllers.queued_pods.kueue_names import PRIORITY_LABEL
from shoal.controllers.queued_pods.pod_group_lifecycle import PodGroupLifecycle
from shoal.controllers.queued_pods.pod_groups import GROUP_KINDS, PodGroups
from shoal.controllers.queued_pods.pod_lifecycle import PodLifecycle
from shoal.controllers.queued_pods.pods_of_jobs import PodsOfJobs
from shoal.controllers.queued_pods.priorities import Priorities
from shoal.controllers.queued_pods.serving_kinds import excess_of
from shoal.controllers.queued_pods.workload_context import WorkloadContexts, keys_of_pod
from shoal.controllers.queued_pods.workload_creator import WorkloadCreator
from shoal.controllers.queued_pods.workload_lifecycle import QueuedWorkloadLifecycle
from shoal.controllers.queued_pods.workload_view import WorkloadView
from shoal.controllers.queued_pods.writer import QueuedPodWriter
from shoal.controllers.queued_work.rules import JobRules, Rules
from shoal.store.watched.queue_configuration import WhenNew, never_new

_OLDER = "v1beta1"
_ASKED_ABOUT = 16
_LATER_S = 30.0
_AGAIN_S = 1.0
_BATCH_S = 0.01
_CLASS = PRIORITY_LABEL.encode()


def queued_pods_controller(
    context: Context, served: Served, rules: Rules = JobRules, when_new: WhenNew = never_new
) -> Controller:
    made = QueuedPods(context, served, rules)
    when_new(made.reconcile_all)
    return made


class QueuedPods:
    def __init__(self, context: Context, served: Served, rules: Rules) -> None:
        self.name = context.name
        self._context = context
        self._served = served
        self._rules = rules
        self._found: asyncio.Queue[Kind] = asyncio.Queue()
        self._reconciler: _Reconciler | None = None
        for kind in (RESOURCE_FLAVORS, WORKLOAD_PRIORITY_CLASSES):
            served.when_there(kind, lambda one: _ignored(context.informers.of(one)), kind._replace(version=_OLDER))
        served.when_there(LEADER_WORKER_SETS)
        served.when_there(VOLCANO_JOBS)
        for kind, versions in GROUP_KINDS.items():
            # Found together with Workloads, so that no pod of a group is taken for one whose group is missing.
            served.when_there(kind, None, *(kind._replace(version=version) for version in versions))
        served.when_there(WORKLOADS, self._found.put_nowait, WORKLOADS._replace(version=_OLDER))

    async def run(self) -> None:
        """Until cancelled."""
        if self._reconciler is None:
            self._reconciler = _Reconciler(self._context, self._served, await self._found.get(), self._rules)
        # The reconciler of an earlier run continues: it is registered with the caches already.
        await self._reconciler.run()

    def reconcile_all(self) -> None:
        """The rules have changed."""
        if self._reconciler is not None:
            self._reconciler.reconcile_all()


class _Reconciler:
    def __init__(self, context: Context, served: Served, workloads: Kind, rules: Rules) -> None:
        self._context = context
        self._served = served
        self._workloads = workloads
        self._writer = QueuedPodWriter(context, workloads)
        self._groups = PodGroups(context, served)
        self._jobs = PodsOfJobs(context, served)
        self._contexts = WorkloadContexts(context, served, workloads, self._groups, self._jobs)
        faults = FaultReports(self._writer)
        self._creator = WorkloadCreator(self._writer, Priorities(context, served), faults, self._groups)
        pod_lifecycle = PodLifecycle(self._writer, self._flavor, faults)
        self._lifecycle = QueuedWorkloadLifecycle(
            self._writer,
            pod_lifecycle,
            ElasticWorkloads(self._writer, self._creator),
            PodGroupLifecycle(self._writer, faults, self._groups),
        )
        self._rules = rules
        self._loop = Loop(context, self.reconcile, workers=16)
        self._follow()

    async def run(self) -> None:
        await self._loop.run()

    def _follow(self) -> None:
        loop = self._loop
        loop.follow(self._workloads, self._contexts.keys_of_workload)
        loop.need(PODS)
        self._context.informers.of(PODS).on_change(self._pod_changed)
        loop.follow(STATEFUL_SETS, lambda item: self._contexts.keys_of_parent(STATEFUL_SETS, item))
        loop.need(PRIORITY_CLASSES)
        self._jobs.follow(loop)
        self._groups.follow(loop, lambda pod: self._pod_changed(None, pod))
        self._served.when_there(LEADER_WORKER_SETS, self._follow_leaders)
        self._served.when_there(WORKLOAD_PRIORITY_CLASSES, self._follow_classes)

    def reconcile_all(self) -> None:
        for workload in self._context.informers.of(self._workloads):
            for key in self._contexts.keys_of_workload(workload):
                self._loop.wake(key)

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        """Changes of many pods of a group are handled together."""
        for item in (before, after):
            for key in keys_of_pod(item) if item is not None else ():
                self._loop.wake(key, _BATCH_S)

    def _follow_leaders(self, kind: Kind) -> None:
        def changed(before: Item | None, after: Item | None) -> None:
            for item in (before, after):
                for key in self._contexts.keys_of_parent(kind, item) if item is not None else ():
                    self._loop.wake(key)
            excess = excess_of(kind, after) if after is not None else ""
            if after is not None and excess and (before is None or excess_of(kind, before) != excess):
                self._writer.record_on(after.obj(), kind, "TooManyReplicas", excess, "Warning")

        self._context.informers.of(kind).on_change(changed)

    def _follow_classes(self, kind: Kind) -> None:
        """Pods may have waited for a class that is created now."""

        def changed(before: Item | None, _: Item | None) -> None:
            if before is None:
                for pod in self._context.informers.of(PODS):
                    if _CLASS in pod.data:
                        for key in keys_of_pod(pod):
                            self._loop.wake(key)
                for item in self._context.informers.of(STATEFUL_SETS):
                    for key in self._contexts.keys_of_parent(STATEFUL_SETS, item):
                        self._loop.wake(key)

        self._context.informers.of(kind).on_change(changed)

    def _flavor(self, name: str) -> Obj | None:
        kind = self._served.find(RESOURCE_FLAVORS)
        item = self._context.informers.of(kind).get("", name) if kind is not None else None
        return None if item is None else item.obj()

    async def reconcile(self, key: Key) -> float | None:
        rules, context = self._rules(), self._contexts.of(key)
        of_jobs, is_unknown = self._contexts.pods_of_jobs(key)
        if rules is not None:
            await self._writer.let_go(of_jobs)
        if context is None:
            return _AGAIN_S if is_unknown else None
        if rules is None:
            return _LATER_S
        item, workload = context.item, context.workload
        if item is None or workload is None:
            parent = context.parent
            if parent is None or rules.frameworks.has(parent.kind.group, parent.kind.name):
                await self._creator.create(context)
        elif workload.is_terminating():
            await self._lifecycle.handle_deletion(context, item, workload)
        elif not context.pods and context.parent is None:
            if await self._is_orphaned(context.key, workload):
                for each in (*context.older, *context.newer, item):
                    await self._writer.delete_workload(each)
                for key in self._contexts.keys_of_pods_elsewhere(context.key):
                    self._loop.wake(key)
        else:
            return await self._lifecycle.reconcile(context, item, workload, rules)
        return None

    async def _is_orphaned(self, key: Key, workload: WorkloadView) -> bool:
        """Whether all owners of the Workload are deleted, or have other Workloads now. This asks the server, because
        the cache of pods may be older than the cache of Workloads."""
        if self._contexts.keys_of_pods_elsewhere(key):
            return True
        owners = workload.metadata.owner_references
        if not owners or len(owners) > _ASKED_ABOUT:
            # The garbage collector checks each owner.
            return False
        for owner in owners:
            kind = {PODS.name: PODS, STATEFUL_SETS.name: STATEFUL_SETS}.get(owner.kind)
            kind = kind or self._served.find(LEADER_WORKER_SETS)
            if kind is None or kind.name != owner.kind:
                return False
            try:
                found = await self._context.api.get(kind, key[0], owner.name)
            except NotFoundError:
                continue
            if found.uid == owner.uid and (kind == PODS or key in self._contexts.keys_of_parent(kind, found)):
                return False
        return True


def _ignored(_: object) -> None:
    """Fills the cache of the kind; no loop has to be woken."""
