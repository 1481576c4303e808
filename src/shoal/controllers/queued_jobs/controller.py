"""Jobs that wait in queues: one loop for each kind that the server knows, begun when it does.

A job is looked at when it changes and when its Workload does; whoever decides about the Workload is met there only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import msgspec

from shoal.controllers.queued_jobs.finding import release_all
from shoal.controllers.queued_jobs.job_kinds import ROWS
from shoal.controllers.queued_jobs.office import Office
from shoal.controllers.queued_jobs.round import Round, concerns_queues
from shoal.controllers.queued_jobs.row import JobRow
from shoal.controllers.queued_jobs.workloads import owned
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.kueue_names import PREBUILT
from shoal.controllers.queued_work.rules import JobRules, Rules
from shoal.store.live.context import Context, Controller
from shoal.store.live.ecosystem_kinds import RESOURCE_FLAVORS, WORKLOAD_PRIORITY_CLASSES, WORKLOADS
from shoal.store.live.item import Item, Key
from shoal.store.live.kind import JOBS, NAMESPACES, PRIORITY_CLASSES, Kind
from shoal.store.live.loop import Loop
from shoal.store.live.served import Served
from shoal.store.watched.queue_configuration import WhenNew, never_new

_ELSEWHERE_S = 30.0
_NOTHING = msgspec.Raw()
_OLD = "v1beta1"
_PREBUILT = PREBUILT.encode()


class _Meta(msgspec.Struct, gc=False):
    labels: msgspec.Raw = _NOTHING


class _Namespace(msgspec.Struct, gc=False):
    metadata: _Meta


def queued_jobs_controller(
    context: Context, served: Served, rules: Rules = JobRules, when_new: WhenNew = never_new
) -> Controller:
    """`served` is asked by somebody else now and then."""
    made = QueuedJobs(context, served, rules)
    when_new(made.look_again)
    return made


class QueuedJobs:
    def __init__(self, context: Context, served: Served, rules: Rules) -> None:
        self.name = context.name
        self._context = context
        self._served = served
        self._rules = rules
        self._begun: dict[Kind, Loop] = {}
        self._group: asyncio.TaskGroup | None = None
        context.informers.of(NAMESPACES).on_change(self._namespace_changed)
        for kind in (WORKLOADS, RESOURCE_FLAVORS, WORKLOAD_PRIORITY_CLASSES):
            served.when_there(kind, self._come, kind._replace(version=_OLD))
        for row in ROWS:
            if row.kind != JOBS:
                served.when_there(row.kind, self._come, *row.kinds[1:])
            for kind in row.refers_to:
                served.when_there(kind, self._come)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                # Those of an earlier run go on: whom they follow is told to them already.
                for loop in self._begun.values():
                    group.create_task(loop.run())
                self._begin()
                await asyncio.Event().wait()
            finally:
                self._group = None

    def look_again(self, namespace: str = "") -> None:
        """Other rules hold for all jobs, or for those of a namespace: those that were nobody's may be ours by now."""
        for kind, loop in self._begun.items():
            found = self._find(kind)
            for job in self._context.informers.of(found) if found is not None else ():
                if namespace in ("", job.namespace):
                    loop.wake(job.key)

    def _namespace_changed(self, before: Item | None, after: Item | None) -> None:
        if before is not None and after is not None and _labels(before) != _labels(after):
            self.look_again(after.name)

    def _come(self, _kind: Kind) -> None:
        self._begin()

    def _begin(self) -> None:
        """Every kind that is there and has no loop yet. Without Workloads there is nothing to begin with."""
        group, find = self._group, self._served.find
        if group is None or any(find(kind) is None for kind in (WORKLOADS, RESOURCE_FLAVORS)):
            return
        there = [kind for row in ROWS if (kind := self._find(row.kind)) is not None]
        for row in ROWS:
            kind = self._find(row.kind)
            if kind is not None and row.kind not in self._begun and all(find(each) for each in row.refers_to):
                loop = self._begun[row.kind] = self._loop(row, kind)
                # Whose child a job is has to be known before anything is done about it.
                loop.need(*there)
                group.create_task(loop.run())

    def _loop(self, row: JobRow, kind: Kind) -> Loop:
        office = Office(self._context, row, kind, self._find, self._rules)

        async def reconcile(key: Key) -> float | None:
            rules = self._rules()
            if rules is None:
                return _ELSEWHERE_S
            item = office.jobs.get(*key)
            await release_all(office, key, item.uid if item is not None else "")
            if item is None:
                office.forget(key)
            elif rules.frameworks.has(kind.group, kind.name) and concerns_queues(item, rules):
                return await Round(office, item, rules).go()
            return None

        loop = Loop(self._context, reconcile)
        loop.follow(kind)
        loop.follow(office.workload_kind, keys=_jobs_of(office))
        needed = [PRIORITY_CLASSES, NAMESPACES]
        asked = (RESOURCE_FLAVORS, WORKLOAD_PRIORITY_CLASSES, *row.refers_to)
        needed += [found for each in asked if (found := self._find(each)) is not None]
        loop.need(*needed)
        for each in row.refers_to:
            self._wake_users(loop, office, each)
        return loop

    def _wake_users(self, loop: Loop, office: Office, kind: Kind) -> None:
        """Of a runtime, when it comes or changes."""
        found = self._find(kind)
        if found is None:
            return

        def changed(_before: Item | None, after: Item | None) -> None:
            if after is not None:
                for job in office.jobs:
                    if job.namespace == after.namespace or not after.namespace:
                        loop.wake(job.key)

        self._context.informers.of(found).on_change(changed)

    def _find(self, kind: Kind) -> Kind | None:
        return kind if kind == JOBS else self._served.find(kind)


def _jobs_of(office: Office) -> Callable[[Item], Iterable[Key]]:
    """Whose a Workload is: its controller's, or that of the jobs that ask for it by name."""
    prebuilt = office.jobs.index("prebuilt workload", _asked_for)
    kind = office.kind

    def keys(item: Item) -> Iterable[Key]:
        owner = owned(item).controller
        if owner is None:
            return [job.key for job in prebuilt[f"{item.namespace}/{item.name}"]]
        if (owner.api_version.rpartition("/")[0], owner.kind) != (kind.group, kind.name):
            return ()
        return ((item.namespace, owner.name),)

    return keys


def _labels(item: Item) -> bytes:
    return bytes(item.read(_Namespace).metadata.labels)


def _asked_for(item: Item) -> Iterable[str]:
    if _PREBUILT in item.data:
        name = string_map(item.obj(), "metadata", "labels").get(PREBUILT)
        if name:
            yield f"{item.namespace}/{name}"
