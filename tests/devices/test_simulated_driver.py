"""The driver of simulated GPUs keeps the contract, and reports what the simulated node has."""

from __future__ import annotations

import pytest

from build.gpu_driver_contract import FaultyNode, GpuDriverContract, GpuFaultContract, readings_of
from build.gpu_pods import device_manager, gpu_pod, granted
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.node_gpus import Use
from shoal.embedded.gpus.simulated_driver import SimulatedDriver


def driver_of(manager: DeviceManager, at_s: float = 100.0) -> SimulatedDriver:
    return SimulatedDriver(manager, DcgmExporter(manager, booted_s=0.0), lambda: at_s)


@pytest.mark.parametrize("machine", ["dgx-h100", "dgx-a100-80[mig=all-balanced]", "g6.12xlarge"])
class TestSimulatedGpus(GpuDriverContract):
    @pytest.fixture
    def driver(self, machine: str) -> SimulatedDriver:
        return driver_of(device_manager(machine))


class TestFaultsOfSimulatedGpus(GpuFaultContract):
    @pytest.fixture
    def node(self) -> FaultyNode:
        manager = device_manager("dgx-h100")
        return FaultyNode(driver_of(manager), manager.fail, lambda index: manager.fail(index, 79))


def test_every_gpu_of_a_switched_board_is_connected_with_the_others_by_all_links() -> None:
    gpus = driver_of(device_manager("dgx-h100")).gpus().gpus
    assert len(gpus) == 8
    assert all({peer.links for peer in gpu.peers} == {18} and len(gpu.peers) == 7 for gpu in gpus)


def test_a_gpu_without_nvlink_and_mig_reports_neither() -> None:
    gpu = driver_of(device_manager("g6.12xlarge")).gpus().gpus[0]
    assert (gpu.peers, gpu.is_mig, gpu.instances) == ((), None, ())


def test_instances_are_those_of_the_layout() -> None:
    gpu = driver_of(device_manager("p5.48xlarge[mig=all-1g.10gb]")).gpus().gpus[0]
    assert gpu.is_mig
    assert [(one.profile, one.start) for one in gpu.instances] == [("1g.10gb", start) for start in range(7)]


def test_the_utilization_of_a_gpu_in_mig_mode_is_absent() -> None:
    driver = driver_of(device_manager("p5.48xlarge[mig=all-1g.10gb]"))
    assert readings_of(driver, driver.gpus().gpus[0]).util_percent is None


def test_a_running_program_is_in_the_readings() -> None:
    manager = device_manager("dgx-h100")
    gpu = granted(manager.admit(gpu_pod("train")))[0].gpus[0]
    assert manager.start("train", "main", Use(util=0.5, memory_mib=4000)) is None
    driver = driver_of(manager)
    readings = readings_of(driver, driver.gpus().gpus[gpu])
    assert [one.memory_mib for one in readings.processes or ()] == [4000]
    assert readings.used_mib == 4000
    assert (readings.util_percent or 0) == pytest.approx(50, abs=2)


def test_an_uncorrectable_error_is_counted() -> None:
    manager = device_manager("dgx-h100")
    driver = driver_of(manager)
    manager.fail(0, 48)
    ecc = readings_of(driver, driver.gpus().gpus[0]).ecc
    assert ecc is not None
    assert ecc.uncorrected == 1


def test_a_repaired_gpu_that_fails_again_is_reported_again() -> None:
    manager = device_manager("dgx-h100")
    driver = driver_of(manager)
    events = []
    for _ in range(2):
        manager.fail(3, 79)
        events.append(driver.next_xid(0))
        manager.mend(3)
        assert driver.next_xid(0) is None
    assert [event.xid if event else None for event in events] == [79, 79]
