"""A process pod has its volumes in memory until its processes have ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.launches import LaunchInputs
from shoal.agent.kubelet.mounts import mounted_below, no_mounts, unmount_below
from shoal.agent.kubelet.process.cgroups import Cgroups
from shoal.agent.kubelet.process.launcher import ProcessLauncher
from shoal.agent.kubelet.process.runtime import ProcessRuntime


async def no_handler() -> str:
    return ""


def tell(reason: str, message: str, container: str = "", *, warns: bool = False) -> None:
    raise AssertionError(reason, message, container, warns)


@pytest.mark.skipif(bool(no_mounts()), reason="needs the right to mount")
async def test_a_volume_in_memory_has_its_size_until_the_pod_has_ended(tmp_path: Path) -> None:
    main = {"name": "main", "command": ["x"], "volumeMounts": [{"name": "fast", "mountPath": "/fast"}]}
    volumes = [{"name": "fast", "emptyDir": {"medium": "Memory", "sizeLimit": "64Ki"}}]
    metadata = {"name": "p", "namespace": "n", "uid": "u"}
    pod = {"metadata": metadata, "spec": {"containers": [main], "volumes": volumes}}
    launcher = ProcessLauncher(ProcessRuntime(tmp_path, Cgroups(tmp_path / "none")), NodeGpus(None))
    folder = tmp_path / "u"
    inputs = LaunchInputs(pod, main, folder, "10.0.0.7", {}, {}, {}, tell, no_handler)
    try:
        launch = await launcher.launch(inputs)

        path = Path(launch.environment["SHOAL_MOUNT_FAST"])
        assert mounted_below(folder) == [path]
        assert os.statvfs(path).f_blocks * os.statvfs(path).f_frsize == 64 * 1024
        (path / "kept").touch()
        await launcher.launch(inputs)
        assert (path / "kept").exists()

        await launcher.end("u", folder)
        assert mounted_below(folder) == []
    finally:
        unmount_below(tmp_path)
