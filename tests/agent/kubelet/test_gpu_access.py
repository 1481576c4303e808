"""Containers get the GPUs that were allocated to them: by CDI names, or by the device nodes themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.gpu_pods import gpu_pod, watched
from shoal.agent.kubelet.cri.gpu_access import CdiFolder, GpuAccess
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.devices.plugin_config import PluginConfig
from shoal.wiring.gpu_driver import open_driver

Obj = dict[str, Any]


def access(root: Path, specifications: Path | None = None) -> GpuAccess:
    """Two pods have GPUs of an eight-GPU machine; `root` has the driver's files."""
    driver = open_driver("dgx-h100")
    gpus = NodeGpus(watched(driver))
    for uid, count in (("u", 2), ("other", 1)):
        limits = {"nvidia.com/gpu": str(count)}
        main = {"name": "main", "resources": {"limits": limits, "requests": limits}}
        assert gpus.admit({"metadata": {"name": uid, "uid": uid}, "spec": {"containers": [main]}}) is None
    version = driver.versions().driver
    library = root / f"usr/lib/x86_64-linux-gnu/libcuda.so.{version}"
    library.parent.mkdir(parents=True)
    library.touch()
    (library.parent / "libcuda.so.1").symlink_to(library.name)
    (root / "dev").mkdir()
    (root / "dev/nvidiactl").touch()
    return GpuAccess(lambda: driver, gpus, CdiFolder(specifications, root))


def test_device_nodes_and_files_are_given_where_the_runtime_reads_no_specification(tmp_path: Path) -> None:
    found = access(tmp_path).of("u", "main")

    paths = [one.path for one in found.nodes]
    assert paths[0] == "/dev/nvidiactl"
    assert len(paths) == 3
    assert all(one.host_path == f"{tmp_path}{one.path}" for one in found.nodes)
    mounted = {one.container_path for one in found.mounts}
    assert "/usr/lib/x86_64-linux-gnu/libcuda.so.1" in mounted
    assert all(one.is_read_only for one in found.mounts)
    assert not found.cdi
    assert found.environment == {"NVIDIA_VISIBLE_DEVICES": "void"}


def test_each_pod_has_its_own_gpus(tmp_path: Path) -> None:
    gpus = access(tmp_path)

    both = [{one.path for one in gpus.of(uid, "main").nodes} for uid in ("u", "other")]

    assert both[0] & both[1] == {"/dev/nvidiactl"}


def test_names_of_a_written_specification_are_given_where_the_runtime_reads_it(tmp_path: Path) -> None:
    folder = tmp_path / "cdi"
    folder.mkdir()

    found = access(tmp_path / "root", folder).of("u", "main")

    written = json.loads(next(folder.iterdir()).read_text())
    names = {f"{written['kind']}={one['name']}" for one in written["devices"]}
    assert len(found.cdi) == 2
    assert {*found.cdi} <= names
    assert not found.nodes


def test_a_container_without_gpus_sees_none(tmp_path: Path) -> None:
    found = access(tmp_path).of("without", "main")

    assert (found.nodes, found.cdi) == ((), ())
    assert found.environment == {"NVIDIA_VISIBLE_DEVICES": "void"}


def test_without_a_driver_nothing_is_added() -> None:
    found = GpuAccess(lambda: None, NodeGpus(None), CdiFolder()).of("u", "main")

    assert not found.environment


@pytest.mark.parametrize("has_cdi", [False, True])
def test_containers_of_a_gpu_that_mps_shares_have_the_folders_of_its_daemon(tmp_path: Path, has_cdi: bool) -> None:
    driver = open_driver("dgx-h100")
    gpus = NodeGpus(watched(driver))
    gpus.use(PluginConfig(sharing="mps", replicas=(("*", 4),)), f"{tmp_path}/mps")
    assert gpus.admit(gpu_pod("u", 1)) is None

    found = GpuAccess(lambda: driver, gpus, CdiFolder(tmp_path / "cdi" if has_cdi else None, tmp_path)).of("u", "main")

    assert found.environment == {
        "NVIDIA_VISIBLE_DEVICES": "void",
        "CUDA_MPS_PIPE_DIRECTORY": "/mps/nvidia.com/gpu/pipe",
    }
    mounts = {one.container_path: str(one.host_path) for one in found.mounts}
    assert mounts["/mps/nvidia.com/gpu/pipe"] == f"{tmp_path}/mps/nvidia.com/gpu/pipe"
    assert mounts["/dev/shm"] == f"{tmp_path}/mps/shm"  # noqa: S108 - that of MPS
