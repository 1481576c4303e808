"""Who has places, and has to yield before it is bound, goes back behind whom it yields to: it is never begun."""

from __future__ import annotations

from pathlib import Path

from build.kai_clusters import add_gang, add_kai_queue, add_work, bound, kai_cluster, start_kai, terminating
from build.live_schedulers import add_node
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from build.volcano_scenes import VolcanoScene, bare_volcano, volcano
from shoal.client.item import Obj
from shoal.client.kind import Kind
from shoal.client.refusals import BusyError
from shoal.client.write_through import WriteThroughApi

_GPU = "nvidia.com/gpu"


class SlowToBind(WriteThroughApi):
    """The first bindings of pods whose names begin with an `a` are refused, and that takes a while."""

    def __init__(self, cluster: SmallCluster) -> None:
        super().__init__(cluster.api, cluster.informers)
        self._cluster = cluster
        self._refused: set[str] = set()

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        if subresource == "binding" and name.startswith("a") and name not in self._refused:
            await self._cluster.clock.sleep(8)
            self._refused.add(name)
            raise BusyError("lost", 1.0)
        return await super().post(kind, namespace, name, subresource, obj)


async def _volcano_gang(scene: VolcanoScene, name: str, count: int) -> None:
    """In the queue that it is named after, of pods with a GPU each."""
    await scene.group(name, minMember=count, queue=name[0])
    for at in range(count):
        await scene.pod(f"{name}-{at}", name, gpus=1)


async def _volcano_shared(scene: VolcanoScene) -> None:
    scene.cluster.start(volcano)
    await add_node(scene.cluster, "n1", gpus=8, cpu="64")
    scene.start_scheduler(SlowToBind(scene.cluster))
    for name in ("a", "b"):
        await scene.queue(name, deserved={_GPU: "4"})


@virtual
async def test_in_volcanos_queues_its_room_is_theirs_who_deserve_it(tmp_path: Path) -> None:
    async with bare_volcano(tmp_path) as scene:
        await _volcano_shared(scene)
        for at in range(8):
            await _volcano_gang(scene, f"a{at}", 1)
        await scene.cluster.pass_time(5)
        for at in range(4):
            await _volcano_gang(scene, f"b{at}", 1)
        await scene.cluster.pass_time(60)
        there = await scene.bound()
        assert {f"b{at}-0" for at in range(4)} <= there
        assert len(there) == 8
        assert await terminating(scene.cluster) == []


@virtual
async def test_a_gang_of_volcanos_goes_back_whole(tmp_path: Path) -> None:
    async with bare_volcano(tmp_path) as scene:
        await _volcano_shared(scene)
        await _volcano_gang(scene, "a", 8)
        await scene.cluster.pass_time(5)
        await _volcano_gang(scene, "b", 4)
        await scene.cluster.pass_time(60)
        assert await scene.bound() == {f"b-{at}" for at in range(4)}
        assert await terminating(scene.cluster) == []


@virtual
async def test_in_kais_queues_its_room_is_theirs_whose_quota_it_is(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster, SlowToBind(cluster))
        await add_node(cluster, "n1", gpus=4)
        for name in ("a", "b"):
            await add_kai_queue(cluster, name, 2)
        for index in range(4):
            await add_work(cluster, f"a{index}", "a")
        await cluster.pass_time(5)
        for index in range(2):
            await add_work(cluster, f"b{index}", "b")
        await cluster.pass_time(60)
        assert await bound(cluster, "b") == ["b0", "b1"]
        assert len(await bound(cluster, "a")) == 2
        assert await terminating(cluster) == []


@virtual
async def test_a_gang_of_kais_goes_back_whole(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster, SlowToBind(cluster))
        await add_node(cluster, "n1", gpus=4)
        for name in ("a", "b"):
            await add_kai_queue(cluster, name, 2)
        await add_gang(cluster, "a", "a", count=4, least=4)
        await cluster.pass_time(5)
        await add_gang(cluster, "b", "b", count=2, least=2)
        await cluster.pass_time(60)
        assert await bound(cluster) == ["b-0", "b-1"]
        assert await terminating(cluster) == []
