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
from shoal.client.ecosystem_kinds import NODE_POOLS
from shoal.client.item import Obj
from shoal.client.kind import LEASES, NAMESPACES, PODS, RESOURCE_QUOTAS
from shoal.wiring.run_choice import PLACEHOLDER_PODS

_HOME = "shoal-system"


@asynccontextmanager
async def _beside_another(
    folder: Path, *, lease: str = "karpenter-leader-election", has_home: bool = True
) -> AsyncIterator[ScaledCluster]:
    async with scaled_cluster(folder, parts=("scheduler", PLACEHOLDER_PODS)) as world:
        await world.kill_controller()
        world.schedulers = frozenset({SCHEDULER})
        await world.start_controller()
        if has_home:
            await world.cluster.create(NAMESPACES, {"metadata": {"name": _HOME}})
        spec = {"holderIdentity": "karpenter-1", "leaseDurationSeconds": 3600}
        spec["renewTime"] = world.cluster.clock.text().replace("Z", ".000000Z")
        await world.cluster.create(LEASES, {"metadata": {"name": lease, "namespace": "kube-system"}, "spec": spec})
        await world.cluster.pass_time(20)
        yield world


async def _placeholders(world: ScaledCluster) -> list[Obj]:
    return [pod for pod in await world.cluster.all(PODS) if pod["metadata"]["namespace"] == _HOME]


def _reason(pod: Obj) -> str:
    (found,) = [each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
    return str(found["reason"])


async def _reason_of_solo(world: ScaledCluster) -> str:
    (found,) = [pod for pod in await world.cluster.pods() if pod["metadata"]["name"] == "solo"]
    return _reason(found)


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


@virtual
async def test_pods_stay_unschedulable_while_no_placeholder_can_be_made_for_them(tmp_path: Path) -> None:
    """Without a NodePool, or an autoscaler that follows placeholders, the pods are left to what else provisions."""

    async with _beside_another(tmp_path) as world:
        await world.pod("solo", 8)
        await world.cluster.pass_time(8)
        assert await _reason_of_solo(world) == "Unschedulable"
        await world.kill_controller()
        await world.add_pool()
        await world.cluster.pass_time(45)
        assert await _reason_of_solo(world) == WAITS_FOR_NODES
        assert len(await _placeholders(world)) == 1
        await world.cluster.delete(NODE_POOLS, "gpu")
        await world.cluster.pass_time(45)
        assert await _reason_of_solo(world) == "Unschedulable"
        assert await _placeholders(world) == []


@virtual
async def test_a_placeholder_that_the_server_refuses_is_told_and_others_are_made(tmp_path: Path) -> None:
    async with _beside_another(tmp_path, has_home=False) as world:
        await world.add_pool()
        await world.pod("solo", 8)
        await world.cluster.pass_time(15)
        said = [each for each in await world.cluster.events("solo") if each["reason"] == "NotProvisioned"]
        assert f'namespaces "{_HOME}" not found' in said[-1]["message"]


@virtual
async def test_cluster_autoscaler_is_left_the_pods_because_its_nodes_are_of_no_pool(tmp_path: Path) -> None:
    async with _beside_another(tmp_path, lease="cluster-autoscaler") as world:
        await world.kill_controller()
        await world.add_pool()
        await world.pod("solo", 8)
        await world.cluster.pass_time(45)
        assert await _reason_of_solo(world) == "Unschedulable"
        assert await _placeholders(world) == []


@virtual
async def test_a_gang_has_no_part_of_its_placeholders_where_a_quota_refuses_the_others(tmp_path: Path) -> None:
    async with _beside_another(tmp_path) as world:
        await world.add_pool()
        await world.cluster.create(
            RESOURCE_QUOTAS, {"metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}}}, _HOME
        )
        await world.cluster.pass_time(5)
        await world.gang("train", 2, gpus=8)
        for _ in range(8):
            await world.cluster.pass_time(3)
            assert await _placeholders(world) == []
        assert world.cloud.requests == []
