"""Devices that have to be made ready before a pod is bound to them: waited for, given up, and preferred last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.live_schedulers import add_node, condition, is_bound, places, start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import (
    DEVICE_CLASSES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from shoal.embedded.controllers.claim_templates.controller import resource_claim_controller

DRIVER = "fabric.example.com"
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpus"}}]}}
FABRIC: Obj = {
    "bindsToNode": True,
    "bindingConditions": ["Attached", "Powered"],
    "bindingFailureConditions": ["AttachFailed"],
}


async def furnish(cluster: SmallCluster, **pools: list[Obj]) -> None:
    """Pools that every node can use."""
    for name in ("n1", "n2"):
        await add_node(cluster, name)
    for name, devices in pools.items():
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "allNodes": True, "pool": pool, "devices": devices}
        await cluster.create(RESOURCE_SLICES, {"metadata": {"name": name}, "spec": spec})
    await cluster.create(DEVICE_CLASSES, {"metadata": {"name": "gpus"}, "spec": {}})
    await cluster.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "one"}, "spec": {"spec": SPEC}})


async def add_pod(cluster: SmallCluster, name: str) -> None:
    container = {"name": "main", "image": "i", "resources": {"claims": [{"name": "mine"}]}}
    claims = [{"name": "mine", "resourceClaimTemplateName": "one"}]
    spec = {"schedulerName": "shoal", "containers": [container], "resourceClaims": claims}
    await cluster.create(PODS, {"metadata": {"name": name}, "spec": spec})


async def claim_of(cluster: SmallCluster, pod: str) -> Obj:
    return next(
        one for one in await cluster.all(RESOURCE_CLAIMS) if one["metadata"]["ownerReferences"][0]["name"] == pod
    )


async def device_of(cluster: SmallCluster, pod: str) -> str:
    claim = await claim_of(cluster, pod)
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    return str(results[0]["device"]) if results else ""


async def report(cluster: SmallCluster, pod: str, *true: str, **more: Any) -> None:
    claim = await claim_of(cluster, pod)
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    said = {"status": "True", "reason": "Told", "message": "m", "lastTransitionTime": cluster.clock.text(), **more}
    device = {key: result[key] for key in ("driver", "pool", "device")}
    claim["status"]["devices"] = [{**device, "conditions": [{"type": name, **said} for name in true]}]
    await cluster.api.update(RESOURCE_CLAIMS, claim, "status")


@virtual
async def test_a_pod_is_bound_once_every_condition_of_its_device_holds(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        start_scheduler(cluster)
        await furnish(cluster, fabric=[{"name": "g0", **FABRIC}])
        await add_pod(cluster, "a")
        await cluster.pass_time(30)
        assert not await is_bound(cluster, "a")
        allocation = (await claim_of(cluster, "a"))["status"]["allocation"]
        (result,) = allocation["devices"]["results"]
        assert (result["bindingConditions"], result["bindingFailureConditions"]) == (
            ["Attached", "Powered"],
            ["AttachFailed"],
        )
        ((term,),) = [one["matchFields"] for one in allocation["nodeSelector"]["nodeSelectorTerms"]]
        await report(cluster, "a", "Attached")
        await cluster.pass_time(30)
        assert not await is_bound(cluster, "a")
        await report(cluster, "a", "Attached", "Powered")
        await cluster.until(lambda: is_bound(cluster, "a"), 5)
        assert term == {"key": "metadata.name", "operator": "In", "values": [(await places(cluster))["a"]]}
        said = {one["reason"]: one["message"] for one in await cluster.events("a")}
        assert (
            said["BindingConditionsPending"] == f"waiting for binding conditions for device on node {term['values'][0]}"
        )


@virtual
async def test_a_device_that_cannot_be_attached_is_given_back_and_another_one_tried(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        start_scheduler(cluster)
        await furnish(cluster, fabric=[{"name": "g0", **FABRIC}, {"name": "g1", **FABRIC}])
        await add_pod(cluster, "a")
        await cluster.pass_time(5)
        assert await device_of(cluster, "a") == "g0"
        # The driver withdraws the device with the fault.
        (piece,) = await cluster.all(RESOURCE_SLICES)
        piece["spec"]["devices"] = [{"name": "g1", **FABRIC}]
        await report(cluster, "a", "AttachFailed", reason="NoLink", message='port "3" is dead')
        await cluster.api.update(RESOURCE_SLICES, piece)
        await cluster.pass_time(5)
        assert not await is_bound(cluster, "a")
        assert await device_of(cluster, "a") == "g1"
        claim = (await claim_of(cluster, "a"))["metadata"]["name"]
        words = [one["message"] for one in await cluster.events("a") if one["reason"] == "FailedScheduling"]
        failed = f'claim {claim} binding failed: reason=NoLink, message="port \\"3\\" is dead"'
        assert f'running PreBind plugin "DynamicResources": {failed}' in words
        await report(cluster, "a", "Attached", "Powered")
        await cluster.until(lambda: is_bound(cluster, "a"), 5)


@virtual
async def test_the_wait_ends_ten_minutes_after_the_allocation_whoever_waits(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        first = start_scheduler(cluster)
        await furnish(cluster, fabric=[{"name": "g0", **FABRIC}])
        await add_pod(cluster, "a")
        await cluster.pass_time(300)
        since = (await claim_of(cluster, "a"))["status"]["allocation"]["allocationTimestamp"]
        await first.kill()
        start_scheduler(cluster)
        await cluster.pass_time(290)
        assert (await claim_of(cluster, "a"))["status"]["allocation"]["allocationTimestamp"] == since
        await cluster.pass_time(30)
        claim = await claim_of(cluster, "a")
        assert claim["status"]["allocation"]["allocationTimestamp"] != since
        name = claim["metadata"]["name"]
        said = {one["message"] for one in await cluster.events("a")}
        assert f'running PreBind plugin "DynamicResources": claim {name} binding timeout' in said
        assert (await condition(cluster, "a")).get("status") != "True"


@virtual
async def test_devices_that_are_ready_are_given_first(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        start_scheduler(cluster)
        await furnish(cluster, afabric=[{"name": "g0", **FABRIC}], here=[{"name": "plain"}])
        await add_pod(cluster, "a")
        await cluster.until(lambda: is_bound(cluster, "a"))
        assert await device_of(cluster, "a") == "plain"
        await add_pod(cluster, "b")
        await cluster.pass_time(5)
        assert await device_of(cluster, "b") == "g0"
        assert not await is_bound(cluster, "b")


@virtual
async def test_a_pod_that_goes_while_its_device_is_attached_gives_it_back(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [resource_claim_controller]) as cluster:
        start_scheduler(cluster)
        await furnish(cluster, fabric=[{"name": "g0", **FABRIC}])
        await add_pod(cluster, "a")
        await cluster.pass_time(5)
        await cluster.delete(PODS, "a")
        await add_pod(cluster, "b")
        await cluster.pass_time(10)
        assert await device_of(cluster, "b") == "g0"
        await report(cluster, "b", "Attached", "Powered")
        await cluster.until(lambda: is_bound(cluster, "b"), 5)
