"""Writes the statuses of ClusterQueues, LocalQueues and Cohorts, the finalizers of objects in use, and Events on
objects that cannot be read.

The writes run beside the rounds, at most once a second for each object and only for changed fields: a thousand
admissions cost a few writes.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

from shoal.client.conditions import Status, WriteTime, difference, put
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    COHORTS,
    KUEUE_TOPOLOGIES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    WORKLOADS,
)
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.client.optimistic_update import OptimisticUpdate
from shoal.controllers.queues.messages import active_condition
from shoal.controllers.queues.queue_counts import counts_to_api, put_recent_usage, usage_to_api
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.queue_counts import AllQueueCounts, QueueCounts, count_queues
from shoal.engine.queues.quota_tree import CohortNode
from shoal.engine.queues.shares import share_of
from shoal.engine.queues.state import Queues
from shoal.store.object_faults import ObjectFaults
from shoal.store.watched.queue_changes import WorkloadView
from shoal.store.watched.queues import WatchedQueues

_log = logging.getLogger("shoal.queues")
IN_USE = "kueue.x-k8s.io/resource-in-use"
_INTERVAL_S = 1.0
_NO_SAMPLING_S = 3600.0
_ACTIVE = "Active"
_FINALIZED = (CLUSTER_QUEUES, RESOURCE_FLAVORS, ADMISSION_CHECKS, KUEUE_TOPOLOGIES)


class QueueStatuses:
    def __init__(self, context: Context, watched: WatchedQueues) -> None:
        self._context = context
        self._watched = watched
        self._kueue: Kueue | None = None
        self._views: Mapping[str, WorkloadView] = {}
        self._noted = asyncio.Event()
        self._guarded = OptimisticUpdate(context.api, context.clock, self._noted.set)

    def note(self, kueue: Kueue, views: Mapping[str, WorkloadView]) -> None:
        """A round has ended with this state."""
        self._kueue, self._views = kueue, views
        self._noted.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            timer = self._context.clock.call_later(self._until_sample_s(), self._noted.set)
            try:
                await self._noted.wait()
            finally:
                timer.cancel()
            self._noted.clear()
            if self._kueue is not None and not await self._write_all(self._kueue):
                self._noted.set()
            await self._context.clock.sleep(_INTERVAL_S)

    # internals

    def _until_sample_s(self) -> float:
        """The recent usage of LocalQueues is written once per sampling interval, even if nothing else changes."""
        kueue = self._kueue
        return kueue.queues.settings.usage_sampling_s if kueue is not None and kueue.usage.is_on else _NO_SAMPLING_S

    async def _write_all(self, kueue: Kueue) -> bool:
        """Returns whether all objects are up to date."""
        queues = kueue.queues
        counts = count_queues(queues, self._views.values())
        is_complete = True
        for kind, change in (
            (CLUSTER_QUEUES, self._cluster_queue),
            (LOCAL_QUEUES, self._local_queue),
            (COHORTS, self._cohort),
        ):
            for item in self._items(kind):
                is_complete = (
                    await self._attempt(item, self._update(kind, item, partial(change, queues, counts))) and is_complete
                )
        for kind in _FINALIZED:
            for item in self._items(kind):
                is_complete = await self._attempt(item, self._finalize(queues, kind, item)) and is_complete
        return is_complete

    async def _attempt(self, item: Item, writing: Awaitable[bool]) -> bool:
        try:
            return await writing
        except Exception:  # noqa: BLE001 - an object that the code cannot handle must not delay the others
            _log.exception("cannot update %s", item.name)
            return False

    async def _update(self, kind: Kind, item: Item, change: Callable[..., None]) -> bool:
        obj = item.obj()
        before = obj.get("status") or {}
        after = copy.deepcopy(before)
        meta, clock = obj["metadata"], self._context.clock
        moment = WriteTime(clock.text(), clock.seconds(), int(meta.get("generation") or 0))
        change(item, after, moment, is_terminating=bool(meta.get("deletionTimestamp")))
        body = difference(before, after)
        return await self._patch(kind, item, {"status": body}, "status") if body else True

    def _items(self, kind: Kind) -> Iterable[Item]:
        served = self._watched.kind(kind)
        return () if served is None else self._context.informers.of(served)

    async def _patch(self, kind: Kind, item: Item, body: dict[str, Any], subresource: str = "") -> bool:
        return await self._guarded.merged(self._watched.kind(kind) or kind, item, body, subresource)

    def _cluster_queue(
        self,
        queues: Queues,
        counts: AllQueueCounts,
        item: Item,
        status: Status,
        moment: WriteTime,
        *,
        is_terminating: bool,
    ) -> None:
        queue = queues.cluster_queues.get(item.name)
        if queue is None:
            self._put_unreadable(CLUSTER_QUEUES, item.name, status, moment)
            return
        own = counts.cluster_queues.get(item.name, QueueCounts())
        put(status, _ACTIVE, active_condition(queues, queue, is_terminating=is_terminating), moment)
        status.update(counts_to_api(own))
        status["flavorsReservation"] = usage_to_api(queue, own.reserved, borrows=True)
        status["flavorsUsage"] = usage_to_api(queue, own.used, borrows=True)
        self._put_share(queues, queue, status)

    def _local_queue(
        self,
        queues: Queues,
        counts: AllQueueCounts,
        item: Item,
        status: Status,
        moment: WriteTime,
        *,
        is_terminating: bool,
    ) -> None:
        local = queues.local_queues.get(f"{item.namespace}/{item.name}")
        if local is None:
            self._put_unreadable(LOCAL_QUEUES, f"{item.namespace}/{item.name}", status, moment)
        if local is None or is_terminating:
            return
        queue = queues.cluster_queues.get(local.cluster_queue)
        own = counts.local_queues.get(local.key, QueueCounts())
        cannot = "Can't submit new workloads to clusterQueue"
        if local.stop != "None":
            condition = (False, "Stopped", "LocalQueue is stopped")
        elif queue is None:
            condition = (False, "ClusterQueueDoesNotExist", cannot)
        elif queue.closed is not None:
            condition = (False, "ClusterQueueIsInactive", cannot)
        else:
            condition = (True, "Ready", "Can submit new workloads to localQueue")
        put(status, _ACTIVE, condition, moment)
        status.update(counts_to_api(own))
        if queue is not None:
            status["flavorsReservation"] = usage_to_api(queue, own.reserved, borrows=False)
            status["flavorsUsage"] = usage_to_api(queue, own.used, borrows=False)

        if self._kueue is not None:
            put_recent_usage(status, self._kueue, local, moment)

    def _put_unreadable(self, kind: Kind, name: str, status: Status, moment: WriteTime) -> None:
        fault = self._watched.troubles.find(self._watched.kind(kind) or kind, name)
        if fault is not None:
            cannot = "admit new workloads" if kind is CLUSTER_QUEUES else "submit new workloads to localQueue"
            put(status, _ACTIVE, (False, fault.reason, f"Can't {cannot}: {fault.message}"), moment)

    def _cohort(
        self,
        queues: Queues,
        counts: AllQueueCounts,
        item: Item,
        status: Status,
        moment: WriteTime,
        *,
        is_terminating: bool,
    ) -> None:
        del counts, moment
        cohort = queues.cohorts.get(item.name)
        if cohort is not None and not is_terminating:
            self._put_share(queues, cohort, status)

    def _put_share(self, queues: Queues, node: CohortNode, status: Status) -> None:
        if queues.settings.fair_sharing:
            status["fairSharing"] = {**(status.get("fairSharing") or {}), "weightedShare": share_of(node).weighted}

    async def _finalize(self, queues: Queues, kind: Kind, item: Item) -> bool:
        meta = item.obj()["metadata"]
        present = list(meta.get("finalizers") or ())
        is_terminating = bool(meta.get("deletionTimestamp"))
        if not is_terminating and IN_USE not in present:
            return await self._patch(kind, item, {"metadata": {"finalizers": [*present, IN_USE]}})
        if is_terminating and IN_USE in present and not _is_in_use(queues, kind, item.name):
            left = [name for name in present if name != IN_USE]
            return await self._patch(kind, item, {"metadata": {"finalizers": left}})
        return True


def record_unreadable(context: Context, troubles: ObjectFaults) -> None:
    """Record an Event on each object that cannot be read, except Workloads: their QuotaReserved condition and its Event
    say so."""
    for fault in troubles.take():
        if (fault.kind.group, fault.kind.name) == (WORKLOADS.group, WORKLOADS.name):
            continue
        namespace, _, name = fault.key.rpartition("/")
        about = {
            "kind": fault.kind.name,
            "apiVersion": fault.kind.api_version,
            "metadata": {"name": name, "namespace": namespace, "uid": fault.uid},
        }
        context.events.record(about, fault.reason, fault.message, type_="Warning")


def _is_in_use(queues: Queues, kind: Kind, name: str) -> bool:
    if kind is CLUSTER_QUEUES:
        queue = queues.cluster_queues.get(name)
        return queue is not None and bool(queue.held)
    if kind is KUEUE_TOPOLOGIES:
        return any(flavor.topology == name for flavor in queues.flavors.values())
    for queue in queues.cluster_queues.values():
        if kind is ADMISSION_CHECKS and any(check.name == name for check in queue.facts.checks):
            return True
        if kind is RESOURCE_FLAVORS and any(f.name == name for group in queue.facts.groups for f in group.flavors):
            return True
    return False
