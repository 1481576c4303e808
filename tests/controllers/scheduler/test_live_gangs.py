"""Gangs on a whole control plane: all or nothing, whoever describes them, and in whatever weather they are bound."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from build.cluster_laws import Laws
from build.depth import seeds
from build.foreign_kinds import foreign_cluster
from build.live_schedulers import add_node, is_bound, places, pod, start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.stormy_api import StormyApi, Weather
from build.virtual_time import in_virtual_time, virtual
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, LIGHT_POD_GROUPS, VOLCANO_POD_GROUPS
from shoal.client.item import Obj
from shoal.client.kind import JOBS, NODES, PODS, Kind
from shoal.client.port import Deletion
from shoal.client.refusals import ForbiddenError
from shoal.embedded.controllers.jobs.controller import job_controller
from shoal.store.watched.cluster import WatchSettings

LIGHT = "pod-group.scheduling.sigs.k8s.io"


def light(group: str, least: int) -> Obj:
    return {"labels": {f"{LIGHT}/name": group, f"{LIGHT}/min-available": str(least)}}


def kueue(group: str, least: int) -> Obj:
    annotations = {"kueue.x-k8s.io/pod-group-total-count": str(least)}
    return {"labels": {"kueue.x-k8s.io/pod-group-name": group}, "annotations": annotations}


async def bound(cluster: SmallCluster) -> int:
    return sum(bool(node) for node in (await places(cluster)).values())


@pytest.mark.parametrize("marks", [light("train", 3), kueue("train", 3)])
@virtual
async def test_pods_that_carry_their_minimum_start_together(marks: Obj, tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=4)
        start_scheduler(cluster)
        for name in "abc":
            await cluster.create(PODS, pod(name, gpus=2, **marks))
            await cluster.pass_time(5)
        assert await bound(cluster) == 0
        await add_node(cluster, "n2", gpus=2)
        await cluster.until(lambda: is_bound(cluster, *"abc"), 5)


@pytest.mark.parametrize("word", ["pod-group-fast-admission", "pod-group-serving"])
@virtual
async def test_a_pod_of_a_serving_group_of_kueue_starts_before_the_others_exist(word: str, tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=4)
        start_scheduler(cluster)
        marks = kueue("db", 3)
        marks["annotations"][f"kueue.x-k8s.io/{word}"] = "true"
        await cluster.create(PODS, pod("db-0", gpus=2, **marks))
        await cluster.until(lambda: is_bound(cluster, "db-0"), 5)


@virtual
async def test_while_kueue_itself_admits_pod_groups_each_of_their_pods_is_placed_by_itself(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=4)
        runs = [False]
        live = start_scheduler(cluster, watch=WatchSettings(kueue_admits=lambda: runs[0]))
        await cluster.create(PODS, pod("fits", gpus=2, **kueue("train", 2)))
        await cluster.create(PODS, pod("too-large", gpus=8, **kueue("train", 2)))
        asked = kueue("asked", 2)
        asked["annotations"]["shoal.dev/gang"] = "true"
        await cluster.create(PODS, pod("asks-for-a-gang", gpus=1, **asked))
        await cluster.pass_time(5)
        assert await bound(cluster) == 0
        runs[0] = True
        live.loop.wake()
        await cluster.until(lambda: is_bound(cluster, "fits"), 5)
        await cluster.pass_time(5)
        assert await bound(cluster) == 1
        runs[0] = False
        live.loop.wake()
        for name in ("late", "later"):
            await cluster.create(PODS, pod(name, gpus=1, **kueue("other", 3)))
        await cluster.pass_time(5)
        assert not await is_bound(cluster, "late", "later")


@pytest.mark.parametrize(
    ("kind", "api_version", "pod_marks"),
    [
        (VOLCANO_POD_GROUPS, "scheduling.volcano.sh/v1beta1", {"annotations": {"scheduling.k8s.io/group-name": "g"}}),
        (LIGHT_POD_GROUPS, "scheduling.x-k8s.io/v1alpha1", {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}),
        (KAI_POD_GROUPS, "scheduling.run.ai/v2alpha2", {"annotations": {"pod-group-name": "g"}}),
    ],
)
@virtual
async def test_a_group_object_says_how_many_start_together(
    kind: Kind, api_version: str, pod_marks: Obj, tmp_path: Path
) -> None:
    async with foreign_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=2)
        start_scheduler(cluster)
        for name in "abc":
            await cluster.create(PODS, pod(name, gpus=1, **pod_marks))
        await cluster.pass_time(5)
        assert await bound(cluster) == 0
        group = {"apiVersion": api_version, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3}}
        await cluster.create(kind, group)
        await cluster.pass_time(5)
        assert await bound(cluster) == 0
        await cluster.patch(kind, "g", {"spec": {"minMember": 2}})
        await cluster.until(lambda: bound_is(cluster, 2), 5)


async def bound_is(cluster: SmallCluster, count: int) -> bool:
    return await bound(cluster) == count


@virtual
async def test_a_job_marked_as_a_gang_starts_as_a_whole(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        await add_node(cluster, "n1", gpus=2)
        start_scheduler(cluster)
        template = {"spec": {**pod("x", gpus=1)["spec"], "restartPolicy": "Never"}}
        meta = {"name": "train", "annotations": {"shoal.dev/gang": "true"}}
        await cluster.create(
            JOBS, {"metadata": meta, "spec": {"parallelism": 3, "completions": 3, "template": template}}
        )
        await cluster.until(lambda: pod_count(cluster, 3), 10)
        await cluster.pass_time(20)
        assert await bound(cluster) == 0
        await add_node(cluster, "n2", gpus=1)
        await cluster.until(lambda: bound_is(cluster, 3), 5)


async def pod_count(cluster: SmallCluster, count: int) -> bool:
    return len(await cluster.pods()) == count


@pytest.mark.parametrize("seed", seeds(6))
def test_a_large_gang_is_bound_in_any_weather_and_no_device_twice(seed: int, tmp_path: Path) -> None:
    in_virtual_time(_storm(seed, tmp_path))


async def _storm(seed: int, folder: Path) -> None:
    """Two gangs of which one has room; processes die in the middle, each followed by another."""
    draw = random.Random(seed)
    weather = Weather(refused=0.15, lost=0.15, stale=0.1, expired=0.05, dropped=0.1, slow_s=0.4, lag_s=0.5)
    async with small_cluster(folder, seed=seed) as cluster:
        laws = Laws(cluster)
        laws.watch({PODS: None, NODES: None})
        for number in range(8):
            await add_node(cluster, f"n{number}", gpus=8)
        for group in ("one", "two"):
            for number in range(64):
                await cluster.create(PODS, pod(f"{group}-{number}", gpus=1, **light(group, 64)))
        for _ in range(draw.randrange(1, 4)):
            live = start_scheduler(cluster, StormyApi(cluster.api, cluster.clock, draw, weather))
            await cluster.pass_time(draw.uniform(0.2, 3))
            await live.kill()
        storm = StormyApi(cluster.api, cluster.clock, draw, weather)
        start_scheduler(cluster, storm)
        await cluster.pass_time(20)
        storm.calm()
        await cluster.until(lambda: bound_is(cluster, 64), 120)
        await cluster.pass_time(60)
        there = await places(cluster)
        whole = {name.partition("-")[0] for name, node in there.items() if node}
        assert (len(whole), sum(bool(node) for node in there.values())) == (1, 64)
        assert laws.broken == []
        assert storm.happened["lost"] > 5
        await laws.end()


@virtual
async def test_a_gang_of_which_one_pod_can_never_be_bound_is_undone(tmp_path: Path) -> None:
    class Unwilling(StormyApi):
        async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
            if name == "c":
                raise ForbiddenError("not this one")
            return await super().post(kind, namespace, name, subresource, obj)

    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=4)
        start_scheduler(cluster, Unwilling(cluster.api, cluster.clock, random.Random(1), Weather()))
        for name in "abc":
            await cluster.create(PODS, pod(name, gpus=1, **light("train", 3)))
        await cluster.pass_time(120)
        gone = [one["metadata"]["name"] for one in await cluster.pods() if "deletionTimestamp" in one["metadata"]]
        assert sorted(gone) == ["a", "b"]
        for name in gone:
            await cluster.delete(PODS, name, Deletion(grace_s=0))
        await cluster.create(PODS, pod("others", gpus=4))
        await cluster.until(lambda: is_bound(cluster, "others"), 90)
