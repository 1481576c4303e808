"""Nodes are requested from another autoscaler by placeholder pods, through the API server.

The other autoscaler is Shoal's own controller of nodes, told to provide for the placeholder pods alone: as Karpenter,
it acts on pods with the condition `Unschedulable` and their node selectors, and knows no gangs of theirs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from build.scaled_clusters import ScaledCluster, scaled_cluster
from build.virtual_time import virtual
from shoal.autoscale.placeholders.placeholder import PLACEHOLDER, SCHEDULER, WAITS_FOR_NODES, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import LEASES, NAMESPACES, PODS
from shoal.wiring.run_choice import PLACEHOLDER_PODS

_HOME = "shoal-system"


@asynccontextmanager
async def _beside_another(folder: Path) -> AsyncIterator[ScaledCluster]:
    async with scaled_cluster(folder, parts=("scheduler", PLACEHOLDER_PODS)) as world:
        await world.kill_controller()
        world.schedulers = frozenset({SCHEDULER})
        await world.start_controller()
        await world.cluster.create(NAMESPACES, {"metadata": {"name": _HOME}})
        spec = {"holderIdentity": "karpenter-1", "leaseDurationSeconds": 3600}
        spec["renewTime"] = world.cluster.clock.text().replace("Z", ".000000Z")
        meta = {"name": "karpenter-leader-election", "namespace": "kube-system"}
        await world.cluster.create(LEASES, {"metadata": meta, "spec": spec})
        await world.cluster.pass_time(20)
        yield world


async def _placeholders(world: ScaledCluster) -> list[Obj]:
    return [pod for pod in await world.cluster.all(PODS) if pod["metadata"]["namespace"] == _HOME]


def _reason(pod: Obj) -> str:
    (found,) = [each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
    return str(found["reason"])


@virtual
async def test_a_gang_gets_its_nodes_by_placeholders_which_go_when_it_runs(tmp_path: Path) -> None:
    async with _beside_another(tmp_path) as world:
        await world.add_pool()
        await world.gang("train", 2, gpus=8)
        await world.cluster.pass_time(8)
        made = await _placeholders(world)
        assert [_reason(pod) for pod in made] == ["Unschedulable"] * 2
        assert {_reason(pod) for pod in await world.cluster.pods() if "train" in pod["metadata"]["name"]} == {
            WAITS_FOR_NODES
        }
        assert made[0]["metadata"]["ownerReferences"][0]["kind"] == "NodePool"
        await world.until_running("train", 2, within_s=120)
        await world.cluster.pass_time(5)
        assert await _placeholders(world) == []
        await world.cluster.pass_time(60)
        assert len(world.cloud.requests) == 2, "none was provisioned beside"


@virtual
async def test_a_gang_beyond_the_limits_gets_none_and_those_of_deleted_pods_go(
    tmp_path: Path,
) -> None:
    async with _beside_another(tmp_path) as world:
        await world.add_pool(limits={"nodes": "1"})
        await world.gang("train", 2, gpus=8)
        await world.cluster.pass_time(30)
        assert await _placeholders(world) == []
        said = [each for each in await world.cluster.events("train-0") if each["reason"] == "NotProvisioned"]
        assert "the limits of the pool are reached" in said[-1]["message"]
        await world.kill_controller()
        await world.pod("solo", 8)
        await world.cluster.pass_time(8)
        (made,) = await _placeholders(world)
        # What a process leaves that is killed between its requests: no condition yet, for pods that are gone by now.
        for name, notes in (("left", {WORKLOADS: '{"default/gone": 1}'}), ("again", made["metadata"]["annotations"])):
            meta = {"name": name, "namespace": _HOME, "labels": {PLACEHOLDER: "true"}, "annotations": notes}
            await world.cluster.create(PODS, {"metadata": meta, "spec": {**made["spec"], "nodeName": None}})
        await world.cluster.pass_time(3)
        assert [pod["metadata"]["name"] for pod in await _placeholders(world)] == [made["metadata"]["name"]]
        await world.cluster.delete(PODS, "solo")
        await world.cluster.pass_time(3)
        assert await _placeholders(world) == []
