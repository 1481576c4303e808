"""The controller of nodes with Cluster API: a gang gets its machines, and an empty node loses the right one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from build.management_cluster import DEPLOYMENTS, MACHINES, ClusterApiController, install_kinds, machine_deployment
from build.scaled_clusters import GPU, ScaledCluster, scaled_cluster
from build.virtual_time import virtual
from shoal.client.kind import NODES, PODS
from shoal.client.port import Deletion
from shoal.cloud.cluster_api import ClusterApiCloud
from shoal.cloud.cluster_api_settings import ClusterApiSettings


async def _with_cluster_api(world: ScaledCluster) -> ClusterApiController:
    await world.kill_controller()
    await install_kinds(world.cluster)
    await world.cluster.create(DEPLOYMENTS, machine_deployment("h100", replicas=1))
    controller = ClusterApiController(world.cluster)
    await controller.act()
    controller.has_infrastructure = False
    world.cloud.inner = ClusterApiCloud(controller, world.cluster.clock, ClusterApiSettings("train", "default"))
    await world.start_controller()
    return controller


async def _register(world: ScaledCluster, names: Iterable[str]) -> None:
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
        controller = await _with_cluster_api(world)
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
        await _register(world, own)

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
