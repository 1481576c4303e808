"""Layers are tested in their order; the first that fails is named, and later ones are not run."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from build.gpu_pods import device_manager
from shoal.agent.cdi.spec_file import write_spec
from shoal.agent.validator.cuda_process import CudaResult
from shoal.agent.validator.layers import LAYERS, LayerResult, Places, Validation
from shoal.devices.cdi_devices import CdiInput, DriverFiles, Naming, node_spec
from shoal.devices.port import GpuDriver
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.simulated_driver import SimulatedDriver, simulated_capabilities
from shoal.units.errors import UserError


class Machine:
    """A machine on which every layer works, until a test breaks one."""

    def __init__(self, folder: Path, spec: str = "dgx-h100") -> None:
        self.manager = device_manager(spec)
        self.folder = folder
        self.cuda = CudaResult(message="memory of 8 GPUs was written and read back")
        self.cuda_calls = 0
        (folder / "dev").mkdir()
        for name in ("nvidiactl", "nvidia-uvm", *(f"nvidia{index}" for index in range(8))):
            (folder / "dev" / name).touch()
        self.write_spec()

    def driver(self) -> GpuDriver:
        return SimulatedDriver(self.manager, DcgmExporter(self.manager, booted_s=0.0), lambda: 1.0)

    def write_spec(self, *namings: Naming, gpus: int = 8) -> None:
        found = self.driver().gpus().gpus
        given = CdiInput(found[:gpus], "580.95.05", DriverFiles(), simulated_capabilities(found), namings or ("uuid",))
        write_spec(node_spec(given), self.folder / "cdi/nvidia.json")

    def validation(self) -> Validation:
        places = Places(
            dev=self.folder / "dev",
            cdi=(self.folder / "cdi",),
            runtimes=(self.folder / "nvidia-container-runtime",),
            plugins=self.folder / "plugins",
        )
        return Validation(self.driver, self._run_cuda, places)

    def results(self) -> dict[str, LayerResult]:
        return {one.layer: one for one in self.validation().run()}

    def states(self) -> list[str]:
        return [one.state for one in self.results().values()]

    def _run_cuda(self) -> CudaResult:
        self.cuda_calls += 1
        return self.cuda


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@contextmanager
def listening(*paths: Path) -> Iterator[None]:
    sockets = [socket.socket(socket.AF_UNIX) for _ in paths]
    for one, path in zip(sockets, paths, strict=True):
        path.parent.mkdir(exist_ok=True)
        one.bind(str(path))
    try:
        yield
    finally:
        for one in sockets:
            one.close()


def test_every_layer_of_a_node_that_works_passes_in_its_order(machine: Machine) -> None:
    with listening(machine.folder / "plugins/kubelet.sock", machine.folder / "plugins/nvidia-gpu.sock"):
        found = list(machine.validation().run())
    assert [(one.layer, one.state) for one in found] == [(layer, "passed") for layer in LAYERS]


def test_without_a_driver_nothing_else_is_tested(machine: Machine) -> None:
    def absent() -> GpuDriver:
        raise UserError("no NVIDIA driver was found", fix="install it")

    found = list(Validation(absent, machine._run_cuda).run())
    assert found[0] == LayerResult("driver", "failed", "no NVIDIA driver was found", "install it")
    assert {one.message for one in found[1:]} == {"not tested, because the layer driver failed"}
    assert machine.cuda_calls == 0


def test_a_lost_gpu_is_a_fault_of_the_driver(machine: Machine) -> None:
    machine.manager.fail(3, 79)
    found = machine.results()["driver"]
    assert (found.state, found.message[:30]) == ("failed", "a GPU does not respond: GPU 3:")


def test_a_device_node_that_is_missing_is_named(machine: Machine) -> None:
    (machine.folder / "dev/nvidia5").unlink()
    assert machine.results()["devices"].message == f"{machine.folder}/dev/nvidia5: No such file or directory"
    assert machine.states() == ["passed", "failed", "skipped", "skipped", "skipped"]


def test_a_specification_that_lacks_a_gpu_is_named_with_the_gpu(machine: Machine) -> None:
    machine.write_spec(gpus=7)
    found = machine.results()["toolkit"]
    assert found.state == "failed"
    assert found.message == f"{machine.folder}/cdi/nvidia.json: no device {machine.manager.machine.gpus[7].uuid}"


def test_names_of_another_form_are_enough(machine: Machine) -> None:
    machine.write_spec("index")
    assert machine.results()["toolkit"].state == "passed"
    machine.write_spec("index", gpus=7)
    assert machine.results()["toolkit"].message.endswith("no device 7")


def test_a_specification_that_is_no_json_is_named(machine: Machine) -> None:
    (machine.folder / "cdi/nvidia.json").write_text("{")
    assert machine.results()["toolkit"].message == f"{machine.folder}/cdi/nvidia.json: it cannot be read"


def test_specifications_of_other_devices_are_left_out(machine: Machine) -> None:
    (machine.folder / "cdi/nvidia.json").unlink()
    (machine.folder / "cdi/other.json").write_text('{"kind": "vendor.com/nic", "devices": []}')
    assert machine.results()["toolkit"].message.startswith("no CDI specification of GPUs")


def test_the_container_runtime_is_enough(machine: Machine) -> None:
    (machine.folder / "cdi/nvidia.json").unlink()
    runtime = machine.folder / "nvidia-container-runtime"
    runtime.touch(mode=0o755)
    assert machine.results()["toolkit"].message == f"NVIDIA's container runtime is installed: {runtime}"


def test_after_a_change_of_the_mig_layout_the_old_specification_fails(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "dgx-h100[mig=all-1g.10gb]")
    assert machine.results()["toolkit"].state == "passed"
    machine.manager = device_manager("dgx-h100[mig=all-2g.20gb]")
    assert machine.results()["toolkit"].state == "failed"


def test_without_a_kubelet_the_plugin_is_not_tested_and_cuda_is(machine: Machine) -> None:
    assert machine.states() == ["passed", "passed", "passed", "skipped", "passed"]


def test_a_kubelet_without_a_plugin_fails(machine: Machine) -> None:
    with listening(machine.folder / "plugins/kubelet.sock"):
        assert machine.results()["plugin"].state == "failed"


def test_a_file_that_is_no_socket_is_no_plugin(machine: Machine) -> None:
    with listening(machine.folder / "plugins/kubelet.sock"):
        (machine.folder / "plugins/nvidia-gpu.sock").touch()
        assert machine.results()["plugin"].state == "failed"


def test_the_error_of_the_cuda_program_is_reported(machine: Machine) -> None:
    machine.cuda = CudaResult(error="cuInit failed: CUDA_ERROR_SYSTEM_NOT_READY (802)", fix="start it")
    found = machine.results()["cuda"]
    assert (found.state, found.message, found.fix) == ("failed", machine.cuda.error, "start it")


def test_only_the_layers_that_are_asked_for_are_tested(machine: Machine) -> None:
    assert [one.layer for one in machine.validation().run(["cuda"])] == ["driver", "cuda"]
