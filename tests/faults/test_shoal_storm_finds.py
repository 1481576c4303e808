"""What storms, and the search for what they might find, found in Shoal: each told as short as it can be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from build.foreign_kinds import established
from build.live_schedulers import LiveScheduler, add_node, is_bound, pod, start_scheduler
from build.queue_admission import add_flavor, add_queue, queued_cluster, submit
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import KUEUE, RESOURCE_FLAVORS, WORKLOAD_PRIORITY_CLASSES, WORKLOADS
from shoal.client.item import Item, Obj
from shoal.client.kind import DEFINITIONS, PODS, Kind
from shoal.client.port import Api, Patch
from shoal.client.refusals import StaleError
from shoal.client.served import Served
from shoal.controllers.queues.admission_loop import QueueAdmission
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.engine.events import Event, PodArrived
from shoal.engine.plan import Evict, Place
from shoal.store.watched.queues import WatchedQueues


@virtual
async def test_who_is_told_of_a_kind_finds_those_that_came_with_it(tmp_path: Path) -> None:
    """Jobs were held by somebody who had been told of flavors, and believed for good that there were no priorities."""
    async with small_cluster(tmp_path) as cluster:
        await _install_kueue(cluster)
        served = Served(cluster.context())
        found: list[Kind | None] = []
        served.when_there(RESOURCE_FLAVORS, lambda _: found.append(served.find(WORKLOAD_PRIORITY_CLASSES)))
        served.when_there(WORKLOAD_PRIORITY_CLASSES)
        await served.look()
        assert found == [WORKLOAD_PRIORITY_CLASSES]


async def _install_kueue(cluster: SmallCluster) -> None:
    for one in definitions():
        if one["spec"]["group"] == KUEUE:
            await cluster.create(DEFINITIONS, one)
    await established(cluster)


class _Desk:
    """Knows nothing until it is told to, and falls over pods of one name."""

    def __init__(self, falls_over: str = "") -> None:
        self.knows = asyncio.Event()
        self.is_idle = True
        self._falls_over = falls_over

    async def synced(self) -> None:
        await self.knows.wait()

    def hear(self, event: Event) -> bool:
        if self._falls_over and isinstance(event, PodArrived) and event.key == f"default/{self._falls_over}":
            raise ValueError(event.key)
        return False

    def round(self, _now_s: float) -> Sequence[Place | Evict]:
        return ()

    def next_s(self) -> float | None:
        return None

    async def run(self) -> None:
        await asyncio.Event().wait()


def _with(discipline: _Desk, live: LiveScheduler) -> None:
    live.loop.discipline = discipline


@virtual
async def test_nothing_is_placed_before_the_desk_knows_who_is_admitted(tmp_path: Path) -> None:
    """After a restart pods that wait in no queue were given the places of those that had been admitted."""
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1")
        await cluster.create(PODS, pod("a"))
        discipline = _Desk()
        start_scheduler(cluster, prepare=lambda live: _with(discipline, live))
        await cluster.pass_time(10)
        assert not await is_bound(cluster, "a")
        discipline.knows.set()
        await cluster.until(lambda: is_bound(cluster, "a"), 5)


@virtual
async def test_a_desk_that_never_knows_keeps_pods_waiting_for_a_while_only(tmp_path: Path) -> None:
    """Nobody may be allowed to read what it waits for."""
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1")
        await cluster.create(PODS, pod("a"))
        start_scheduler(cluster, prepare=lambda live: _with(_Desk(), live))
        await cluster.until(lambda: is_bound(cluster, "a"), 60)


@virtual
async def test_an_event_that_breaks_the_code_costs_no_other_event(tmp_path: Path) -> None:
    """All that had been drained with it was lost, and no other pod of that round was ever placed."""
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1")
        for name in ("a", "bad", "z"):
            await cluster.create(PODS, pod(name))
        discipline = _Desk(falls_over="bad")
        discipline.knows.set()
        start_scheduler(cluster, prepare=lambda live: _with(discipline, live))
        await cluster.until(lambda: is_bound(cluster, "a", "z"), 10)
        assert not await is_bound(cluster, "bad")


class _TooLate:
    """Somebody deletes a Workload whenever it is to be written."""

    def __init__(self, api: Api) -> None:
        self.patches = 0
        self._api = api

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        if kind.plural != WORKLOADS.plural:
            return await self._api.patch(kind, namespace, name, patch, subresource)
        self.patches += 1
        await self._api.delete(kind, namespace, name)
        raise StaleError("somebody was first", reason="Conflict")


@virtual
async def test_a_workload_that_goes_while_it_is_written_is_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It was told as a failure of the code, with its story."""
    async with queued_cluster(tmp_path) as cluster:
        api = _TooLate(cluster.api)
        live = LiveScheduler(cluster, api)
        live.loop.discipline = QueueAdmission(
            live.context, WatchedQueues(live.context, live.served, live.loop.wake), live.loop
        )
        live.start()
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "work")
        await cluster.pass_time(20)
        assert api.patches == 1
        assert not [record for record in caplog.records if record.exc_info]


class _NobodyIsHeard:
    """No pod can be bound, and none can be told so."""

    def __init__(self, api: Api) -> None:
        self.unheard = 0
        self._api = api

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def post(self, *_: Any) -> Obj:
        raise StaleError("somebody was first", reason="Conflict")

    async def patch(self, *_: Any) -> Item:
        self.unheard += 1
        raise StaleError("somebody was first", reason="Conflict")


@virtual
async def test_a_pod_that_cannot_be_told_why_it_waits_is_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody wrote its status at the same moment, and the log had a story."""
    async with small_cluster(tmp_path) as cluster:
        api = _NobodyIsHeard(cluster.api)
        await add_node(cluster, "n1")
        await cluster.create(PODS, pod("a"))
        start_scheduler(cluster, api)
        await cluster.pass_time(20)
        assert api.unheard
        assert not [record for record in caplog.records if record.exc_info]
