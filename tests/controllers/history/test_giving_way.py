"""The recorder leaves the processor to bindings, and records later what it has left."""

from __future__ import annotations

from pathlib import Path

from build.recorders import RecorderRun
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.kind import PODS
from shoal.client.recorder import Recorder
from shoal.store.history.memory_tables import MemoryTables

POD_COUNT = 100


async def create_pods(cluster: SmallCluster) -> None:
    for number in range(POD_COUNT):
        container = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        await cluster.create(PODS, {"metadata": {"name": f"p-{number}"}, "spec": {"containers": [container]}})


def recorded(run: RecorderRun) -> int:
    return len(run.history.ledger.waits(0, 1 << 62))


@virtual
async def test_few_pods_are_recorded_while_bindings_wait_and_all_of_them_later(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        urgent = True
        run = RecorderRun(cluster, MemoryTables(), is_urgent=lambda: urgent)
        await cluster.pass_time(5)
        await create_pods(cluster)
        await cluster.pass_time(6)
        assert 0 < recorded(run) <= 80
        urgent = False
        await cluster.pass_time(3)
        assert recorded(run) == POD_COUNT
        await run.kill()


@virtual
async def test_the_moments_of_what_was_recorded_later_are_those_of_the_pods(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        run = RecorderRun(cluster, MemoryTables(), is_urgent=lambda: True)
        await cluster.pass_time(5)
        created_ms = round(cluster.clock.seconds() * 1000)
        await create_pods(cluster)
        await cluster.pass_time(30)
        waits = run.history.ledger.waits(0, 1 << 62)
        assert len(waits) == POD_COUNT
        assert {wait.start_ms for wait in waits} == {created_ms // 1000 * 1000}
        await run.kill()


@virtual
async def test_events_that_give_way_tell_that_something_is_urgent(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        events = Recorder(cluster.api, cluster.clock, "scheduler")
        assert not events.gives_way
        events.give_way(lambda: True)
        assert events.named("other").gives_way
