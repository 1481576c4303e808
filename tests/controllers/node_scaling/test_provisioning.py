"""Nodes are provisioned for pods that wait: whole gangs, nothing twice, never beyond the limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from build.scaled_clusters import QUICK, scaled_cluster
from build.virtual_time import virtual
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.pool_modes import MODE
from shoal.autoscale.nodes.pools import NodePool
from shoal.client.ecosystem_kinds import NODE_POOLS
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.embedded.cloud.settings import CloudSettings


@virtual
async def test_a_gang_runs_one_boot_time_after_it_was_created(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool()
        await world.gang("train", 8, gpus=8)
        began_s = world.cluster.clock.seconds()
        await world.until_running("train", 8, within_s=120)
        took_s = world.cluster.clock.seconds() - began_s
        assert len(await world.nodes()) == len(await world.instances()) == 8
        assert [request.count for request in world.cloud.requests] == [8]
        assert took_s <= QUICK.at_s("devices") + 15


def _container(limits: dict[str, str]) -> Obj:
    return {"name": "main", "image": "trainer", "resources": {"limits": limits}}


@pytest.mark.parametrize("wrong", ["memory", "nvidia.com/gpu.product"])
def test_a_machine_that_is_not_what_its_catalogue_says_is_bought_once(tmp_path: Path, wrong: str) -> None:
    @virtual
    async def with_wrong_catalogue() -> None:
        async with scaled_cluster(tmp_path) as world:
            read = world.cloud.instance_types

            async def as_listed(pool: NodePool) -> tuple[InstanceType, ...]:
                labels = {wrong: ("NVIDIA-A10-24Q",)} if wrong != "memory" else {}
                return tuple(replace(one, overhead={}, labels={**one.labels, **labels}) for one in await read(pool))

            world.cloud.instance_types = as_listed  # type: ignore[method-assign]
            await world.add_pool(types=["g5.xlarge"], disruption={"consolidateAfter": "10s"})
            if wrong == "memory":
                await world.pod("large", 0, containers=[_container({"memory": "15.9Gi"})])
            else:
                await world.pod("choosy", 1, nodeSelector={wrong: "NVIDIA-A10-24Q"})
            await world.cluster.pass_time(120)
            assert len(world.cloud.requests) == 1
            assert await world.instances() == []

    with_wrong_catalogue()


@virtual
async def test_a_pod_that_no_new_node_helps_gets_fewer_and_fewer_of_them(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool(types=["g5.xlarge"], disruption={"consolidateAfter": "10s"})
        await world.pod("large", 0, containers=[_container({"cpu": "3.8"})])
        taken: set[str] = set()
        for _ in range(160):
            # What runs on every node, and no plan knows.
            for name in {each["metadata"]["name"] for each in await world.nodes()} - taken:
                notes = {"kubernetes.io/config.mirror": "x"}
                await world.pod(f"static-{name}", 0, notes=notes, nodeName=name, containers=[_container({"cpu": "1"})])
                taken.add(name)
            await world.cluster.pass_time(2)
        assert 2 <= len(world.cloud.requests) <= 4
        assert await world.instances() == []
        said = [each["message"] for each in await world.cluster.events("large") if each["reason"] == "NotProvisioned"]
        assert any("nodes have started for it, but its scheduler places it" in each for each in said)


@virtual
async def test_nothing_is_provisioned_without_pods_that_wait(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool()
        await world.cluster.pass_time(120)
        assert await world.claims() == []


@virtual
async def test_while_nodes_start_nothing_is_provisioned_a_second_time(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool()
        for number in range(10):
            await world.pod(f"solo-{number}", 4)
            await world.cluster.pass_time(3)
        await world.until_running("solo", 10, within_s=180)
        assert len(await world.instances()) == 5


@virtual
async def test_a_gang_beyond_the_limit_gets_no_node_at_all(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool(limits={"nodes": "7"})
        await world.gang("train", 8, gpus=8)
        await world.cluster.pass_time(120)
        assert await world.claims() == []
        said = [each for each in await world.cluster.events("train-0") if each["reason"] == "NotProvisioned"]
        assert said
        assert "limit" in said[0]["message"]


@virtual
async def test_the_limit_of_spending_holds(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool(limits={"shoal.dev/spend-per-hour": "120"})
        for number in range(4):
            await world.pod(f"solo-{number}", 8)
        await world.cluster.pass_time(120)
        assert len(await world.instances()) == 2


@virtual
async def test_a_node_that_starts_is_taken_back_once_its_workload_is_gone(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, CloudSettings()) as world:
        await world.add_pool()
        await world.pod("solo", 8)
        await world.cluster.pass_time(130)
        assert len(await world.nodes()) == 1
        await world.cluster.delete(PODS, "solo")
        await world.cluster.pass_time(100)
        assert await world.claims() == []
        assert await world.instances() == []
        assert await world.nodes() == []


@virtual
async def test_a_paused_pool_provisions_nothing_and_goes_on_when_it_is_resumed(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool()
        await world.cluster.patch(NODE_POOLS, "gpu", {"metadata": {"annotations": {MODE: "paused"}}})
        await world.pod("solo", 8)
        await world.cluster.pass_time(60)
        assert world.cloud.requests == []
        await world.cluster.patch(NODE_POOLS, "gpu", {"metadata": {"annotations": {MODE: None}}})
        await world.until_running("solo", 1, within_s=90)


@virtual
async def test_a_dry_run_says_what_would_be_provisioned(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool()
        await world.cluster.patch(NODE_POOLS, "gpu", {"metadata": {"annotations": {MODE: "dry-run"}}})
        await world.pod("solo", 8)
        await world.cluster.pass_time(60)
        assert world.cloud.requests == []
        said = [each["message"] for each in await world.cluster.events("gpu") if each["reason"] == "DryRun"]
        assert said == ["would provision p5.48xlarge in us-east-1a for 1 pods"]


@virtual
async def test_a_claim_shows_how_far_its_node_is(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool()
        await world.pod("solo", 8)
        seen: list[tuple[str, str]] = []
        for _ in range(60):
            await world.cluster.pass_time(1)
            for claim in await world.claims():
                for each in (claim.get("status") or {}).get("conditions") or ():
                    if (each["type"], each["status"]) not in seen:
                        seen.append((each["type"], each["status"]))
        true = [type_ for type_, status in seen if status == "True"]
        assert [type_ for type_ in true if type_ != "Ready"][:3] == ["Launched", "Registered", "Initialized"]
        assert "Ready" in true
        (node,) = await world.nodes()
        assert node["metadata"]["labels"]["karpenter.sh/initialized"] == "true"
        assert node["metadata"]["finalizers"] == ["karpenter.sh/termination"]
        pool = await world.cluster.get(NODE_POOLS, "gpu")
        assert pool["status"]["resources"] == {"nodes": "1", "cpu": "192", "memory": str(2**41), "nvidia.com/gpu": "8"}


@virtual
async def test_a_node_promises_gpus_by_its_labels_before_it_advertises_them(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, CloudSettings()) as world:
        await world.add_pool()
        await world.pod("solo", 8)
        await world.cluster.pass_time(400)
        (node,) = await world.nodes()
        ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
        assert ready["status"] == "True"
        assert node["metadata"]["labels"]["nvidia.com/gpu.count"] == "8"
        assert "nvidia.com/gpu" not in node["status"]["capacity"]
        await world.until_running("solo", 1, within_s=120)
        assert len(world.cloud.requests) == 1


@virtual
async def test_a_static_pool_has_its_replicas_and_follows_them(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool(replicas=2)
        await world.cluster.pass_time(200)
        assert len(await world.instances()) == 2, "no pod needs them"
        await world.cluster.patch(NODE_POOLS, "gpu", {"spec": {"replicas": 1}})
        await world.cluster.pass_time(60)
        assert len(await world.instances()) == 1
