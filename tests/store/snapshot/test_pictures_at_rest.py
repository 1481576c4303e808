"""A picture of a cluster at rest is decided as the cluster was: nobody else is let in, placed or told to stop, and
whoever waits does so for the same reason. So what a command says of it is what happens."""

from __future__ import annotations

from pathlib import Path

from build.live_schedulers import add_node, is_bound, pod, start_scheduler
from build.queue_admission import (
    add_flavor,
    add_queue,
    queued_cluster,
    said,
    start_admission,
    start_pods,
    stop,
    submit,
    until_so,
)
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from build.volcano_scenes import volcano_scene
from shoal.api.decode import read
from shoal.cli.manifests import loaded_of, rounds_of
from shoal.client.kind import PODS, PRIORITY_CLASSES
from shoal.client.port import Deletion
from shoal.sim.queue_rounds import QueueRecord
from shoal.sim.rounds import Record
from shoal.store.snapshot.reading import read_snapshot

_AT_ONCE = Deletion(grace_s=0)


async def _is_at_rest(cluster: SmallCluster) -> Record:
    """The next round, on a picture."""
    picture = await read_snapshot(cluster.api)
    found = rounds_of(loaded_of(read(picture.to_json().decode(), "picture.json")), 42, keep_terminating=True).round()
    assert not any([found.placed, found.evicted, found.moved, found.ended]), found
    return found


async def _is_replayed(cluster: SmallCluster) -> dict[str, str]:
    """Checks it; the reasons, by workload."""
    found = await _is_at_rest(cluster)
    assert isinstance(found, QueueRecord)
    assert not any([found.admitted, found.preempted, found.stopped]), found
    told = {each.workload.partition("/")[2]: str(each.why) for each in found.waiting}
    for name, why in told.items():
        assert why == (await said(cluster, name, "QuotaReserved"))[1], name
    return told


async def _delete_slowly(cluster: SmallCluster, *names: str) -> None:
    """They end, and stay on their node until somebody says that they are gone."""
    for name in names:
        await cluster.patch(PODS, name, {"metadata": {"finalizers": ["example.com/stays"]}})
        await cluster.delete(PODS, name, _AT_ONCE)


@virtual
async def test_while_pods_of_the_preempted_end(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_node(cluster, "n1", cpu="4")
        await add_flavor(cluster)
        await add_queue(cluster, preemption={"withinClusterQueue": "LowerPriority"})
        await submit(cluster, "low", cpu="2", count=2)
        await until_so(cluster, "low")
        await start_pods(cluster, "low", 2, cpu="2")
        await cluster.until(lambda: is_bound(cluster, "low-0", "low-1"))
        await cluster.pass_time(2)
        assert await _is_replayed(cluster) == {}
        await submit(cluster, "high", cpu="2", count=2, priority=10)
        await until_so(cluster, "low", "Evicted")
        await cluster.pass_time(2)
        assert await _is_replayed(cluster) == {"high": "WaitingForPreemptedWorkloads"}
        await _delete_slowly(cluster, "low-0", "low-1")
        await cluster.pass_time(2)
        assert await _is_replayed(cluster) == {"high": "WaitingForPreemptedWorkloads"}
        await stop(cluster, "low")
        await cluster.pass_time(5)
        assert (await _is_replayed(cluster))["high"] == "WaitingForPreemptedWorkloads"
        for name in ("low-0", "low-1"):
            await cluster.patch(PODS, name, {"metadata": {"finalizers": None}})
        await until_so(cluster, "high")
        await start_pods(cluster, "high", 2, cpu="2")
        await cluster.until(lambda: is_bound(cluster, "high-0", "high-1"))
        await cluster.pass_time(2)
        assert list(await _is_replayed(cluster)) == ["low"]


@virtual
async def test_while_a_pod_waits_for_others_to_end(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster)
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        await add_node(cluster, "n1", gpus=4)
        names = [f"low-{at}" for at in range(4)]
        for name in names:
            made = pod(name, gpus=1)
            made["metadata"]["finalizers"] = ["example.com/stays"]
            await cluster.create(PODS, made)
        await cluster.until(lambda: is_bound(cluster, *names))
        await cluster.create(PODS, pod("next", gpus=3))
        await cluster.create(PODS, pod("high", gpus=2, priorityClassName="high"))
        await cluster.until(lambda: _are_ending(cluster, 2))
        await cluster.pass_time(5)
        found = await _is_at_rest(cluster)
        assert [each.pod for each in found.nominated] in ([], ["default/high"])


async def _are_ending(cluster: SmallCluster, count: int) -> bool:
    return sum("deletionTimestamp" in one["metadata"] for one in await cluster.pods()) == count


@virtual
async def test_of_volcano_queues_that_share(tmp_path: Path) -> None:
    """What is guaranteed to one stays free, whoever would fit there."""
    async with volcano_scene(tmp_path, gpus=6) as scene:
        two = {"nvidia.com/gpu": "2"}
        await scene.queue("a", deserved=two)
        await scene.queue("b", deserved=two, guarantee={"resource": two})
        for name, queue, count in (("own", "a", 2), ("more", "a", 1), ("theirs", "b", 1), ("wide", "a", 2)):
            await scene.group(name, minMember=count, queue=queue)
            for at in range(count):
                await scene.pod(f"{name}-{at}", name, gpus=1)
            await scene.cluster.pass_time(2)
        await scene.cluster.pass_time(10)
        assert await scene.bound() == {"own-0", "own-1", "more-0", "theirs-0"}
        await _is_at_rest(scene.cluster)
