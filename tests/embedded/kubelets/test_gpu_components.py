"""On a node whose GPU software comes with pods, each component pod adds its layer, and takes it away at its end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from build.component_pods import component_pod
from build.fleets import FleetRun, fleet_cluster, machine, pod
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS

_CHAIN = ("discovery", "driver", "toolkit", "device-plugin", "feature-discovery", "validator")
_PRESENT = "feature.node.kubernetes.io/pci-10de.present"
_DRIVER_LABEL = "nvidia.com/cuda.driver-version.full"


def bare(*, gpus: int = 8, software: str = "pods", **more: Any) -> Any:
    return machine(gpus=gpus, gpu_software=software, **more)


async def node(run: FleetRun) -> Obj:
    return await run.cluster.get(NODES, "node-0")


async def gpus(run: FleetRun) -> tuple[str | None, str | None]:
    """Capacity and allocatable."""
    status = (await node(run))["status"]
    return status["capacity"].get("nvidia.com/gpu"), status["allocatable"].get("nvidia.com/gpu")


async def labels(run: FleetRun) -> dict[str, str]:
    found: dict[str, str] = (await node(run))["metadata"]["labels"]
    return found


async def is_ready(run: FleetRun, name: str) -> bool:
    conditions = (await run.cluster.get(PODS, name))["status"].get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def install(run: FleetRun, components: Sequence[str], **template: Any) -> None:
    for component in components:
        await run.cluster.create(PODS, component_pod(component, **template if component == "driver" else {}))


async def until_ready(run: FleetRun, *names: str) -> None:
    for name in names:
        await run.cluster.until(lambda name=name: is_ready(run, name), 900)  # type: ignore[misc]
    await run.cluster.pass_time(1)


@virtual
async def test_a_new_node_has_neither_a_resource_nor_labels_of_its_gpus(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, bare()) as run:
        await run.cluster.pass_time(5)
        assert await gpus(run) == (None, None)
        assert not [name for name in await labels(run) if name.startswith(("nvidia.com/", "feature.node."))]


@virtual
async def test_all_components_together_make_the_gpus_allocatable_within_ten_minutes(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, bare()) as run:
        began_s = run.cluster.clock.seconds()
        await install(run, _CHAIN)
        await until_ready(run, *_CHAIN)
        assert 240 < run.cluster.clock.seconds() - began_s < 600
        assert await gpus(run) == ("8", "8")
        found = await labels(run)
        assert found[_PRESENT] == "true"
        assert found["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
        assert "nvidia.com/gpu.deploy.driver" not in found


@virtual
async def test_precompiled_drivers_make_the_gpus_allocatable_within_five_minutes(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, bare()) as run:
        began_s = run.cluster.clock.seconds()
        await install(run, _CHAIN, image="nvcr.io/nvidia/driver:580-6.8.0-1040-generic-ubuntu24.04")
        await until_ready(run, *_CHAIN)
        assert run.cluster.clock.seconds() - began_s < 300


@virtual
async def test_a_component_waits_in_its_init_container_until_the_layer_below_it_works(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, bare()) as run:
        await install(run, ("toolkit", "device-plugin", "validator"))
        await run.cluster.pass_time(600)
        for name in ("toolkit", "device-plugin", "validator"):
            status = (await run.cluster.get(PODS, name))["status"]
            assert status["phase"] == "Pending"
            assert "running" in status["initContainerStatuses"][0]["state"]
        assert await gpus(run) == (None, None)
        await install(run, ("driver",))
        await until_ready(run, "driver", "toolkit", "device-plugin", "validator")
        assert await gpus(run) == ("8", "8")


@virtual
async def test_discovery_writes_the_labels_of_the_machine_and_its_end_leaves_them(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, bare()) as run:
        await install(run, ("discovery",))
        await until_ready(run, "discovery")
        assert (await labels(run))[_PRESENT] == "true"
        await run.cluster.delete(PODS, "discovery")
        await run.until_gone("discovery")
        await run.cluster.pass_time(5)
        assert (await labels(run))[_PRESENT] == "true"


@virtual
async def test_a_machine_without_gpus_is_discovered_without_the_label_of_nvidia(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, bare(gpus=0)) as run:
        await install(run, ("discovery",))
        await until_ready(run, "discovery")
        found = await labels(run)
        assert _PRESENT not in found
        assert found["feature.node.kubernetes.io/system-os_release.ID"] == "ubuntu"


@virtual
async def test_the_end_of_the_device_plugin_leaves_nothing_allocatable(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, bare()) as run:
        await install(run, _CHAIN)
        await until_ready(run, *_CHAIN)
        await run.cluster.delete(PODS, "device-plugin")
        await run.until_gone("device-plugin")
        await run.cluster.pass_time(2)
        assert await gpus(run) == ("8", "0")
        assert not await is_ready(run, "validator")
        await run.cluster.create(PODS, pod("late", gpus=1))
        refused = await run.until_phase("late", "Failed")
        assert refused["status"]["reason"] == "UnexpectedAdmissionError"
        await run.cluster.create(PODS, component_pod("device-plugin"))
        await until_ready(run, "device-plugin", "validator")
        assert await gpus(run) == ("8", "8")


@virtual
async def test_a_replaced_driver_stops_the_layers_above_it_until_it_runs_and_changes_the_version(
    tmp_path: Path,
) -> None:
    async with fleet_cluster(tmp_path, bare()) as run:
        await install(run, _CHAIN, image="nvcr.io/nvidia/driver:570.133.20-ubuntu24.04")
        await until_ready(run, *_CHAIN)
        assert (await labels(run))[_DRIVER_LABEL] == "570.133.20"
        await run.cluster.create(PODS, pod("training", gpus=1, run_for="1h"))
        await run.until_phase("training", "Running")
        await run.cluster.delete(PODS, "driver")
        await run.until_gone("driver")
        await run.cluster.pass_time(2)
        assert await gpus(run) == ("8", "0")
        for name in ("toolkit", "device-plugin", "feature-discovery", "validator"):
            assert not await is_ready(run, name)
        await install(run, ("driver",), image="nvcr.io/nvidia/driver:580.82.07-ubuntu24.04")
        await until_ready(run, "driver", "toolkit", "device-plugin", "feature-discovery", "validator")
        assert await gpus(run) == ("8", "8")
        found = await labels(run)
        assert (found[_DRIVER_LABEL], found["nvidia.com/cuda.runtime-version.full"]) == ("580.82.07", "13.0")
        await run.until_phase("training", "Running")


@virtual
@pytest.mark.parametrize(("software", "first"), [("driver", "toolkit"), ("driver+toolkit", "device-plugin")])
async def test_preinstalled_layers_need_no_pods(tmp_path: Path, software: str, first: str) -> None:
    rest = _CHAIN[_CHAIN.index(first) :]
    async with fleet_cluster(tmp_path, bare(software=software)) as run:
        await install(run, rest)
        await until_ready(run, *rest)
        assert await gpus(run) == ("8", "8")


@virtual
async def test_a_driver_that_fails_to_compile_crashes_until_it_is_healed(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, bare()) as run:
        await fault(run, '{"driver": "error"}')
        await install(run, _CHAIN)
        await run.cluster.until(lambda: waits_with(run, "driver", "CrashLoopBackOff"), 300)
        assert await gpus(run) == (None, None)
        assert (await run.cluster.get(PODS, "toolkit"))["status"]["phase"] == "Pending"
        await fault(run, None)
        await until_ready(run, *_CHAIN)
        assert await gpus(run) == ("8", "8")


@virtual
async def test_an_image_that_cannot_be_pulled_is_tried_again(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, bare()) as run:
        await fault(run, '{"device-plugin": "image-pull"}')
        await install(run, _CHAIN)
        await run.cluster.until(lambda: waits_with(run, "device-plugin", "ImagePullBackOff"), 900)
        said = {(event["reason"], event["message"]) for event in await run.cluster.events("device-plugin")}
        assert ("Failed", "Error: ErrImagePull") in said
        await fault(run, None)
        await until_ready(run, *_CHAIN)
        assert await gpus(run) == ("8", "8")


@virtual
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('{"drivers": "error"}', 'shoal.dev/component-faults: no component "drivers"; there are discovery, driver'),
        ('{"driver": "slow"}', "with KIND error or image-pull"),
        ("[", "shoal.dev/component-faults: "),
    ],
)
async def test_faults_that_cannot_be_read_are_reported_and_change_nothing(
    tmp_path: Path, written: str, said: str
) -> None:
    async with fleet_cluster(tmp_path, bare(software="driver+toolkit")) as run:
        await fault(run, written)
        await install(run, ("device-plugin",))
        await until_ready(run, "device-plugin")
        messages = [
            one["message"] for one in await run.cluster.events("node-0") if one["reason"] == "InvalidAnnotation"
        ]
        assert len(messages) == 1
        assert said in messages[0]


@virtual
async def test_a_restarted_fleet_keeps_the_gpus_allocatable_at_every_moment(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, bare()) as run:
        await install(run, _CHAIN)
        await until_ready(run, *_CHAIN)
        seen: list[str | None] = []
        informer = run.cluster.informers.of(NODES)
        informer.on_change(
            lambda _, after: seen.append(after.obj()["status"]["allocatable"].get("nvidia.com/gpu") if after else None)
        )
        await run.kill()
        run.start()
        await run.cluster.pass_time(400)
        assert set(seen) == {"8"}
        assert await is_ready(run, "validator")
        assert (await labels(run))["nvidia.com/gpu.count"] == "8"


@virtual
async def test_the_mig_manager_follows_the_layout_of_the_label_when_it_runs(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, bare(mig_strategy="mixed", mig_config="all-1g.10gb")) as run:
        await install(run, _CHAIN)
        await until_ready(run, *_CHAIN)
        assert "nvidia.com/mig.config.state" not in await labels(run)
        assert await gpus(run) == ("8", "8")
        await run.cluster.create(PODS, component_pod("mig-manager"))
        await until_ready(run, "mig-manager")
        assert (await labels(run))["nvidia.com/mig.config.state"] == "success"
        status = (await node(run))["status"]
        assert (status["allocatable"]["nvidia.com/gpu"], status["allocatable"]["nvidia.com/mig-1g.10gb"]) == ("0", "56")


@virtual
async def test_the_exporter_of_a_node_has_figures_only_while_its_pod_works(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, bare(gpus=1, software="driver+toolkit")) as run:
        await run.cluster.pass_time(1)
        simulated = run.fleet.node("node-0")
        assert simulated is not None
        assert simulated.dcgm() == ""
        await run.cluster.create(PODS, component_pod("dcgm-exporter"))
        await until_ready(run, "dcgm-exporter")
        assert "DCGM_FI_DEV_GPU_UTIL" in simulated.dcgm()


@virtual
async def test_component_pods_change_nothing_on_a_node_whose_software_is_included(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=8)) as run:
        await fault(run, '{"driver": "error"}')
        await install(run, ("driver", "toolkit", "validator"))
        await until_ready(run, "driver", "toolkit", "validator")
        assert await gpus(run) == ("8", "8")
        await run.cluster.delete(PODS, "driver")
        await run.until_gone("driver")
        assert await gpus(run) == ("8", "8")
        assert await is_ready(run, "toolkit")


async def fault(run: FleetRun, faults: str | None) -> None:
    await run.cluster.until(lambda: exists(run))
    body = {"metadata": {"annotations": {"shoal.dev/component-faults": faults}}}
    await run.cluster.patch(NODES, "node-0", body)
    await run.cluster.pass_time(1)


async def exists(run: FleetRun) -> bool:
    return bool(await run.cluster.all(NODES))


async def waits_with(run: FleetRun, name: str, reason: str) -> bool:
    statuses = (await run.cluster.get(PODS, name))["status"].get("containerStatuses") or ()
    return any(one["state"].get("waiting", {}).get("reason") == reason for one in statuses)
