"""Containers get the GPUs that were allocated to them: by CDI names, or by the device nodes themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from build.gpu_pods import watched
from shoal.agent.kubelet.cri.gpu_access import CdiFolder, GpuAccess
from shoal.agent.kubelet.gpus import NodeGpus
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
