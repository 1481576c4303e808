"""The controller of nodes with Cluster API: each NodeClaim gets its own machine, and late machines are removed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from build.management_cluster import DEPLOYMENTS, MACHINES, ClusterApiController, install_kinds, machine_deployment
from build.scaled_clusters import GPU, ScaledCluster, scaled_cluster
from build.virtual_time import virtual
from shoal.autoscale.node_claims.claim import PRICE
from shoal.client.ecosystem_kinds import NODE_CLAIMS, NODE_POOLS
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS
from shoal.client.port import Deletion
from shoal.cloud.cluster_api import ClusterApiCloud
from shoal.cloud.cluster_api_settings import ClusterApiSettings


async def _with_cluster_api(world: ScaledCluster, *groups: Obj) -> ClusterApiController:
    """New machines get their infrastructure once a test says so."""
    await world.kill_controller()
    await install_kinds(world.cluster)
    for group in groups:
        await world.cluster.create(DEPLOYMENTS, group)
    controller = ClusterApiController(world.cluster)
    await controller.act()
    controller.has_infrastructure = False
    cloud = ClusterApiCloud(controller, world.cluster.clock, ClusterApiSettings("train", "default"))
    world.cloud.inner, world.cloud.launch_limit_s = cloud, cloud.launch_limit_s
    await world.start_controller()
    return controller


async def _machines(world: ScaledCluster) -> list[str]:
    return sorted(each["metadata"]["name"] for each in await world.cluster.all(MACHINES))


async def _provide(world: ScaledCluster, names: Sequence[str]) -> None:
    """The infrastructure and the Nodes of these machines."""
    for name in names:
        await world.cluster.patch(MACHINES, name, {"spec": {"providerID": f"test:///{name}"}})
    await _register(world, names)


async def _register(world: ScaledCluster, names: Sequence[str]) -> None:
    """The Nodes of machines, as their kubelets and device plugins would write them."""
    amounts = {"cpu": "192", "memory": "2Ti", "pods": "110", GPU: "8"}
    for name in names:
        await world.cluster.create(
            NODES,
            {
                "metadata": {"name": name, "labels": {"node.kubernetes.io/instance-type": "p5.48xlarge"}},
                "spec": {"providerID": f"test:///{name}"},
            },
        )
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        await world.cluster.patch(NODES, name, {"status": status}, "status")


@virtual
async def test_a_gang_gets_machines_and_an_empty_node_loses_its_own(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        controller = await _with_cluster_api(world, machine_deployment("h100", replicas=1))
        await world.add_pool(disruption={"consolidateAfter": "0s"})
        await world.gang("train", 2, gpus=8)
        await world.cluster.pass_time(30)
        assert (await world.cluster.get(DEPLOYMENTS, "h100"))["spec"]["replicas"] == 3
        assert len(await world.claims()) == 2
        controller.has_infrastructure = True
        await controller.act()
        names = [each["metadata"]["name"] for each in await world.cluster.all(MACHINES)]
        outside, own = names[0], set(names[1:])
        assert outside == "h100-001"
        await _register(world, sorted(own))

        async def are_bound() -> bool:
            pods = await world.cluster.pods()
            return {pod["spec"].get("nodeName") for pod in pods} == own

        await world.until(are_bound, 120)
        await world.cluster.pass_time(10)
        claims = await world.claims()
        assert {each["status"]["providerID"] for each in claims} == {f"test:///{name}" for name in own}
        for pod in await world.cluster.pods():
            await world.cluster.delete(PODS, pod["metadata"]["name"], Deletion(grace_s=0))
        await world.cluster.pass_time(200)
        assert sorted(controller.removed) == sorted(own)
        assert (await world.cluster.get(DEPLOYMENTS, "h100"))["spec"]["replicas"] == 1
        assert await world.claims() == []


@virtual
async def test_another_group_is_tried_where_machines_never_get_their_infrastructure(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        cheap = machine_deployment("cheap", annotations={PRICE: "10"})
        await _with_cluster_api(world, cheap, machine_deployment("dear", zone="zone-b"))
        await world.add_pool()
        await world.pod("solo", 8)
        await world.cluster.pass_time(1250)
        zones = {request.token: request.zone for request in world.cloud.requests}
        assert list(zones.values()) == ["zone-a", "zone-b"]


@virtual
async def test_a_machine_that_is_being_drained_is_not_given_to_another_claim_of_its_launch(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await _with_cluster_api(world, machine_deployment("h100"))
        await world.add_pool()
        await world.gang("train", 3, gpus=8)
        await world.cluster.pass_time(10)
        await _provide(world, (await _machines(world))[:2])
        await world.cluster.pass_time(10)
        first = next(each for each in await world.claims() if each["status"].get("providerID") == "test:///h100-001")
        await world.pod("busy", 0, nodeName="h100-001")
        await world.cluster.patch(PODS, "busy", {"metadata": {"finalizers": ["example.com/wait"]}})
        await world.cluster.delete(NODE_CLAIMS, first["metadata"]["name"])
        await world.cluster.pass_time(6)
        ids = [(each.get("status") or {}).get("providerID") for each in await world.claims()]
        assert sorted(filter(None, ids)) == ["test:///h100-001", "test:///h100-002"]
        await world.cluster.patch(PODS, "busy", {"metadata": {"finalizers": None}})


@virtual
async def test_a_launch_goes_on_where_one_of_its_claims_is_deleted_before_its_machines_are_known(
    tmp_path: Path,
) -> None:
    async with scaled_cluster(tmp_path) as world:
        controller = await _with_cluster_api(world, machine_deployment("h100"))
        await world.add_pool()
        await world.gang("train", 2, gpus=8)
        await world.cluster.pass_time(10)
        before = await _machines(world)
        await world.cluster.delete(NODE_CLAIMS, (await world.claims())[0]["metadata"]["name"])
        await world.cluster.pass_time(20)
        assert (await _machines(world))[:2] == before
        await _provide(world, before)
        await world.cluster.pass_time(20)
        ids = {(each.get("status") or {}).get("providerID") for each in await world.claims()}
        assert ids & {f"test:///{name}" for name in before}
        assert len(controller.removed) < 2


@virtual
async def test_a_machine_that_comes_after_its_claim_was_deleted_is_removed_and_counted_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with scaled_cluster(tmp_path) as world:
        controller = await _with_cluster_api(world, machine_deployment("h100"))
        controller.acts_at_once = False
        await world.add_pool()
        await world.pod("solo", 8)
        await world.cluster.pass_time(10)
        await world.cluster.delete(PODS, "solo", Deletion(grace_s=0))
        await world.cluster.pass_time(400)
        assert await world.claims() == []
        assert world.controller is not None
        removed = world.controller.observer.nodes_removed
        assert removed["gpu", "orphaned"] == 0, "it does not exist yet"
        controller.acts_at_once = controller.has_infrastructure = True
        await controller.act()
        await world.cluster.pass_time(130)
        assert controller.removed == ["h100-001"]
        assert removed["gpu", "orphaned"] == 1
        assert sum("without a NodeClaim" in each.message for each in caplog.records) == 1


@virtual
async def test_a_late_machine_is_removed_although_its_pool_is_gone(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        controller = await _with_cluster_api(world, machine_deployment("h100"))
        controller.acts_at_once = False
        await world.add_pool()
        await world.pod("solo", 8)
        await world.cluster.pass_time(10)
        await world.cluster.delete(NODE_POOLS, "gpu")
        await world.cluster.delete(PODS, "solo", Deletion(grace_s=0))
        await world.cluster.pass_time(120)
        for claim in await world.claims():
            await world.cluster.delete(NODE_CLAIMS, claim["metadata"]["name"])
        await world.cluster.pass_time(120)
        controller.acts_at_once = controller.has_infrastructure = True
        await controller.act()
        await world.cluster.pass_time(130)
        assert controller.removed == ["h100-001"]
