"""The programs people run first on a new cluster print what they would print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.fleets import FleetRun, fleet_cluster, machine, pod
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.embedded.apiserver.streams.terminal import CannedTerminal, CommandPlace

_SAMPLE = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda11.7.1"


def _program(name: str, gpus: int = 1, **container: Any) -> Obj:
    made = pod(name, gpus=gpus, restartPolicy="Never")
    made["spec"]["containers"][0] |= container
    return made


async def _log(run: FleetRun, made: Obj) -> list[str]:
    node = run.fleet.node("node-0")
    assert node is not None
    return [line.text for line in node.log(made["metadata"]["uid"], "main")]


@virtual
async def test_nvidia_smi_prints_its_table_while_it_runs_and_after_it_ended(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=1)) as run:
        made = await run.cluster.create(PODS, _program("look", command=["nvidia-smi"]))
        await run.until_phase("look", "Running")
        early = await _log(run, made)
        assert any("NVIDIA-SMI" in line for line in early)
        assert any("H100" in line for line in early)
        await run.until_phase("look", "Succeeded", 15)
        assert await _log(run, made) == early


@virtual
async def test_nvidia_smi_without_a_gpu_says_that_it_is_not_there(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=1)) as run:
        made = await run.cluster.create(PODS, _program("blind", 0, command=["sh", "-c", "nvidia-smi"]))
        await run.until_phase("blind", "Succeeded", 15)
        assert await _log(run, made) == ["nvidia-smi: not found: this container asks for no GPU"]


def test_a_pod_with_a_fraction_sees_the_gpu_that_the_scheduler_chose() -> None:
    shared = _program("shared", 0)
    chosen = '{"main":{"nvidia.com/gpu":["GPU-1b2c::3"]}}'
    shared["metadata"]["annotations"] = {"gpu-fraction": "0.5", "shoal.dev/devices": chosen}
    place = CommandPlace(shared, shared["spec"]["containers"][0])
    assert CannedTerminal().run(place, ["nvidia-smi", "-L"]).stdout == "GPU 0: NVIDIA GPU (UUID: GPU-1b2c)\n"
    assert CannedTerminal().run(place, ["printenv", "NVIDIA_VISIBLE_DEVICES"]).stdout == "GPU-1b2c\n"
    other = {"name": "sidecar"}
    assert CannedTerminal().run(CommandPlace(shared, other), ["nvidia-smi"]).code == 127


@virtual
async def test_the_vector_addition_sample_ends_its_log_with_its_success(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=1)) as run:
        made = await run.cluster.create(PODS, _program("add", image=_SAMPLE))
        await run.until_phase("add", "Succeeded", 15)
        assert (await _log(run, made))[-1] == "Test PASSED"


@virtual
async def test_the_samples_image_with_another_command_is_another_program(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=1)) as run:
        made = await run.cluster.create(PODS, _program("other", image=_SAMPLE, command=["train"]))
        await run.until_phase("other", "Succeeded", 15)
        assert "Test PASSED" not in await _log(run, made)
