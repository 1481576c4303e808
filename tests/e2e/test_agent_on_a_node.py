"""`shoal agent run` beside a kubelet and a cluster: the Node's label chooses its configuration, pods their devices."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from build.cluster_server import ServerProcess
from build.fake_kubelet import FakeKubelet, fake_kubelet
from build.gpu_pods import GPU, container
from build.pod_resources_server import PodResourcesServer
from shoal.client.http.api import KubeApi
from shoal.client.http.locate import locate
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS
from shoal.client.port import Api, Patch
from shoal.devices.dcgm_holders import ContainerHolding
from shoal.devices.labelled_config import LABEL
from shoal.devices.names import OWN_DEVICES
from shoal.devices.waiting_requests import annotation_of

_SHARED = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}\n"
_PATIENCE_S = 30.0


class Log:
    """What a process writes, as far as it has come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process, self._lines, self._changed = process, list[str](), threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def until(self, words: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: any(words in line for line in self._lines), _PATIENCE_S), self._lines

    def whole(self) -> str:
        """After the end of the process."""
        self._thread.join(_PATIENCE_S)
        return "".join(self._lines)

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()


@contextmanager
def shoal(*words: str) -> Iterator[Log]:
    """The command, ended by SIGTERM; it must end without a fault."""
    process = subprocess.Popen([sys.executable, "-m", "shoal", *words], stderr=subprocess.PIPE, text=True)
    log = Log(process)
    try:
        yield log
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_PATIENCE_S)
    assert process.returncode == 0, log.whole()
    assert "Traceback" not in log.whole()


class Machine:
    """The folders of a machine with a kubelet, which answers with `pods`."""

    def __init__(self, folder: Path, kubelet: FakeKubelet, pods: PodResourcesServer) -> None:
        self.folder, self.kubelet, self.pods = folder, kubelet, pods
        self.configs = folder / "configs"
        self.configs.mkdir()

    @contextmanager
    def agent(self, kubeconfig: Path, *more: str) -> Iterator[Log]:
        options = {
            "--fake": "dgx-h100",
            "--node": "n0",
            "--kubeconfig": kubeconfig,
            "--config": self.configs,
            "--device-plugin-dir": self.folder,
            "--pod-resources": self.folder / "pods.sock",
        }
        arguments = [str(word) for option in options.items() for word in option]
        with shoal("agent", "run", *arguments, *more) as log:
            yield log


@pytest.fixture
def machine() -> Iterator[Machine]:
    pods = PodResourcesServer()
    with (
        TemporaryDirectory(prefix="plugins-") as name,
        fake_kubelet(Path(name)) as kubelet,
        pods.served(Path(name) / "pods.sock"),
    ):
        yield Machine(Path(name), kubelet, pods)


async def annotated(api: Api, pod: str, device: str) -> None:
    """Returns when the annotation of the pod names the device."""
    listed = await api.list(PODS, "default")
    seen = [item.obj() for item in listed.items]
    async with aclosing(api.watch(PODS, listed.version, "default")) as batches:
        while not any(one["metadata"]["name"] == pod and device in _choice(one) for one in seen):
            seen = [change.item.obj() for change in await anext(batches) if change.item is not None]


def _choice(pod: Obj) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(OWN_DEVICES, ""))


@pytest.mark.slow
async def test_label_choice_and_actual_devices_meet_in_one_agent(tmp_path: Path, machine: Machine) -> None:
    server = ServerProcess(tmp_path, "--memory", "--scheduler", "simple")
    api = KubeApi(locate(server.kubeconfig), random.Random())
    kubelet = machine.kubelet
    (machine.configs / "default").write_text("version: v1\n")
    (machine.configs / "shared").write_text(_SHARED)
    try:
        await api.create(NODES, {"metadata": {"name": "n0"}})
        with machine.agent(server.kubeconfig):
            await asyncio.to_thread(kubelet.until, lambda: kubelet.allocatable() == 8)
            ids = sorted(kubelet.devices())
            chosen = annotation_of({"main": {GPU: [ids[3]]}})
            spec = {"nodeName": "n0", "containers": [{**container("main", 1), "image": "cuda"}]}
            meta = {"name": "one", "namespace": "default", "annotations": {OWN_DEVICES: chosen}}
            await api.create(PODS, {"metadata": meta, "spec": spec})
            await asyncio.to_thread(kubelet.allocate, "one", 1)
            assert kubelet.held["one"][GPU] == [ids[3]]

            machine.pods.holdings = [ContainerHolding("one", "default", "main", GPU, (ids[5],))]
            await asyncio.wait_for(annotated(api, "one", ids[5]), _PATIENCE_S)

            label = {"metadata": {"labels": {LABEL: "shared"}}}
            await api.patch(NODES, "", "n0", Patch("merge", label))
            await asyncio.to_thread(kubelet.until, lambda: kubelet.allocatable() == 16)
    finally:
        await api.close()
        server.stop()


async def node_until(api: Api, look: Callable[[Obj], bool]) -> Obj:
    """The Node as soon as it is so."""
    listed = await api.list(NODES)
    seen = [item.obj() for item in listed.items]
    async with aclosing(api.watch(NODES, listed.version)) as batches:
        while not any(look(one) for one in seen):
            seen = [change.item.obj() for change in await anext(batches) if change.item is not None]
    return next(one for one in seen if look(one))


def condition(node: Obj) -> Obj:
    conditions = node.get("status", {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == "GPUHealthy"), {})


@pytest.mark.slow
async def test_labels_condition_and_mig_layout_come_from_one_process(tmp_path: Path, machine: Machine) -> None:
    server = ServerProcess(tmp_path, "--memory", "--scheduler", "simple")
    api = KubeApi(locate(server.kubeconfig), random.Random())
    kubelet = machine.kubelet
    (machine.configs / "default").write_text("version: v1\nflags: {migStrategy: mixed}\n")
    try:
        await api.create(NODES, {"metadata": {"name": "n0"}})
        with machine.agent(server.kubeconfig, "--labels", "--mig", "--metrics", "127.0.0.1:0"):
            await asyncio.to_thread(kubelet.until, lambda: kubelet.allocatable() == 8)
            node = await asyncio.wait_for(
                node_until(api, lambda one: "nvidia.com/gpu.count" in one["metadata"].get("labels", {})), _PATIENCE_S
            )
            assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
            node = await asyncio.wait_for(node_until(api, lambda one: bool(condition(one))), _PATIENCE_S)
            assert (condition(node)["status"], condition(node)["message"]) == ("True", "8 GPUs are healthy")

            wanted = {"metadata": {"labels": {"nvidia.com/mig.config": "all-1g.10gb"}}}
            await api.patch(NODES, "", "n0", Patch("merge", wanted))
            await asyncio.to_thread(kubelet.until, lambda: kubelet.allocatable("nvidia.com/mig-1g.10gb") == 56)
            name = "nvidia.com/mig.config.state"
            await asyncio.wait_for(
                node_until(api, lambda one: one["metadata"]["labels"].get(name) == "success"), _PATIENCE_S
            )
            label = "nvidia.com/mig-1g.10gb.count"
            await asyncio.wait_for(
                node_until(api, lambda one: one["metadata"]["labels"].get(label) == "56"), _PATIENCE_S
            )
    finally:
        await api.close()
        server.stop()


async def labelled(api: Api, name: str, value: str | None) -> None:
    await api.patch(NODES, "", "n0", Patch("merge", {"metadata": {"labels": {name: value}}}))


@pytest.mark.slow
async def test_the_label_chooses_a_file_of_the_folder_and_a_file_with_a_fault_changes_nothing(
    tmp_path: Path, machine: Machine
) -> None:
    server = ServerProcess(tmp_path, "--memory")
    api = KubeApi(locate(server.kubeconfig), random.Random())
    kubelet = machine.kubelet

    async def devices(count: int) -> None:
        await asyncio.to_thread(kubelet.until, lambda: kubelet.allocatable() == count)

    (machine.configs / "default").write_text("version: v1\n")
    (machine.configs / "shared").write_text(_SHARED)
    (machine.configs / "unreadable").write_bytes(b"\xff\xfe")
    (machine.configs / "wrong").write_text(_SHARED.replace("replicas: 2", "replicas: -3"))
    try:
        await api.create(NODES, {"metadata": {"name": "n0", "labels": {LABEL: "shared"}}})
        with machine.agent(server.kubeconfig) as log:
            await devices(16)
            await asyncio.to_thread(log.until, "unreadable: cannot be read")
            for fault, words in (
                ("wrong", "configuration wrong"),
                ("absent", "absent was not applied: no ConfigMap has the key"),
            ):
                await labelled(api, LABEL, fault)
                await asyncio.to_thread(log.until, words)
            await labelled(api, LABEL, "unreadable")
            (machine.configs / "shared").write_text(_SHARED.replace("replicas: 2", "replicas: 4"))
            await labelled(api, LABEL, "shared")
            await devices(32)
            (machine.configs / "shared").write_text(_SHARED.replace("replicas: 2", "replicas: 3"))
            await devices(24)
            await labelled(api, LABEL, None)
            await devices(8)
        # Running pods would lose their devices by a list of another configuration.
        assert [*dict.fromkeys(kubelet.lengths[GPU])] == [16, 32, 24, 8]
    finally:
        await api.close()
        server.stop()


def has_label(name: str, value: str, node: Obj) -> bool:
    return bool((node["metadata"].get("labels") or {}).get(name) == value)


@pytest.mark.slow
async def test_the_command_for_the_mig_label_writes_the_state_and_ends_at_sigterm(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--memory")
    api = KubeApi(locate(server.kubeconfig), random.Random())
    config, state = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
    command = ["agent", "mig", "run", "--fake", "dgx-h100", "--node", "n0", "--kubeconfig", str(server.kubeconfig)]
    try:
        await api.create(NODES, {"metadata": {"name": "n0"}})
        with shoal(*command):
            for layout, expected in (("all-1g.10gb", "success"), ("all-9g.10gb", "failed")):
                await labelled(api, config, layout)
                await asyncio.wait_for(node_until(api, partial(has_label, state, expected)), _PATIENCE_S)
    finally:
        await api.close()
        server.stop()
