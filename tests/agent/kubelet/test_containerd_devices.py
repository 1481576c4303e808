"""A real containerd gives a container the GPUs that it was allocated, and the network of a CNI plugin."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest

from build.containerd import PAUSE, TOOLS, Containerd, may_run
from build.gpu_pods import watched
from shoal.agent.kubelet.container_settings import (
    ContainerDevice,
    ContainerSettings,
    PodSettings,
)
from shoal.agent.kubelet.cri.calls import RuntimeCalls
from shoal.agent.kubelet.cri.gpu_access import CdiFolder, GpuAccess
from shoal.agent.kubelet.cri.runtime import CriRuntime, Owner
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.log_lines import log_lines
from shoal.agent.kubelet.runtime import Launch, RunKey
from shoal.client.clock import WallClock
from shoal.wiring.gpu_driver import open_driver

pytestmark = [
    pytest.mark.external("containerd", "ctr", "runc", "busybox"),
    pytest.mark.slow,
    pytest.mark.skipif(not may_run(), reason="only root starts containers"),
]
_PLUGIN = """#!/bin/sh
[ "$CNI_COMMAND" = ADD ] || exit 0
echo '{"cniVersion":"0.4.0","interfaces":[{"name":"eth0","sandbox":"'$CNI_NETNS'"}],
"ips":[{"version":"4","address":"10.99.0.7/24","interface":0}]}'
"""
_NETWORK = '{"cniVersion":"0.4.0","name":"own","plugins":[{"type":"own"}]}'
"""The plugin makes no interface: what counts is which address the runtime reports."""


@pytest.fixture(scope="module")
def containerd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containerd]:
    folder = tmp_path_factory.mktemp("containerd")
    for name in ("cdi", "cni/bin", "cni/conf"):
        (folder / name).mkdir(parents=True)
    for name in ("own", "loopback"):
        (folder / "cni/bin" / name).write_text(_PLUGIN)
        (folder / "cni/bin" / name).chmod(0o755)
    (folder / "cni/conf/own.conflist").write_text(_NETWORK)
    started = Containerd(folder)
    started.import_image(PAUSE, "/bin/busybox", "sleep", "100000")
    started.import_image(TOOLS, "/bin/busybox", "sh")
    yield started
    started.stop()


@pytest.fixture
async def runtime(containerd: Containerd, tmp_path: Path) -> AsyncIterator[CriRuntime]:
    found = CriRuntime(RuntimeCalls(containerd.socket), Owner("test", tmp_path), WallClock())
    yield found
    await found.remove(tmp_path.name)
    await found.close()


def allocated(uid: str, root: Path) -> tuple[NodeGpus, set[str]]:
    """Two GPUs of eight, with device nodes below `root`, and their paths."""
    driver = open_driver("dgx-h100")
    gpus = NodeGpus(watched(driver))
    limits = {"nvidia.com/gpu": "2"}
    main = {"name": "main", "resources": {"limits": limits, "requests": limits}}
    assert gpus.admit({"metadata": {"name": "p", "uid": uid}, "spec": {"containers": [main]}}) is None
    (root / "dev").mkdir(parents=True)
    for name in ("nvidiactl", *(f"nvidia{number}" for number in range(8))):
        os.mknod(root / "dev" / name, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    indexes = {gpu.uuid: gpu.index for gpu in driver.gpus().gpus}
    held = {f"/dev/nvidia{indexes[device.physical]}" for device in gpus.devices(uid, "main")}
    return gpus, {"/dev/nvidiactl", *held}


async def seen(runtime: CriRuntime, access: GpuAccess, key: RunKey) -> set[str]:
    """The device nodes of GPUs in the container."""
    found = access.of(key.pod, key.container)
    settings = ContainerSettings(
        PodSettings(key.pod, "p", "n", "p", is_host_network=True),
        mounts=found.mounts,
        devices=tuple(ContainerDevice(one.path, one.host_path) for one in found.nodes),
        cdi_devices=found.cdi,
    )
    await runtime.start(key, Launch(("/bin/sh", "-c", "ls /dev/nvidia*"), {}, None, image=TOOLS, container=settings))
    ended = await runtime.wait(key)
    lines = [text for _, text in log_lines(runtime.log_files(key))]
    assert ended.code == 0, (ended, lines)
    return {*lines}


async def test_device_nodes_are_those_of_the_allocated_gpus(runtime: CriRuntime, tmp_path: Path) -> None:
    key = RunKey(tmp_path.name, "main", 0)
    gpus, expected = allocated(key.pod, tmp_path / "root")

    access = GpuAccess(partial(open_driver, "dgx-h100"), gpus, CdiFolder(None, tmp_path / "root"))

    assert await seen(runtime, access, key) == expected


async def test_cdi_names_are_those_of_the_allocated_gpus(
    containerd: Containerd, runtime: CriRuntime, tmp_path: Path
) -> None:
    if containerd.version() < 2:
        pytest.skip("containerd 1 reads no CDI specifications")
    key = RunKey(tmp_path.name, "main", 0)
    gpus, expected = allocated(key.pod, tmp_path / "root")

    access = GpuAccess(partial(open_driver, "dgx-h100"), gpus, CdiFolder(containerd.folder / "cdi", tmp_path / "root"))

    assert await seen(runtime, access, key) == expected


async def test_a_pod_has_the_address_that_the_cni_plugin_gave_it(runtime: CriRuntime, tmp_path: Path) -> None:
    pod = PodSettings(tmp_path.name, "p", "n", "own-name")
    key = RunKey(pod.uid, "main", 0)

    sandbox = await runtime.sandboxes.ready(pod)
    settings = ContainerSettings(pod)
    await runtime.start(key, Launch(("/bin/sh", "-c", "echo $HOSTNAME"), {}, None, image=TOOLS, container=settings))
    await runtime.wait(key)

    assert sandbox.address == "10.99.0.7"
    assert [text for _, text in log_lines(runtime.log_files(key))] == ["own-name"]
