"""`shoal agent run` beside a kubelet and a cluster: the Node's label chooses its configuration, pods their devices."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
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


class Machine:
    """The folders of a machine with a kubelet, which answers with `pods`."""

    def __init__(self, folder: Path, kubelet: FakeKubelet, pods: PodResourcesServer) -> None:
        self.folder, self.kubelet, self.pods = folder, kubelet, pods
        self.configs = folder / "configs"
        self.configs.mkdir()

    @contextmanager
    def agent(self, kubeconfig: Path, *more: str) -> Iterator[None]:
        options = {
            "--fake": "dgx-h100",
            "--node": "n0",
            "--kubeconfig": kubeconfig,
            "--config": self.configs,
            "--device-plugin-dir": self.folder,
            "--pod-resources": self.folder / "pods.sock",
        }
        arguments = [str(word) for option in options.items() for word in option]
        process = subprocess.Popen(
            [sys.executable, "-m", "shoal", "agent", "run", *arguments, *more], stderr=subprocess.PIPE, text=True
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            _, words = process.communicate(timeout=_PATIENCE_S)
        assert process.returncode == 0, words
        assert "Traceback" not in words


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
