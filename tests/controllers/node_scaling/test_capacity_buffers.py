"""Free capacity that is kept for pods that may come, through the API server and the simulated cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.scaled_clusters import GPU, ScaledCluster, scaled_cluster
from build.virtual_time import virtual
from shoal.autoscale.capacity_buffers.forecast_text import forecast_text
from shoal.autoscale.demand.forecast import HOURS, DemandForecast, ForecastError
from shoal.client.ecosystem_kinds import CAPACITY_BUFFERS, PROVISIONING_REQUESTS
from shoal.client.item import Obj
from shoal.client.kind import POD_TEMPLATES, PODS, RESOURCE_CLAIMS, RESOURCE_QUOTAS, RESOURCE_SLICES

_GROUPS = ("karpenter.sh", "scheduling.x-k8s.io", "autoscaling.x-k8s.io")


async def _buffer(world: ScaledCluster, notes: dict[str, str] | None = None, **spec: Any) -> None:
    container = {"name": "main", "image": "server", "resources": {"limits": {GPU: "8"}}}
    template = {"spec": {"containers": [container]}}
    await world.cluster.create(POD_TEMPLATES, {"metadata": {"name": "server"}, "template": template})
    meta: Obj = {"name": "ready", "annotations": notes or {}}
    body = {"podTemplateRef": {"name": "server"}, **spec}
    await world.cluster.create(CAPACITY_BUFFERS, {"metadata": meta, "spec": body})


async def _conditions(world: ScaledCluster) -> dict[str, tuple[str, str]]:
    found = await world.cluster.get(CAPACITY_BUFFERS, "ready")
    return {each["type"]: (each["status"], each["message"]) for each in found["status"]["conditions"]}


@virtual
async def test_a_pod_starts_at_once_on_capacity_that_was_kept_and_other_capacity_follows(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool(disruption={"consolidateAfter": "0s"})
        await _buffer(world, replicas=1)
        await world.cluster.pass_time(240)
        assert len(await world.instances()) == 1, "the empty node is kept"
        await world.pod("solo", 8)
        await world.until_running("solo", 1, within_s=10)
        await world.cluster.pass_time(240)
        assert len(await world.instances()) == 2
        assert (await _conditions(world))["Provisioning"][0] == "True"


@virtual
async def test_capacity_is_given_back_when_its_hours_are_over(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool(disruption={"consolidateAfter": "0s"})
        # The test begins at midnight.
        await _buffer(world, {"shoal.dev/buffer-start": "0 23 * * *", "shoal.dev/buffer-end": "10 0 * * *"}, replicas=1)
        await world.cluster.pass_time(300)
        assert len(await world.instances()) == 1
        await world.cluster.pass_time(600)
        assert not await world.instances()


@virtual
async def test_capacity_for_a_predicted_demand_is_kept_until_its_hour_is_over(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool(disruption={"consolidateAfter": "0s"})
        now = world.cluster.clock.now()
        hour = now.weekday() * 24 + now.hour
        gpus = tuple(8.0 if each == hour else 0.0 for each in range(HOURS))
        found = DemandForecast(gpus, 2, ForecastError(HOURS, 1.5, 0.1, 0.5, 1.0))
        text = forecast_text(found, round(now.timestamp() * 1000), "UTC")
        await _buffer(world, {"shoal.dev/buffer-forecast": text}, replicas=5)
        await world.cluster.pass_time(240)
        assert len(await world.instances()) == 1
        assert "mean error 1.5 GPUs" in (await _conditions(world))["ReadyForProvisioning"][1]
        await world.pod("solo", 8)
        await world.until_running("solo", 1, within_s=10)
        await world.cluster.pass_time(240)
        assert len(await world.instances()) == 1, "the predicted demand has come"
        await world.cluster.delete(PODS, "solo")
        await world.cluster.pass_time(3600)
        assert not await world.instances()


@virtual
async def test_parts_of_gpus_and_claimed_devices_that_are_in_use_are_not_kept_again(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool()
        device = {"name": "gpu-0", "attributes": {"uuid": {"string": "GPU-0"}}}
        pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
        slices: Obj = {"driver": "gpu.nvidia.com", "nodeName": "n", "pool": pool, "devices": [device]}
        await world.cluster.create(RESOURCE_SLICES, {"metadata": {"name": "n"}, "spec": slices})
        wanted: Obj = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
        await world.cluster.create(
            RESOURCE_CLAIMS, {"metadata": {"name": "one"}, "spec": {"devices": {"requests": [wanted]}}}
        )
        result = {"driver": "gpu.nvidia.com", "pool": "n", "device": "gpu-0", "request": "gpu"}
        status: Obj = {"allocation": {"devices": {"results": [result]}}}
        await world.cluster.patch(RESOURCE_CLAIMS, "one", {"status": status}, "status")
        claims = [{"name": "gpu", "resourceClaimName": "one"}]
        await world.pod("claimed", 0, resourceClaims=claims, nodeName="n")
        for number in range(14):
            await world.pod(f"part-{number}", 0, notes={"gpu-fraction": "0.5"}, schedulerName="another")
        now = world.cluster.clock.now()
        found = DemandForecast((8.0,) * HOURS, 2, ForecastError(HOURS, 1.5, 0.1, 0.5, 1.0))
        text = forecast_text(found, round(now.timestamp() * 1000), "UTC")
        await _buffer(world, {"shoal.dev/buffer-forecast": text}, replicas=5)
        # Later the controller of pods deletes the claimed one, whose node does not exist.
        await world.cluster.pass_time(15)
        assert (await _conditions(world))["ReadyForProvisioning"][0] == "True"
        assert (await world.cluster.get(CAPACITY_BUFFERS, "ready"))["status"]["replicas"] == 0


@virtual
async def test_a_forecast_that_cannot_be_read_is_reported_outside_of_its_hours_too(
    tmp_path: Path,
) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool(disruption={"consolidateAfter": "0s"})
        await world.pod("solo", 8)
        await world.until_running("solo", 1, within_s=120)
        hours = {"shoal.dev/buffer-start": "0 20 * * *", "shoal.dev/buffer-end": "0 22 * * *"}
        await _buffer(world, {"shoal.dev/buffer-forecast": "soon", **hours}, replicas=5)
        await world.cluster.delete(PODS, "solo")
        await world.cluster.pass_time(600)
        status, message = (await _conditions(world))["ReadyForProvisioning"]
        assert status == "False"
        assert "the forecast cannot be read" in message
        assert not await world.instances(), "nodes are removed although a buffer is wrong"


@virtual
async def test_pods_get_nodes_before_a_buffer_does(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool(limits={"nodes": "1"})
        await world.pod("solo", 8)
        await _buffer(world, replicas=1)
        await world.until_running("solo", 1, within_s=120)
        status, message = (await _conditions(world))["Provisioning"]
        assert status == "False"
        assert "the limits of the pool are reached" in message


@virtual
async def test_a_buffer_that_cannot_be_kept_says_so(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool()
        await _buffer(world)
        await world.cluster.pass_time(30)
        status, message = (await _conditions(world))["ReadyForProvisioning"]
        assert status == "False"
        assert "neither replicas nor limits are set" in message


@virtual
async def test_the_room_of_a_buffer_whose_template_is_deleted_is_given_back(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool(disruption={"consolidateAfter": "0s"})
        await _buffer(world, replicas=1)
        await world.cluster.pass_time(240)
        assert len(await world.instances()) == 1
        await world.cluster.delete(POD_TEMPLATES, "server")
        await world.cluster.pass_time(600)
        assert not await world.instances()
        found = await _conditions(world)
        assert {name: status for name, (status, _) in found.items()} == {
            "ReadyForProvisioning": "False",
            "Provisioning": "False",
        }
        assert "PodTemplate server not found" in found["Provisioning"][1]
        assert (await world.cluster.get(CAPACITY_BUFFERS, "ready"))["status"]["replicas"] == 0


@virtual
async def test_the_quota_of_a_namespace_limits_its_buffers_and_requests(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool()
        hard = {f"requests.{GPU}": "16"}
        await world.cluster.create(RESOURCE_QUOTAS, {"metadata": {"name": "team"}, "spec": {"hard": hard}})
        await world.pod("solo", 8)
        await _buffer(world, replicas=3)
        await world.until_running("solo", 1, within_s=120)
        status = (await world.cluster.get(CAPACITY_BUFFERS, "ready"))["status"]
        assert status["replicas"] == 1
        assert len(await world.instances()) == 2
        said = (await _conditions(world))["LimitedByQuotas"]
        assert said[0] == "True"
        assert "room is kept for 1 of 3 pods: exceeded quota: team" in said[1]
        assert any(each["reason"] == "LimitedByQuotas" for each in await world.cluster.events("ready"))

        sets = [{"podTemplateRef": {"name": "server"}, "count": 2}]
        spec: Obj = {"provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io", "podSets": sets}
        await world.cluster.create(PROVISIONING_REQUESTS, {"metadata": {"name": "train"}, "spec": spec})
        await world.cluster.pass_time(20)
        found = (await world.cluster.get(PROVISIONING_REQUESTS, "train"))["status"]["conditions"][-1]
        assert (found["type"], found["status"]) == ("Provisioned", "False")
        assert "exceeded quota: team" in found["message"]
        assert len(await world.instances()) == 2
        await world.cluster.patch(RESOURCE_QUOTAS, "team", {"spec": {"hard": {f"requests.{GPU}": "64"}}})
        await world.cluster.pass_time(120)
        assert (await _conditions(world))["LimitedByQuotas"][0] == "False"
        assert len(await world.instances()) == 6
