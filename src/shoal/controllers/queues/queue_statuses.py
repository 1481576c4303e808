"""The statuses of cluster queues, local queues and cohorts, and the finalizers of what is in use.

Written beside the rounds, at most once a second for each object and only what is another than before: a thousand
admissions are a few writes.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

from shoal.controllers.queues.figures import Census, Figures, census_of, usage_of
from shoal.controllers.queues.local_use import put_use
from shoal.controllers.queues.words import why_closed
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.shares import share_of
from shoal.engine.queues.state import Queues
from shoal.engine.queues.tree import Node
from shoal.store.live.conditions import Moment, Status, difference, put
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    COHORTS,
    KUEUE_TOPOLOGIES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
)
from shoal.store.live.guarded import Guarded
from shoal.store.live.item import Item
from shoal.store.live.kind import Kind
from shoal.store.watched.queue_news import WorkloadSight
from shoal.store.watched.queues import WatchedQueues

_log = logging.getLogger("shoal.queues")
IN_USE = "kueue.x-k8s.io/resource-in-use"
_EVERY_S = 1.0
_SELDOM_S = 3600.0
_ACTIVE = "Active"
_FINALIZED = (CLUSTER_QUEUES, RESOURCE_FLAVORS, ADMISSION_CHECKS, KUEUE_TOPOLOGIES)


class QueueStatuses:
    def __init__(self, context: Context, watched: WatchedQueues) -> None:
        self._context = context
        self._watched = watched
        self._kueue: Kueue | None = None
        self._sights: Mapping[str, WorkloadSight] = {}
        self._noted = asyncio.Event()
        self._guarded = Guarded(context.api, context.clock, self._noted.set)

    def note(self, kueue: Kueue, sights: Mapping[str, WorkloadSight]) -> None:
        """A round is over."""
        self._kueue, self._sights = kueue, sights
        self._noted.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            timer = self._context.clock.call_later(self._until_use_s(), self._noted.set)
            try:
                await self._noted.wait()
            finally:
                timer.cancel()
            self._noted.clear()
            if self._kueue is not None and not await self._write_all(self._kueue):
                self._noted.set()
            await self._context.clock.sleep(_EVERY_S)

    # Inside

    def _until_use_s(self) -> float:
        """Use of local queues is told as time goes by, whatever happens."""
        kueue = self._kueue
        return kueue.queues.settings.usage_sampling_s if kueue is not None and kueue.usage.is_on else _SELDOM_S

    async def _write_all(self, kueue: Kueue) -> bool:
        """Whether all is as it should be."""
        queues = kueue.queues
        census = census_of(queues, self._sights)
        is_done = True
        for kind, wanted in (
            (CLUSTER_QUEUES, self._cluster_queue),
            (LOCAL_QUEUES, self._local_queue),
            (COHORTS, self._cohort),
        ):
            for item in self._items(kind):
                is_done = await self._tried(item, self._tell(kind, item, partial(wanted, queues, census))) and is_done
        for kind in _FINALIZED:
            for item in self._items(kind):
                is_done = await self._tried(item, self._finalize(queues, kind, item)) and is_done
        return is_done

    async def _tried(self, item: Item, writing: Awaitable[bool]) -> bool:
        try:
            return await writing
        except Exception:  # noqa: BLE001 - one that breaks the code must not keep the others from being told
            _log.exception("%s cannot be told", item.name)
            return False

    async def _tell(self, kind: Kind, item: Item, wanted: Callable[..., None]) -> bool:
        obj = item.obj()
        before = obj.get("status") or {}
        after = copy.deepcopy(before)
        meta, clock = obj["metadata"], self._context.clock
        moment = Moment(clock.text(), clock.seconds(), int(meta.get("generation") or 0))
        wanted(item, after, moment, is_leaving=bool(meta.get("deletionTimestamp")))
        body = difference(before, after)
        return await self._patch(kind, item, {"status": body}, "status") if body else True

    def _items(self, kind: Kind) -> Iterable[Item]:
        served = self._watched.kind(kind)
        return () if served is None else self._context.informers.of(served)

    async def _patch(self, kind: Kind, item: Item, body: dict[str, Any], door: str = "") -> bool:
        return await self._guarded.merged(self._watched.kind(kind) or kind, item, body, door)

    def _cluster_queue(
        self, queues: Queues, census: Census, item: Item, status: Status, moment: Moment, *, is_leaving: bool
    ) -> None:
        queue = queues.cluster_queues.get(item.name)
        if queue is None:
            self._unreadable(CLUSTER_QUEUES, item.name, status, moment)
            return
        figures = census.cluster_queues.get(item.name, Figures())
        put(status, _ACTIVE, why_closed(queues, queue, is_leaving=is_leaving), moment)
        status.update(figures.counts())
        status["flavorsReservation"] = usage_of(queue, figures.reserved, borrows=True)
        status["flavorsUsage"] = usage_of(queue, figures.used, borrows=True)
        self._share(queues, queue, status)

    def _local_queue(
        self, queues: Queues, census: Census, item: Item, status: Status, moment: Moment, *, is_leaving: bool
    ) -> None:
        local = queues.local_queues.get(f"{item.namespace}/{item.name}")
        if local is None:
            self._unreadable(LOCAL_QUEUES, f"{item.namespace}/{item.name}", status, moment)
        if local is None or is_leaving:
            return
        queue = queues.cluster_queues.get(local.cluster_queue)
        figures = census.local_queues.get(local.key, Figures())
        cannot = "Can't submit new workloads to clusterQueue"
        if local.stop != "None":
            says = (False, "Stopped", "LocalQueue is stopped")
        elif queue is None:
            says = (False, "ClusterQueueDoesNotExist", cannot)
        elif queue.closed is not None:
            says = (False, "ClusterQueueIsInactive", cannot)
        else:
            says = (True, "Ready", "Can submit new workloads to localQueue")
        put(status, _ACTIVE, says, moment)
        status.update(figures.counts())
        if queue is not None:
            status["flavorsReservation"] = usage_of(queue, figures.reserved, borrows=False)
            status["flavorsUsage"] = usage_of(queue, figures.used, borrows=False)

        if self._kueue is not None:
            put_use(status, self._kueue, local, moment)

    def _unreadable(self, kind: Kind, name: str, status: Status, moment: Moment) -> None:
        trouble = self._watched.troubles.find(self._watched.kind(kind) or kind, name)
        if trouble is not None:
            cannot = "admit new workloads" if kind is CLUSTER_QUEUES else "submit new workloads to localQueue"
            put(status, _ACTIVE, (False, trouble.reason, f"Can't {cannot}: {trouble.message}"), moment)

    def _cohort(
        self, queues: Queues, census: Census, item: Item, status: Status, moment: Moment, *, is_leaving: bool
    ) -> None:
        del census, moment
        cohort = queues.cohorts.get(item.name)
        if cohort is not None and not is_leaving:
            self._share(queues, cohort, status)

    def _share(self, queues: Queues, node: Node, status: Status) -> None:
        if queues.settings.fair_sharing:
            status["fairSharing"] = {**(status.get("fairSharing") or {}), "weightedShare": share_of(node).weighted}

    async def _finalize(self, queues: Queues, kind: Kind, item: Item) -> bool:
        meta = item.obj()["metadata"]
        present = list(meta.get("finalizers") or ())
        is_leaving = bool(meta.get("deletionTimestamp"))
        if not is_leaving and IN_USE not in present:
            return await self._patch(kind, item, {"metadata": {"finalizers": [*present, IN_USE]}})
        if is_leaving and IN_USE in present and not _is_used(queues, kind, item.name):
            left = [name for name in present if name != IN_USE]
            return await self._patch(kind, item, {"metadata": {"finalizers": left}})
        return True


def _is_used(queues: Queues, kind: Kind, name: str) -> bool:
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
