"""Logs of component pods and commands in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.component_pods import component_pod
from build.fleets import FleetRun, fleet_cluster, machine
from build.virtual_time import virtual
from shoal.client.kind import PODS
from shoal.embedded.apiserver.streams.terminal import CommandOutput
from shoal.embedded.gpus.driver import cuda_of, read_driver_image

_IMAGE = "nvcr.io/nvidia/driver:570.133.20-ubuntu24.04"


async def start(run: FleetRun, *components: str) -> None:
    for name in components:
        more = {"image": _IMAGE} if name == "driver" else {}
        await run.cluster.create(PODS, component_pod(name, **more))
    await run.cluster.pass_time(2)


async def log(run: FleetRun, name: str, container: str) -> list[str]:
    simulated = run.fleet.node("node-0")
    assert simulated is not None
    uid = (await run.cluster.get(PODS, name))["metadata"]["uid"]
    return [line.text for line in simulated.log(uid, container)]


async def said(run: FleetRun, name: str, container: str, *command: str) -> CommandOutput:
    simulated = run.fleet.node("node-0")
    assert simulated is not None
    uid = (await run.cluster.get(PODS, name))["metadata"]["uid"]
    return simulated.run(uid, container, command)


@virtual
async def test_a_driver_says_what_it_does_while_it_compiles_and_that_it_is_loaded_at_the_end(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=2, gpu_software="pods")) as run:
        await start(run, "driver")
        await run.cluster.pass_time(150)
        during = await log(run, "driver", "nvidia-driver-ctr")
        assert "compiling the kernel modules of driver 570.133.20" in during
        assert not [line for line in during if line.startswith("the driver is loaded")]
        await run.cluster.pass_time(200)
        after = await log(run, "driver", "nvidia-driver-ctr")
        assert after[-1].startswith("the driver is loaded")
        assert after[: len(during)] == during


@virtual
async def test_an_init_container_says_for_which_layer_it_waits(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=2, gpu_software="pods")) as run:
        await start(run, "toolkit")
        await run.cluster.pass_time(11)
        assert set(await log(run, "toolkit", "driver-validation")) == {"waiting until driver is ready on this node"}
        assert await log(run, "toolkit", "toolkit") == []
        await start(run, "driver")
        await run.cluster.pass_time(400)
        assert (await log(run, "toolkit", "toolkit"))[-1] == "the runtime is configured for GPUs"


@virtual
async def test_nvidia_smi_in_a_driver_pod_shows_all_gpus_once_the_driver_is_loaded(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=2, gpu_software="pods")) as run:
        await start(run, "driver")
        await run.cluster.pass_time(10)
        before = await said(run, "driver", "nvidia-driver-ctr", "nvidia-smi")
        assert before.code == 9
        assert "couldn't communicate with the NVIDIA driver" in before.stdout
        await run.cluster.pass_time(300)
        listed = await said(run, "driver", "nvidia-driver-ctr", "nvidia-smi", "-L")
        assert listed.stdout.count("GPU-node-0-") == 2
        table = await said(run, "driver", "nvidia-driver-ctr", "sh", "-c", "nvidia-smi")
        assert "Driver Version: 570.133.20" in table.stdout
        assert "CUDA Version: 12.8" in table.stdout
        version = await said(
            run, "driver", "nvidia-driver-ctr", "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"
        )
        assert version.stdout == "570.133.20\n570.133.20\n"


@virtual
async def test_dcgmi_works_in_the_pods_that_have_it(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=2, gpu_software="driver+toolkit")) as run:
        await start(run, "dcgm-exporter", "device-plugin")
        await run.cluster.pass_time(60)
        found = await said(run, "dcgm-exporter", "dcgm-exporter", "dcgmi", "discovery", "-l")
        assert found.stdout.startswith("2 GPUs found.\n")
        statistics = await said(run, "dcgm-exporter", "dcgm-exporter", "dcgmi", "stats", "-g", "0")
        assert [line.split()[0] for line in statistics.stdout.splitlines()] == ["GPU", "0", "1"]
        assert (await said(run, "dcgm-exporter", "dcgm-exporter", "dcgmi", "topo")).code == 2
        assert (await said(run, "device-plugin", "device-plugin", "dcgmi", "discovery", "-l")).code == 127


@pytest.mark.parametrize(
    ("image", "version", "is_precompiled"),
    [
        ("nvcr.io/nvidia/driver:580.82.07-ubuntu24.04", "580.82.07", False),
        ("driver:570.133.20", "570.133.20", False),
        ("registry:5000/driver:580-6.8.0-1040-generic-ubuntu24.04", "580.95.05", True),
        ("driver:550-5.15.0-91-generic-ubuntu22.04", "550.00", True),
        ("driver:580-open", "580.95.05", False),
        ("driver@sha256:0123", "580.95.05", False),
        ("registry:5000/driver", "580.95.05", False),
        ("driver:latest", "580.95.05", False),
        ("", "580.95.05", False),
    ],
)
def test_the_tag_of_the_image_names_the_version_of_the_driver(image: str, version: str, is_precompiled: bool) -> None:
    assert read_driver_image(image) == (version, is_precompiled)


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [("580.82.07", "13.0"), ("599.1", "13.1"), ("535.1", "12.2"), ("470.1", "11.8"), ("x", "11.8"), ("9" * 9, "11.8")],
)
def test_each_driver_supports_the_cuda_version_of_its_branch(driver: str, cuda: str) -> None:
    assert cuda_of(driver) == cuda
