"""The GPUs of this machine follow the device plugin's configuration, MIG requests and a late driver while pods run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from build.fake_mps import FakeMps
from build.gpu_pods import gpu_pod
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.agent.kubelet.closing_mig_control import ClosingMigControl
from shoal.agent.kubelet.machine import ThisMachine
from shoal.agent.kubelet.node import NodeDescription, NodeOfThisMachine
from shoal.agent.patient_call import PatientCall
from shoal.client.kind import NODES
from shoal.devices.mig_port import MigChangeError
from shoal.devices.pod_refusal import Refused
from shoal.units.errors import UserError
from shoal.wiring.gpu_configs import check_gpu_config, plugin_config_maps
from shoal.wiring.gpu_sharing import SharingOptions
from shoal.wiring.machine_gpus import GpuScene, MachineGpus, OpenGpus, open_machine_gpus

Obj = dict[str, Any]
GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
MACHINE = ThisMachine("n", 8, 16 << 30, 100 << 30, "127.0.0.1")
LABEL = "nvidia.com/device-plugin.config"


def sliced(replicas: int, strategy: str = "timeSlicing", more: str = "") -> str:
    resources = f"[{{name: nvidia.com/gpu, replicas: {replicas}}}]"
    return f"version: v1\nsharing:\n  {strategy}: {{{more}resources: {resources}}}\n"


class Machine:
    def __init__(self, cluster: SmallCluster, gpus: MachineGpus) -> None:
        self.cluster, self.gpus = cluster, gpus
        self.told: list[tuple[str, str]] = []
        self.node = NodeOfThisMachine(cluster.api, cluster.clock, self.describe)
        self.maps: dict[str, Obj] = {}

    def describe(self) -> NodeDescription:
        gpus, metadata = self.gpus.node, self.gpus.metadata
        return NodeDescription(
            MACHINE,
            "process",
            resources=gpus.capacity(),
            healthy=gpus.allocatable(),
            labels=metadata.labels,
            annotations=metadata.annotations,
        )

    def labels(self) -> Mapping[str, str]:
        item = self.cluster.informers.of(NODES).get("", "n")
        return (item.obj()["metadata"].get("labels") or {}) if item is not None else {}

    async def pass_time(self) -> None:
        await self.cluster.pass_time(20.0)

    async def label(self, **labels: str | None) -> None:
        await self.cluster.patch(NODES, "n", {"metadata": {"labels": labels}})

    async def found(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Allocatable GPUs, and labels."""
        obj = await self.cluster.get(NODES, "n")
        amounts = obj["status"]["allocatable"]
        return {name: text for name, text in amounts.items() if "/" in name}, obj["metadata"]["labels"]


@asynccontextmanager
async def running(folder: Path, gpus: MachineGpus, config: Path | None = None) -> AsyncIterator[Machine]:
    async with small_cluster(folder) as cluster:
        machine = Machine(cluster, gpus)
        informer = cluster.informers.of(NODES)
        caches = asyncio.ensure_future(cluster.informers.run())
        gpus.configure(config, lambda: plugin_config_maps(machine.maps), str(folder / "mps"), "")
        gpus.read_metadata()
        await machine.node.register()
        scene = GpuScene(
            cluster.api,
            cluster.clock,
            "n",
            machine.node.wake,
            lambda _: None,
            machine.labels,
            lambda reason, message: machine.told.append((reason, message)),
        )
        tasks = [caches, asyncio.ensure_future(machine.node.run()), asyncio.ensure_future(gpus.run(scene))]
        await machine.pass_time()
        assert informer.get("", "n") is not None
        try:
            yield machine
        finally:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await gpus.end()


@virtual
async def test_a_changed_file_shares_the_gpus_and_renames_the_resource_while_pods_run(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(sliced(4))
    async with running(tmp_path, await open_machine_gpus("dgx-h100"), file) as machine:
        amounts, labels = await machine.found()
        assert amounts == {GPU: "32"}
        assert (labels["nvidia.com/gpu.replicas"], labels["nvidia.com/gpu.sharing-strategy"]) == ("4", "time-slicing")

        file.write_text(sliced(2, more="renameByDefault: true, "))
        await machine.pass_time()
        amounts, labels = await machine.found()
        assert amounts == {SHARED: "16"}
        assert labels["nvidia.com/gpu.replicas"] == "2"

        file.write_text("version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: -3}]}}\n")
        await machine.pass_time()
        assert (await machine.found())[0] == {SHARED: "16"}


@virtual
async def test_the_label_of_the_node_names_a_key_of_a_config_map(tmp_path: Path) -> None:
    async with running(tmp_path, await open_machine_gpus("dgx-h100")) as machine:
        assert (await machine.found())[0] == {GPU: "8"}
        machine.maps = {
            "gpu-operator/plugin": {"data": {"shared": sliced(3)}},
            "someone/else": {"data": {"other": sliced(9)}},
        }
        await machine.label(**{LABEL: "shared"})
        await machine.pass_time()
        assert (await machine.found())[0] == {GPU: "24"}

        await machine.label(**{LABEL: "other"})
        await machine.pass_time()
        assert (await machine.found())[0] == {GPU: "24"}
        [(reason, message)] = machine.told
        assert reason == "DevicePluginConfig"
        assert "other was not applied: no ConfigMap has the key; gpu-operator/plugin has shared" in message

        await machine.label(**{LABEL: None})
        await machine.pass_time()
        assert (await machine.found())[0] == {GPU: "8"}


@virtual
async def test_the_label_names_a_file_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "configs"
    folder.mkdir()
    (folder / "default").write_text("version: v1\n")
    (folder / "busy").write_text(sliced(5))
    async with running(tmp_path, await open_machine_gpus("dgx-h100"), folder) as machine:
        assert (await machine.found())[0] == {GPU: "8"}
        await machine.label(**{LABEL: "busy"})
        await machine.pass_time()
        assert (await machine.found())[0] == {GPU: "40"}


@virtual
async def test_a_gpu_that_a_pod_has_alone_is_not_shared_before_the_pod_has_ended(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("version: v1\n")
    async with running(tmp_path, await open_machine_gpus("dgx-h100"), file) as machine:
        gpus = machine.gpus.node
        assert gpus.admit(gpu_pod("alone", 1)) is None
        own = gpus.environment("alone", "main")["CUDA_VISIBLE_DEVICES"]
        file.write_text(sliced(2))
        await machine.pass_time()

        assert (await machine.found())[0] == {GPU: "14"}
        assert gpus.environment("alone", "main")["CUDA_VISIBLE_DEVICES"] == own
        assert gpus.admit(gpu_pod("others", 14)) is None
        assert own not in gpus.environment("others", "main")["CUDA_VISIBLE_DEVICES"]
        assert isinstance(gpus.admit(gpu_pod("more", 1)), Refused)

        gpus.release("alone")
        assert gpus.admit(gpu_pod("more", 2)) is None
        assert gpus.environment("more", "main")["CUDA_VISIBLE_DEVICES"] == own


@virtual
async def test_programs_of_gpus_that_mps_shares_find_its_daemon(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(sliced(4, "mps"))
    async with running(tmp_path, await open_machine_gpus("dgx-h100"), file) as machine:
        amounts, labels = await machine.found()
        assert (amounts, labels["nvidia.com/mps.capable"]) == ({GPU: "32"}, "true")
        assert machine.gpus.node.admit(gpu_pod("a", 1)) is None

        found = machine.gpus.node.environment("a", "main")

        assert found["CUDA_MPS_PIPE_DIRECTORY"] == f"{tmp_path}/mps/nvidia.com/gpu/pipe"
        assert (tmp_path / "mps/shm").samefile("/dev/shm")  # noqa: S108 - that of MPS


@asynccontextmanager
async def shared_by(mps: FakeMps, folder: Path, file: Path) -> AsyncIterator[Machine]:
    gpus = MachineGpus(None, "dgx-h100", SharingOptions(mps_control=str(mps.program)))
    opened = (await open_machine_gpus("dgx-h100")).opened
    assert opened is not None
    await gpus.open(PatientCall(lambda: opened, 10.0))
    try:
        async with running(folder, gpus, file) as machine:
            yield machine
    finally:
        mps.close()


@virtual
async def test_a_daemon_of_mps_runs_while_the_configuration_wants_it(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(sliced(4, "mps"))
    # Paths of sockets are short.
    with TemporaryDirectory(prefix="mps-") as name:
        mps = FakeMps(Path(name))
        async with shared_by(mps, Path(name), file) as machine:
            assert (await machine.found())[0] == {GPU: "32"}
            assert mps.commands()[0].startswith(f"start {name}/mps/nvidia.com/gpu/log")

            file.write_text("version: v1\n")
            await machine.cluster.pass_time(60.0)
            assert (await machine.found())[0] == {GPU: "8"}
            assert mps.commands()[-1] == "quit"


@virtual
async def test_gpus_without_a_daemon_of_mps_are_not_allocatable(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(sliced(4, "mps"))
    with TemporaryDirectory(prefix="mps-") as name:
        mps = FakeMps(Path(name))
        mps.set(start=1)
        async with shared_by(mps, Path(name), file) as machine:
            assert (await machine.found())[0] == {GPU: "0"}
            assert isinstance(machine.gpus.node.admit(gpu_pod("a", 1)), Refused)


@virtual
async def test_instances_are_created_when_the_scheduler_requests_them(tmp_path: Path) -> None:
    async with running(tmp_path, await open_machine_gpus("dgx-h100")) as machine:
        assert machine.gpus.node.admit(gpu_pod("held", 1)) is None
        used = machine.gpus.node.environment("held", "main")["CUDA_VISIBLE_DEVICES"]
        listed = machine.gpus.opened
        assert listed is not None
        index = next(gpu.index for gpu in listed.driver.gpus().gpus if gpu.uuid == used)
        free = next(gpu.index for gpu in listed.driver.gpus().gpus if gpu.uuid != used)
        wanted = {"mig.shoal.dev/one": f"{free}:2g.20gb@4", "mig.shoal.dev/two": f"{index}:1g.10gb@0"}
        metadata = {"labels": {"shoal.dev/mig-layout": "dynamic"}, "annotations": wanted}
        await machine.cluster.patch(NODES, "n", {"metadata": metadata})
        await machine.pass_time()

        amounts, labels = await machine.found()
        # All idle GPUs of a dynamic node are in MIG mode.
        assert amounts == {GPU: "1", "nvidia.com/mig-2g.20gb": "1"}
        assert labels["nvidia.com/mig-2g.20gb.count"] == "1"
        assert "2g.20gb" in (await machine.cluster.get(NODES, "n"))["metadata"]["annotations"]["shoal.dev/topology"]
        assert machine.gpus.node.admit(gpu_pod("one", 1, "nvidia.com/mig-2g.20gb")) is None


@virtual
async def test_a_layout_of_the_label_is_applied_and_its_labels_leave_with_it(tmp_path: Path) -> None:
    async with running(tmp_path, await open_machine_gpus("dgx-h100")) as machine:
        await machine.label(**{"nvidia.com/mig.config": "all-1g.10gb"})
        await machine.pass_time()
        amounts, labels = await machine.found()
        assert amounts == {"nvidia.com/mig-1g.10gb": "56"}
        assert labels["nvidia.com/mig.config.state"] == "success"
        assert labels["nvidia.com/mig-1g.10gb.count"] == "56"

        await machine.label(**{"nvidia.com/mig.config": "all-disabled"})
        await machine.pass_time()
        amounts, labels = await machine.found()
        assert amounts == {GPU: "8"}
        assert "nvidia.com/mig-1g.10gb.count" not in labels


@virtual
async def test_a_machine_gets_its_gpus_when_a_driver_that_was_silent_responds(tmp_path: Path) -> None:
    gate = threading.Event()
    source = await open_machine_gpus("dgx-h100")
    opened = source.opened
    assert opened is not None

    def open_late() -> OpenGpus:
        gate.wait()
        return opened

    opening = PatientCall(open_late, 0.01)
    gpus = MachineGpus(None, "dgx-h100")
    await gpus.open(opening)
    async with running(tmp_path, gpus) as machine:
        assert (await machine.found())[0] == {}
        gate.set()
        opening.begin().result()
        await machine.pass_time()

        amounts, labels = await machine.found()
        assert (amounts, labels["nvidia.com/gpu.count"]) == ({GPU: "8"}, "8")


@virtual
async def test_a_machine_gets_its_gpus_when_a_driver_is_installed_after_the_start(tmp_path: Path) -> None:
    source = await open_machine_gpus("dgx-h100")
    opened, is_installed = source.opened, False
    assert opened is not None

    def open_driver() -> OpenGpus:
        if not is_installed:
            raise UserError("NVIDIA's driver is not installed")
        return opened

    gpus = MachineGpus(None, "dgx-h100")
    opening = PatientCall(open_driver, 10.0)
    with pytest.raises(UserError):
        await gpus.open(opening)
    async with running(tmp_path, gpus) as machine:
        assert (await machine.found())[0] == {}
        is_installed = True
        await machine.cluster.pass_time(120.0)

        assert (await machine.found())[0] == {GPU: "8"}


@virtual
async def test_what_a_layout_change_is_about_to_take_is_given_to_no_pod(tmp_path: Path) -> None:
    async with running(tmp_path, await open_machine_gpus("dgx-h100[mig=all-1g.10gb]")) as machine:
        resource = "nvidia.com/mig-1g.10gb"
        gpus, opened = machine.gpus.node, machine.gpus.opened
        assert opened is not None
        assert opened.mig is not None
        control = ClosingMigControl(opened.mig, gpus)
        assert gpus.admit(gpu_pod("has", 1, resource)) is None
        own = gpus.environment("has", "main")["CUDA_VISIBLE_DEVICES"]
        first = next(gpu for gpu in opened.driver.gpus().gpus if own in {one.uuid for one in gpu.instances})
        numbers = [one.instance for one in first.instances if one.uuid != own]
        held = next(one.instance for one in first.instances if one.uuid == own)

        with pytest.raises(MigChangeError, match="a pod has it"):
            control.destroy(first.uuid, int(held or 0))
        with pytest.raises(MigChangeError, match="a pod has the GPU"):
            control.set_mode(first.uuid, enabled=False)
        control.destroy(first.uuid, int(numbers[0] or 0))

        # The driver has not listed the change yet.
        assert gpus.capacity() == {resource: "56"}
        assert gpus.allocatable() == {resource: "55"}
        opened.health.read()
        gpus.reopen()
        assert gpus.allocatable() == gpus.capacity() == {resource: "55"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (sliced(-3), "must be"),
        (sliced(100, "mps"), "100"),
        ("version: v2\n", "unknown version: v2"),
        ("sharing: [", "error parsing config file"),
    ],
)
def test_a_file_with_which_the_plugin_would_not_start_is_refused_at_the_start(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)

    with pytest.raises(UserError, match=words):
        check_gpu_config(file)


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        check_gpu_config(tmp_path / "none")
