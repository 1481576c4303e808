"""What is kept up beside a server, and the time it lives in."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import time

import pytest

from build.small_clusters import START_S, SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.clock import LoopClock, WallClock
from shoal.client.kind import NODES, Kind
from shoal.client.port import Api
from shoal.wiring.cluster_clock import ClockReading, clock_of, moment, restore, store, store_regularly
from shoal.wiring.controller_makers import make
from shoal.wiring.controllers import CONTROLLERS
from shoal.wiring.process_tasks import ProcessTasks

_LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease")
_READY = {"type": "Ready", "status": "True"}
_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def _life(cluster: SmallCluster) -> ProcessTasks:
    return ProcessTasks(cluster.api, cluster.api, cluster.clock)


@virtual
async def test_a_part_that_breaks_starts_again_and_the_others_restore(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        tasks, tries, steps = _life(cluster), [0], [0]

        async def brittle() -> None:
            tries[0] += 1
            if tries[0] < 3:
                raise RuntimeError("broke")
            await asyncio.Event().wait()

        async def steady() -> None:
            while True:
                steps[0] += 1
                await cluster.clock.sleep(1)

        tasks.start("brittle", brittle)
        tasks.start("steady", steady)
        await cluster.pass_time(10.5)
        assert (tries[0], steps[0]) == (3, 11)
        await tasks.end()
        await cluster.pass_time(10)
        assert steps[0] == 11


@virtual
async def test_a_part_that_breaks_while_it_is_ended_does_not_keep_the_others_from_ending(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        tasks = _life(cluster)

        async def sulking() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                raise OSError("the terminal is gone")

        tasks.start("sulking", sulking)
        await cluster.pass_time(1)
        async with asyncio.timeout(60):
            await tasks.end()


@virtual
async def test_nodes_are_ready_once_pods_may_come(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        tasks = _life(cluster)
        tasks.start("caches", tasks.informers.run)
        await cluster.create(NODES, {"metadata": {"name": "n"}, "spec": {"taints": [_TAINT]}})
        waiting = asyncio.ensure_future(tasks.nodes_ready(["n"], 600, has_lifecycle=True))
        await cluster.patch(NODES, "n", {"status": {"conditions": [_READY]}}, "status")
        await cluster.pass_time(5)
        assert not waiting.done()
        await cluster.patch(NODES, "n", {"spec": {"taints": None}})
        await cluster.pass_time(1)
        assert waiting.done()
        await tasks.end()


@virtual
async def test_a_node_that_never_comes_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        tasks = _life(cluster)
        tasks.start("caches", tasks.informers.run)
        await tasks.nodes_ready(["nobody"], 30)
        assert cluster.clock.seconds() >= START_S + 30
        await tasks.end()


@virtual
async def test_every_controller_of_the_list_can_be_made(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        for name in CONTROLLERS:
            assert callable(make(name, cluster.context(name)).run)


@virtual
async def test_a_cluster_that_ran_ahead_goes_on_from_where_it_was(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        ahead = LoopClock(START_S + 86_400, 60)
        keeping = asyncio.ensure_future(store_regularly(ahead, cluster.api))
        await cluster.pass_time(12)
        keeping.cancel()
        written = (await cluster.get(_LEASES, "shoal-clock", "kube-system"))["spec"]["renewTime"]
        assert written.startswith("2026-01-02T00:10:00")
        again = LoopClock(START_S, 60)
        await restore(again, cluster.api)
        assert again.text() == "2026-01-02T00:10:00Z"
        assert again.is_own
        slow = WallClock()
        await restore(slow, cluster.api)
        assert not slow.is_own
        later = LoopClock(START_S + 10 * 86_400, 60)
        await restore(later, cluster.api)
        assert later.seconds() == pytest.approx(START_S + 10 * 86_400, abs=1)


@virtual
async def test_a_cluster_at_the_machine_s_pace_writes_nothing_down(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await store_regularly(WallClock(), cluster.api)
        assert not [one for one in await cluster.all(_LEASES) if one["metadata"]["name"] == "shoal-clock"]


@virtual
async def test_a_cluster_that_slows_down_stays_ahead_and_says_so_when_it_ends(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        fast = LoopClock(time() + 1e6, 60)
        await store(fast, cluster.api)
        slow = WallClock()
        await restore(slow, cluster.api)
        assert slow.is_own
        assert slow.seconds() == pytest.approx(fast.seconds(), abs=60)
        await store(slow, cluster.api)
        assert slow.text()[:16] in (await cluster.get(_LEASES, "shoal-clock", "kube-system"))["spec"]["renewTime"]


@virtual
async def test_two_processes_tell_the_same_time() -> None:
    first = clock_of(60)
    second = clock_of(60, moment(first))
    assert second.seconds() - first.seconds() == pytest.approx(0, abs=5)
    assert isinstance(clock_of(1), WallClock)
    assert ClockReading.read(str(moment(first))).cluster_s == pytest.approx(first.seconds(), abs=1)


@virtual
async def test_what_is_opened_for_an_inner_life_is_closed_when_that_ends_and_not_later(tmp_path: Path) -> None:
    """Or a process that leads again and again would keep the connections of each time."""
    async with small_cluster(tmp_path) as cluster:
        outer, closed = _life(cluster), list[str]()

        def enter(tasks: ProcessTasks) -> Api:
            async def close() -> None:
                closed.append("closed")

            tasks.at_end(close)
            return cluster.api

        for number in range(3):
            inner = outer.inner(enter)
            inner.start("caches", inner.informers.run)
            await inner.end()
            assert len(closed) == number + 1
        await outer.end()
        assert len(closed) == 3
