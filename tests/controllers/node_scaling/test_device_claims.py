"""Nodes are provisioned for pods with resource claims (DRA), whose devices are known before there is a node."""

from __future__ import annotations

from pathlib import Path

from build.scaled_clusters import ScaledCluster, scaled_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import NODE_POOLS
from shoal.client.item import Obj
from shoal.client.kind import (
    DEVICE_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from shoal.devices.device_classes import device_classes
from shoal.devices.names import OWN_DRA


async def prepare(world: ScaledCluster) -> None:
    """The DeviceClasses of NVIDIA's driver, and a pool whose nodes run it."""
    for one in device_classes():
        await world.cluster.create(DEVICE_CLASSES, one)
    await world.add_pool()
    labelled = {"spec": {"template": {"metadata": {"labels": {OWN_DRA: "true"}}}}}
    await world.cluster.patch(NODE_POOLS, "gpu", labelled)


async def template(world: ScaledCluster, name: str, selector: str) -> list[Obj]:
    """A template of claims for four GPUs; returns the claims of a pod that uses it."""
    wanted = {"deviceClassName": "gpu.nvidia.com", "count": 4, "selectors": [{"cel": {"expression": selector}}]}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}}
    await world.cluster.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": name}, "spec": {"spec": spec}})
    return [{"name": "mine", "resourceClaimTemplateName": name}]


@virtual
async def test_pods_with_claims_get_nodes_of_whose_devices_nothing_is_published_yet_and_none_twice(
    tmp_path: Path,
) -> None:
    async with scaled_cluster(tmp_path) as world:
        await prepare(world)
        claims = await template(world, "four", "device.attributes['gpu.nvidia.com'].architecture == 'Hopper'")
        for number in range(4):
            await world.pod(f"four-{number}", 0, resourceClaims=claims)
            await world.cluster.pass_time(6)
        assert len(await world.nodes()) == 2
        assert await world.cluster.all(RESOURCE_SLICES) == []
        await world.until_running("four", 4, within_s=120)
        assert len(await world.instances()) == 2
        allocated = [each["status"]["allocation"] for each in await world.cluster.all(RESOURCE_CLAIMS)]
        assert [len(each["devices"]["results"]) for each in allocated] == [4, 4, 4, 4]
        assert "nvidia.com/gpu" not in (await world.nodes())[0]["status"]["allocatable"]
        await world.cluster.pass_time(20)
        labels = [each["metadata"]["labels"] for each in await world.nodes()]
        assert [each.get("karpenter.sh/initialized") for each in labels] == ["true", "true"]
