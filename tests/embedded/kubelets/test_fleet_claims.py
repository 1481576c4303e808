"""Simulated nodes publish devices for resource claims as the node agent does, and pods with claims run on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.fleets import FleetRun, fleet_cluster, machine, pod, statuses
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.machines.machine import Machine

DRIVER = "gpu.nvidia.com"
CONFIG = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}
INSTANCE = "gpu-0-mig-1g10gb-19-2"


def node(**more: Any) -> Machine:
    return machine(gpus=2, gives_by_claims=True, **more)


async def published(run: FleetRun) -> dict[str, Obj]:
    """The devices of all slices by name."""
    slices = await run.cluster.all(RESOURCE_SLICES)
    return {one["name"]: one for piece in slices for one in piece["spec"].get("devices", ())}


async def allocated(run: FleetRun, name: str, *devices: str, user: str = "", config: Obj | None = None) -> Obj:
    """A claim that a scheduler has allocated for a pod."""
    cluster = run.cluster
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": max(len(devices), 1)}}
    spec = {"devices": {"requests": [request]}}
    claim = await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": spec})
    results = [{"request": "gpu", "driver": DRIVER, "pool": "node-0", "device": one} for one in devices]
    configs = [] if config is None else [{"source": "FromClaim", "opaque": {"driver": DRIVER, "parameters": config}}]
    claim["status"] = {"allocation": {"devices": {"results": results, "config": configs}}}
    if user:
        claim["status"]["reservedFor"] = [{"resource": "pods", "name": user, "uid": await uid_of(run, user)}]
    return (await cluster.api.update(RESOURCE_CLAIMS, claim, "status")).obj()


async def uid_of(run: FleetRun, name: str) -> str:
    return str((await run.cluster.get(PODS, name))["metadata"]["uid"])


def claiming(name: str, claim: str, **more: Any) -> Obj:
    made = pod(name, resourceClaims=[{"name": "mine", "resourceClaimName": claim}], **more)
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "mine"}]}
    return made


def manager(run: FleetRun) -> DeviceManager:
    found = run.fleet.node("node-0")
    assert found is not None
    assert isinstance(found.gpus, DeviceManager)
    return found.gpus


@virtual
async def test_a_node_with_a_driver_of_claims_publishes_its_gpus_and_advertises_none(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, node()) as run:
        await run.cluster.pass_time(1)
        found = await published(run)
        assert list(found) == ["gpu-0", "gpu-1"]
        assert found["gpu-0"]["attributes"]["uuid"] == {"string": "GPU-node-0-0"}
        there = await run.cluster.get(NODES, "node-0")
        assert not [name for name in there["status"]["allocatable"] if name.startswith("nvidia.com/")]
        labels = there["metadata"]["labels"]
        assert labels["nvidia.com/gpu.deploy.dra-driver"] == "true"
        assert "nvidia.com/gpu.deploy.device-plugin" not in labels
        (piece,) = await run.cluster.all(RESOURCE_SLICES)
        assert piece["metadata"]["ownerReferences"][0]["name"] == "node-0"


@virtual
async def test_a_node_with_a_device_plugin_publishes_none(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=2)) as run:
        await run.cluster.pass_time(1)
        assert await run.cluster.all(RESOURCE_SLICES) == []


@virtual
async def test_slices_are_written_again_only_when_the_devices_change(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, node()) as run:
        await run.cluster.pass_time(1)
        (before,) = await run.cluster.all(RESOURCE_SLICES)
        await run.kill()
        run.start()
        await run.cluster.pass_time(700)
        assert await run.cluster.all(RESOURCE_SLICES) == [before]


@virtual
async def test_an_unhealthy_gpu_is_tainted_until_it_is_mended(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, node()) as run:
        await run.cluster.pass_time(1)
        await run.cluster.patch(NODES, "node-0", {"metadata": {"annotations": {"shoal.dev/gpu-faults": '{"1": 79}'}}})
        await run.cluster.pass_time(2)
        found = await published(run)
        assert {one["key"] for one in found["gpu-1"]["taints"]} == {f"{DRIVER}/xid", f"{DRIVER}/gpu-lost"}
        assert "taints" not in found["gpu-0"]
        await run.cluster.patch(NODES, "node-0", {"metadata": {"annotations": {"shoal.dev/gpu-faults": None}}})
        await run.cluster.pass_time(2)
        assert not any("taints" in one for one in (await published(run)).values())


@virtual
async def test_a_pod_runs_with_the_devices_of_its_claim(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, node()) as run:
        await run.cluster.create(PODS, claiming("pod", "a"))
        claim = await allocated(run, "a", "gpu-1", user="pod")
        running = await run.until_phase("pod", "Running")
        (held,) = statuses(running)["main"]["allocatedResourcesStatus"]
        uid = claim["metadata"]["uid"]
        assert held["name"] == "claim:mine"
        assert held["resources"] == [{"resourceID": f"k8s.gpu.nvidia.com/claim={uid}-gpu-1", "health": "Healthy"}]
        (program,) = manager(run).programs.on("GPU-node-0-1")
        assert program.uid == running["metadata"]["uid"]
        await run.cluster.delete(PODS, "pod")
        await run.until_gone("pod")
        assert not manager(run).is_used(1)


@virtual
async def test_a_pod_with_a_claim_for_an_instance_gets_one_that_is_created(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, node(has_dynamic_mig=True)) as run:
        await run.cluster.pass_time(1)
        assert INSTANCE in await published(run)
        await run.cluster.create(PODS, claiming("pod", "a"))
        await allocated(run, "a", INSTANCE, user="pod")
        await run.until_phase("pod", "Running")
        assert [(one.profile.name, one.start) for one in manager(run).gpus[0].cuts] == [("1g.10gb", 2)]
        assert not manager(run).gpus[1].is_mig
        await run.cluster.pass_time(2)
        annotations = (await run.cluster.get(NODES, "node-0"))["metadata"]["annotations"]
        assert '"profile":"1g.10gb"' in annotations["shoal.dev/topology"]


@virtual
async def test_an_instance_in_use_is_not_given_to_another_claim_and_an_event_says_so(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, node(has_dynamic_mig=True)) as run:
        await run.cluster.create(PODS, claiming("pod", "a"))
        await allocated(run, "a", INSTANCE, user="pod")
        await run.until_phase("pod", "Running")
        await run.cluster.create(PODS, claiming("other", "b"))
        await allocated(run, "b", "gpu-0", user="other")
        await run.cluster.pass_time(5)
        assert (await run.cluster.get(PODS, "other"))["status"]["phase"] == "Pending"
        said = {one["reason"]: one["message"] for one in await run.cluster.events("other")}
        assert said["FailedPrepareDynamicResources"] == (
            "Failed to prepare dynamic resources: ResourceClaim default/b: GPU 0 is divided, and 1g.10gb at slice 2 is "
            "in use; it can be prepared when that work has ended"
        )
        await run.cluster.delete(PODS, "pod")
        await run.until_phase("other", "Running")
        assert not manager(run).gpus[0].is_mig


@virtual
@pytest.mark.parametrize(
    ("devices", "user", "config", "said"),
    [
        (("gpu-9",), "pod", None, "this node has no device gpu-9"),
        (("gpu-0",), "", None, "ResourceClaim default/a is not reserved for pod default/pod"),
        (
            ("gpu-0",),
            "pod",
            {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "x": 1},
            "unknown field",
        ),
    ],
)
async def test_a_pod_whose_claim_cannot_be_prepared_waits_and_can_be_deleted(
    tmp_path: Path, devices: tuple[str, ...], user: str, config: Obj | None, said: str
) -> None:
    async with fleet_cluster(tmp_path, node()) as run:
        await run.cluster.create(PODS, claiming("pod", "a"))
        await allocated(run, "a", *devices, user=user, config=config)
        await run.cluster.pass_time(3)
        assert (await run.cluster.get(PODS, "pod"))["status"]["phase"] == "Pending"
        (event,) = [one for one in await run.cluster.events("pod") if one["reason"] == "FailedPrepareDynamicResources"]
        assert said in event["message"]
        await run.cluster.delete(PODS, "pod")
        await run.until_gone("pod")


@virtual
async def test_after_a_restart_of_the_process_pods_keep_the_devices_of_their_claims(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, node(has_dynamic_mig=True)) as run:
        await run.cluster.create(PODS, claiming("pod", "a"))
        await allocated(run, "a", INSTANCE, user="pod")
        before = statuses(await run.until_phase("pod", "Running"))
        await run.kill()
        run.start()
        await run.cluster.pass_time(5)
        after = await run.cluster.get(PODS, "pod")
        assert statuses(after)["main"]["restartCount"] == 0
        assert statuses(after)["main"]["allocatedResourcesStatus"] == before["main"]["allocatedResourcesStatus"]
        assert manager(run).is_used(0)


@virtual
async def test_the_pods_of_one_claim_share_its_device(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, node()) as run:
        for name in ("one", "two"):
            await run.cluster.create(PODS, claiming(name, "a"))
        claim = await allocated(run, "a", "gpu-0", user="one")
        claim["status"]["reservedFor"].append({"resource": "pods", "name": "two", "uid": await uid_of(run, "two")})
        await run.cluster.api.update(RESOURCE_CLAIMS, claim, "status")
        for name in ("one", "two"):
            await run.until_phase(name, "Running")
        assert len(manager(run).programs.on("GPU-node-0-0")) == 2
        await run.cluster.delete(PODS, "one")
        await run.until_gone("one")
        assert manager(run).is_used(0)


@virtual
async def test_a_claim_for_an_extended_resource_is_named_in_the_status_of_the_pod(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, node()) as run:
        await run.cluster.create(PODS, pod("pod", gpus=1, nodeName=""))
        await allocated(run, "a", "gpu-1", user="pod")
        mapping = {"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "gpu"}
        status = {"extendedResourceClaimStatus": {"resourceClaimName": "a", "requestMappings": [mapping]}}
        await run.cluster.patch(PODS, "pod", {"status": status}, "status")
        await run.cluster.api.post(PODS, "default", "pod", "binding", {"target": {"kind": "Node", "name": "node-0"}})
        running = await run.until_phase("pod", "Running")
        assert statuses(running)["main"]["allocatedResourcesStatus"][0]["name"] == "claim:nvidia.com/gpu/gpu"
        assert manager(run).is_used(1)


@virtual
async def test_metrics_name_the_pod_and_the_claim_of_a_device(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, node(has_dynamic_mig=True)) as run:
        await run.cluster.create(PODS, claiming("pod", "a"))
        await allocated(run, "a", INSTANCE, user="pod")
        await run.until_phase("pod", "Running")
        found = run.fleet.node("node-0")
        assert found is not None
        rows = [line for line in found.dcgm().splitlines() if 'dra_claim_name="a"' in line]
        assert rows
        assert all('pod="pod"' in line and f'dra_device_name="{INSTANCE}"' in line for line in rows)
        assert all('dra_mig_profile="1g.10gb"' in line for line in rows)


@virtual
@pytest.mark.parametrize(("device", "is_mig"), [(INSTANCE, True), ("gpu-1", False)])
async def test_the_log_of_nvidia_smi_lists_the_devices_of_the_claim_also_after_the_end(
    tmp_path: Path, device: str, is_mig: bool
) -> None:
    async with fleet_cluster(tmp_path, node(has_dynamic_mig=True)) as run:
        made = claiming("pod", "a", run_for="5s", restartPolicy="Never")
        made["spec"]["containers"][0]["command"] = ["nvidia-smi"]
        await run.cluster.create(PODS, made)
        await allocated(run, "a", device, user="pod")
        ended = await run.until_phase("pod", "Succeeded")
        found = run.fleet.node("node-0")
        assert found is not None
        logged = "\n".join(one.text for one in found.log(ended["metadata"]["uid"], "main"))
        assert "NVIDIA-SMI" in logged
        assert ("MIG devices:" in logged) == is_mig
