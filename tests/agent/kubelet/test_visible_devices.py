"""A pod sees the GPUs that were allocated to it, whatever its spec says about the variables that name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.gpu_pods import watched
from build.kubelet_on_cri import kubelet_on_cri
from shoal.agent.kubelet.cri.gpu_access import CdiFolder, GpuAccess
from shoal.agent.kubelet.cri.images import Images
from shoal.agent.kubelet.cri.launcher import ContainerLauncher
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.launches import LaunchInputs
from shoal.agent.kubelet.process.launcher import ProcessLauncher
from shoal.agent.kubelet.process.runtime import ProcessRuntime
from shoal.wiring.gpu_driver import open_driver

Obj = dict[str, Any]
CUDA, NVIDIA = "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"


def pod(count: int, **main: Any) -> Obj:
    limits = {"nvidia.com/gpu": str(count)} if count else {}
    env = [{"name": CUDA, "value": "0,1,2"}, {"name": NVIDIA, "value": "all"}]
    container = {"name": "main", "image": "app:1", "command": ["serve"], "env": env, "resources": {"limits": limits}}
    metadata = {"name": "train", "namespace": "default", "uid": "u1"}
    return {"metadata": metadata, "spec": {"nodeName": "n", "containers": [{**container, **main}]}}


async def no_handler() -> str:
    return ""


def inputs(obj: Obj, folder: Path) -> LaunchInputs:
    return LaunchInputs(
        pod=obj,
        container=obj["spec"]["containers"][0],
        folder=folder,
        node_address="127.0.0.1",
        allocatable={},
        sources={},
        tokens={},
        tell=lambda reason, message, container="", warns=False: None,
        handler=no_handler,
    )


@pytest.mark.parametrize("count", [0, 2])
async def test_a_process_pod_does_not_choose_its_gpus_by_variables(tmp_path: Path, count: int) -> None:
    gpus = NodeGpus(watched(open_driver("dgx-h100")))
    obj = pod(count)
    assert gpus.admit(obj) is None

    launch = await ProcessLauncher(ProcessRuntime(tmp_path), gpus).launch(inputs(obj, tmp_path))

    given = [device.physical for device in gpus.devices("u1", "main")]
    assert len(given) == count
    assert launch.environment[CUDA] == ",".join(given)
    assert launch.environment[NVIDIA] == (",".join(given) or "void")


@pytest.mark.parametrize(("is_privileged", "value"), [(False, "void"), (True, "all")])
async def test_a_container_does_not_choose_its_gpus_by_variables_unless_it_is_privileged(
    tmp_path: Path, is_privileged: bool, value: str
) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        driver = open_driver("dgx-h100")
        access = GpuAccess(lambda: driver, NodeGpus(watched(driver)), CdiFolder(None, tmp_path))
        launcher = ContainerLauncher(machine.runtime, Images(machine.calls, machine.cluster.clock), access)

        obj = pod(0, securityContext={"privileged": is_privileged})
        (tmp_path / "pod").mkdir()
        launch = await launcher.launch(inputs(obj, tmp_path / "pod"))

        assert launch.environment[NVIDIA] == value
