"""A scheduler that dies while it binds a gang, at every write: the successor completes the gang or undoes it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.frozen_api import FrozenApi
from build.live_schedulers import LiveScheduler, add_node, is_bound, places, pod, start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import PODS, PRIORITY_CLASSES
from shoal.client.port import Deletion

SIZE = 4
NAMES = tuple(f"train-{number}" for number in range(SIZE))


def member(name: str, size: int = SIZE) -> Obj:
    labels = {"pod-group.scheduling.sigs.k8s.io/name": "train"}
    labels["pod-group.scheduling.sigs.k8s.io/min-available"] = str(size)
    return pod(name, gpus=2, labels=labels)


async def gang_comes(cluster: SmallCluster) -> None:
    """It takes all there is."""
    for number in range(2):
        await add_node(cluster, f"n{number}", gpus=4)
    for name in NAMES:
        await cluster.create(PODS, member(name))


async def bind(cluster: SmallCluster, name: str, node: str) -> None:
    """By somebody else."""
    body: Obj = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    await cluster.api.post(PODS, "default", name, "binding", body)


async def bound(cluster: SmallCluster) -> list[str]:
    return sorted(name for name, node in (await places(cluster)).items() if node and name in NAMES)


async def ending(cluster: SmallCluster) -> list[str]:
    pods = await cluster.pods()
    return sorted(one["metadata"]["name"] for one in pods if "deletionTimestamp" in one["metadata"])


async def dies_after(cluster: SmallCluster, writes: int, *, is_lost: bool) -> None:
    api = FrozenApi(cluster.api, writes, is_lost=is_lost)
    live = start_scheduler(cluster, api)
    await asyncio.wait_for(api.frozen.wait(), 120)
    await live.kill()
    await cluster.pass_time(0.001)


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("writes", range(1, SIZE))
@virtual
async def test_the_successor_completes_a_gang_that_was_left_half(writes: int, is_lost: bool, tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await gang_comes(cluster)
        await dies_after(cluster, writes, is_lost=is_lost)
        assert len(await bound(cluster)) == writes
        start_scheduler(cluster)
        await cluster.until(lambda: is_bound(cluster, *NAMES), 5)
        await cluster.pass_time(60)
        assert not await ending(cluster)


@pytest.mark.parametrize("writes", range(1, SIZE))
@virtual
async def test_what_cannot_be_completed_is_undone_and_starts_anew(writes: int, tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await gang_comes(cluster)
        await dies_after(cluster, writes, is_lost=False)
        left = await bound(cluster)
        there = [node for node in (await places(cluster)).values() if node]
        await cluster.create(PODS, pod("thief", gpus=2, schedulerName="other"))
        await bind(cluster, "thief", next(node for node in ("n0", "n1") if there.count(node) < 2))
        rolled_back: list[str] = []
        LiveScheduler(cluster, rolled_back=lambda: rolled_back.append("a gang")).start()
        await cluster.pass_time(25)
        assert await bound(cluster) == left
        assert not rolled_back
        assert not await ending(cluster)
        await cluster.pass_time(15)
        assert await ending(cluster) == left
        said = [one["message"] for one in await cluster.events(left[0]) if one["reason"] == "GangRolledBack"]
        assert said == [
            f"Only {writes} of the {SIZE} pods that gang default/train needs got a node: it is started anew"
        ]
        assert rolled_back == ["a gang"]
        for name in left:
            await cluster.delete(PODS, name, Deletion(grace_s=0))
            await cluster.create(PODS, member(name))
        await cluster.pass_time(60)
        assert not await bound(cluster)
        await cluster.delete(PODS, "thief", Deletion(grace_s=0))
        await cluster.until(lambda: is_bound(cluster, *NAMES), 5)


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("writes", range(1, 6))
@virtual
async def test_whoever_dies_while_undoing_a_gang_is_followed_by_one_that_goes_on(
    writes: int, is_lost: bool, tmp_path: Path
) -> None:
    async with small_cluster(tmp_path) as cluster:
        await gang_comes(cluster)
        await dies_after(cluster, 2, is_lost=False)
        left = await bound(cluster)
        await add_thieves(cluster)
        # Two pods that wait are told, and two are marked and ended.
        await dies_after(cluster, writes, is_lost=is_lost)
        start_scheduler(cluster)
        await cluster.pass_time(60)
        assert await ending(cluster) == left


async def add_thieves(cluster: SmallCluster) -> None:
    there = [node for node in (await places(cluster)).values() if node]
    for number, node in enumerate(("n0", "n1")):
        for more in range(2 - there.count(node)):
            name = f"thief-{number}-{more}"
            await cluster.create(PODS, pod(name, gpus=2, schedulerName="other"))
            await bind(cluster, name, node)


@virtual
async def test_a_gang_that_merely_lost_a_pod_is_left_alone(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await gang_comes(cluster)
        first = start_scheduler(cluster)
        await cluster.until(lambda: is_bound(cluster, *NAMES))
        await first.kill()
        await cluster.pass_time(10)
        await cluster.delete(PODS, "train-1", Deletion(grace_s=0))
        await add_thieves(cluster)
        await cluster.create(PODS, member("train-1"))
        start_scheduler(cluster)
        await cluster.pass_time(120)
        assert len(await bound(cluster)) == SIZE - 1
        assert not await ending(cluster)


@virtual
async def test_a_gang_that_was_whole_and_whose_older_spare_finds_no_place_is_left_alone(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        for number in range(2):
            await add_node(cluster, f"n{number}", gpus=4)
        for name in (*NAMES, "train-4"):
            await cluster.create(PODS, member(name))
        start_scheduler(cluster)
        await cluster.until(lambda: bound_count(cluster, SIZE))
        await cluster.pass_time(10)
        lost = next(name for name, node in (await places(cluster)).items() if node)
        await cluster.create(PODS, pod("thief", gpus=2, schedulerName="other"))
        node = (await places(cluster))[lost]
        await bind(cluster, "thief", node)
        await cluster.delete(PODS, lost, Deletion(grace_s=0))
        await cluster.pass_time(120)
        assert not await ending(cluster)


async def bound_count(cluster: SmallCluster, count: int) -> bool:
    return sum(bool(node) for node in (await places(cluster)).values()) == count


@pytest.mark.parametrize("writes", range(1, 2 * SIZE))
@virtual
async def test_a_gang_that_has_to_yield_goes_whole_also_if_the_scheduler_dies_meanwhile(
    writes: int, tmp_path: Path
) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 100})
        await gang_comes(cluster)
        first = start_scheduler(cluster)
        await cluster.until(lambda: is_bound(cluster, *NAMES))
        await first.kill()
        await cluster.create(PODS, pod("urgent", gpus=2, priorityClassName="high"))
        # Each of its pods is marked and ended, beside the nomination and the condition of the one they yield to.
        await dies_after(cluster, writes, is_lost=writes % 2 == 0)
        for name in await ending(cluster):
            await cluster.delete(PODS, name, Deletion(grace_s=0))
            await cluster.create(PODS, member(name))
        start_scheduler(cluster)
        for _ in range(12):
            await cluster.pass_time(10)
            for name in await ending(cluster):
                await cluster.delete(PODS, name, Deletion(grace_s=0))
                await cluster.create(PODS, member(name))
        assert await is_bound(cluster, "urgent")
        assert await bound(cluster) in ([], sorted(NAMES))
