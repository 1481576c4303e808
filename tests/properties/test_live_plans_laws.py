"""Manifests and a running cluster with the same objects give equal plans, with the queues of other projects.

The objects are those of the cluster, as `kubectl get -o yaml` would write them. The first plan of a scheduler that
starts beside them is compared with the first decision about the manifests.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from build.depth import seeds
from build.kai_clusters import GROUP, QUEUE_LABEL, add_kai_queue, kai_cluster, kai_scheduler
from build.live_schedulers import LiveScheduler, add_node, pod
from build.small_clusters import SmallCluster
from build.virtual_time import in_virtual_time
from build.volcano_scenes import VolcanoScene, bare_volcano
from shoal.api.decode import read
from shoal.api.groups.kai import NODE_POOL_LABEL
from shoal.cli.manifests import loaded_of, rounds_of
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, KAI_QUEUES, KAI_SHARDS, VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from shoal.client.kind import CONFIG_MAPS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, Kind
from shoal.engine.events import Event
from shoal.engine.placement import Placement
from shoal.engine.plan import Evict, Nominate, Place, Plan
from shoal.engine.pod_mix import PodMix
from shoal.engine.profile import DEFAULT_POLICY, profile_named

_GPU = "nvidia.com/gpu"
_SEED = 42
Decided = tuple[set[tuple[str, str]], set[tuple[str, str]], set[str]]
"""Placements and nominations as pod and node, and evicted pods."""


class _Recorder:
    """A plan executor that writes nothing."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []

    def carry_out(self, plan: Plan) -> None:
        self.plans.append(plan)

    def outcomes(self) -> Sequence[Event]:
        return ()

    async def run(self) -> None: ...


async def _first_plan(cluster: SmallCluster, live: LiveScheduler) -> Decided:
    recorder = _Recorder()
    live.loop.executors = (recorder,)
    live.start()
    await cluster.until(lambda: live.loop.rounds > 0)
    plan = next((each for each in recorder.plans if each.placed or each.nominated or each.evicted), Plan(0.0, 0, ()))
    return _decided(plan.placed, plan.nominated, plan.evicted)


async def _of_manifests(cluster: SmallCluster, *kinds: Kind) -> Decided:
    objects: list[dict[str, Any]] = []
    for kind in (NODES, PRIORITY_CLASSES, *kinds, PODS):
        objects += [{"apiVersion": kind.api_version, "kind": kind.name, **one} for one in await cluster.all(kind)]
    loaded = loaded_of(read(yaml.safe_dump_all(objects)))
    # A cluster does not know what mix of pods will come.
    placement = Placement(loaded.cluster, profile_named(DEFAULT_POLICY, loaded.cluster, PodMix()))
    loaded = replace(loaded, placement=placement)
    first = rounds_of(loaded, _SEED).round()
    return _decided(first.placed, first.nominated, first.evicted)


def _decided(placed: Sequence[Place], nominated: Sequence[Nominate], evicted: Sequence[Evict]) -> Decided:
    return (
        {(each.pod, each.node) for each in placed},
        {(each.pod, each.node) for each in nominated},
        {each.pod for each in evicted},
    )


# -- Volcano -----------------------------------------------------------------------------------------------------------


async def _volcano_world(scene: VolcanoScene, draw: random.Random) -> None:
    """Queues that share two nodes, groups that run, and groups that wait."""
    cluster = scene.cluster
    for name in ("n1", "n2"):
        await add_node(cluster, name, gpus=4, cpu="32")
    for name, value in (("low", 10), ("high", 1000)):
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    has_quota = draw.random() < 0.6
    await scene.queue("root")
    for name in ("default", "a", "b", "c"):
        spec: dict[str, Any] = {"weight": draw.randint(1, 3)}
        if has_quota and name != "default":
            spec["deserved"] = {_GPU: str(draw.randint(0, 4))}
        if draw.random() < 0.3:
            spec["capability"] = {_GPU: str(draw.randint(1, 6))}
        if name == "c" and draw.random() < 0.5:
            spec["parent"] = "b"
        await scene.queue(name, **spec)
    await _configure_volcano(cluster, draw)
    free = {"n1": 4, "n2": 4}
    for at in range(draw.randint(3, 8)):
        name, count = f"g{at}", draw.randint(1, 3)
        least = draw.randint(1, count)
        spec = {"minMember": least, "queue": draw.choice(("default", "a", "b", "c", "nowhere"))}
        if draw.random() < 0.4:
            spec["minResources"] = {_GPU: str(least)}
        if draw.random() < 0.4:
            spec["priorityClassName"] = draw.choice(("low", "high"))
        await scene.group(name, **spec)
        node = draw.choice(("", "n1", "n2"))
        if node and free[node] >= count:
            free[node] -= count
            status = {"status": {"phase": "Running"}}
            await cluster.patch(VOLCANO_POD_GROUPS, name, status)
        else:
            node = ""
        for number in range(count):
            more = {"nodeName": node} if node else {}
            await scene.pod(f"{name}-{number}", name, gpus=1, **more)


async def _configure_volcano(cluster: SmallCluster, draw: random.Random) -> None:
    """In half of the worlds: scores that prefer empty nodes or loaded ones."""
    if draw.random() < 0.5:
        return
    least, most = draw.choice(((10, 0), (0, 10)))
    arguments = {"leastrequested.weight": least, "mostrequested.weight": most, "balancedresource.weight": 0}
    plugins: list[dict[str, Any]] = [{"name": name} for name in ("priority", "gang", "conformance", "proportion")]
    plugins.append({"name": "nodeorder", "arguments": arguments})
    text = yaml.safe_dump({"actions": "enqueue, allocate, preempt, reclaim", "tiers": [{"plugins": plugins}]})
    await cluster.create(NAMESPACES, {"metadata": {"name": "volcano-system"}})
    body = {"metadata": {"name": "volcano-scheduler-configmap"}, "data": {"volcano-scheduler.conf": text}}
    await cluster.create(CONFIG_MAPS, body, "volcano-system")


@pytest.mark.parametrize("seed", seeds(12))
def test_volcanos_queues_decide_the_same_about_manifests_and_on_a_cluster(tmp_path: Path, seed: int) -> None:
    async def story() -> None:
        async with bare_volcano(tmp_path) as scene:
            await _volcano_world(scene, random.Random(seed))
            live = scene.scheduler()
            found = await _first_plan(scene.cluster, live)
            assert found == await _of_manifests(scene.cluster, CONFIG_MAPS, VOLCANO_QUEUES, VOLCANO_POD_GROUPS)

    in_virtual_time(story())


# -- KAI ---------------------------------------------------------------------------------------------------------------


async def _kai_world(cluster: SmallCluster, draw: random.Random) -> None:
    """Queues of two levels, gangs and pods without a group, some of which run."""
    for name in ("n1", "n2"):
        await add_node(cluster, name, gpus=4, cpu="32")
    await add_kai_queue(cluster, "top", draw.choice((-1, 4, 6)))
    for name in "abc":
        spec: dict[str, Any] = {"weight": draw.randint(0, 3), "limit": draw.choice((-1, -1, 3))}
        if draw.random() < 0.4:
            spec["parent"] = "top"
        if draw.random() < 0.3:
            spec["priority"] = draw.choice((90, 110))
        await add_kai_queue(cluster, name, draw.randint(0, 4), **spec)
    free = {"n1": 4, "n2": 4}
    for at in range(draw.randint(3, 8)):
        name, count = f"g{at}", draw.randint(1, 3)
        queue = draw.choice(("a", "b", "c", "a", "b", "c", "top", "nowhere"))
        is_gang = draw.random() < 0.7
        if is_gang:
            group: dict[str, Any] = {"queue": queue, "minMember": draw.randint(1, count)}
            if draw.random() < 0.5:
                group["priorityClassName"] = draw.choice(("train", "build", "inference"))
            await cluster.create(KAI_POD_GROUPS, {"metadata": {"name": name}, "spec": group})
        node = draw.choice(("", "n1", "n2"))
        if node and free[node] < count:
            node = ""
        if node:
            free[node] -= count
        for number in range(count):
            notes = {GROUP: name} if is_gang else {}
            body = pod(f"{name}-{number}", gpus=1, labels={QUEUE_LABEL: queue}, annotations=notes)
            body["spec"] |= {"nodeName": node} if node else {}
            body["spec"] |= {} if is_gang else {"priorityClassName": draw.choice(("train", "build"))}
            await cluster.create(PODS, body)


@pytest.mark.parametrize("seed", seeds(12))
def test_kais_queues_decide_the_same_about_manifests_and_on_a_cluster(tmp_path: Path, seed: int) -> None:
    async def story() -> None:
        async with kai_cluster(tmp_path) as cluster:
            await _kai_world(cluster, random.Random(seed))
            found = await _first_plan(cluster, kai_scheduler(cluster)[0])
            assert found == await _of_manifests(cluster, KAI_QUEUES, KAI_POD_GROUPS)

    in_virtual_time(story())


async def _divide(cluster: SmallCluster, draw: random.Random) -> None:
    """Two shards: node n2 and queue c are in the pool big, and so are some gangs and pods."""
    big = {"metadata": {"labels": {NODE_POOL_LABEL: "big"}}}
    for name, value in (("default", ""), ("big", "big")):
        spec: dict[str, Any] = {"partitionLabelValue": value, "queueDepthPerAction": {"allocate": draw.randint(1, 4)}}
        if draw.random() < 0.5:
            spec["placementStrategy"] = {"gpu": draw.choice(("binpack", "spread"))}
        await cluster.create(KAI_SHARDS, {"metadata": {"name": name}, "spec": spec})
    await cluster.patch(NODES, "n2", big)
    await cluster.patch(KAI_QUEUES, "c", big)
    for one in await cluster.all(KAI_POD_GROUPS):
        if draw.random() < 0.5:
            await cluster.patch(KAI_POD_GROUPS, one["metadata"]["name"], big)
    for one in await cluster.pods():
        if draw.random() < 0.5:
            await cluster.patch(PODS, one["metadata"]["name"], big)


@pytest.mark.parametrize("seed", seeds(3))
def test_kais_shards_decide_the_same_about_manifests_and_on_a_cluster(tmp_path: Path, seed: int) -> None:
    async def story() -> None:
        async with kai_cluster(tmp_path) as cluster:
            draw = random.Random(seed)
            await _kai_world(cluster, draw)
            await _divide(cluster, draw)
            found = await _first_plan(cluster, kai_scheduler(cluster)[0])
            assert found == await _of_manifests(cluster, KAI_QUEUES, KAI_SHARDS, KAI_POD_GROUPS)

    in_virtual_time(story())
