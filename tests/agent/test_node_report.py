"""The report of a node names every fault of a GPU, with advice."""

from __future__ import annotations

import pytest

from build.gpu_pods import device_manager
from build.silent_driver import SilentDriver
from shoal.agent.health.kernel_log import LoggedXid
from shoal.agent.node_report import NodeReport, node_report, report_text
from shoal.agent.patient_driver import PatientDriver
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.simulated_driver import SimulatedDriver
from shoal.units.errors import TemporaryError


def report(log: tuple[LoggedXid, ...] = (), **faults: int) -> NodeReport:
    manager = device_manager("dgx-h100")
    for gpu, xid in faults.items():
        manager.fail(int(gpu[-1]), xid)
    return node_report(SimulatedDriver(manager, DcgmExporter(manager, booted_s=0.0), lambda: 1.0), log)


def test_a_healthy_node_has_a_line_for_its_driver_and_each_gpu() -> None:
    found = report()
    assert found.is_healthy
    assert len(list(report_text(found))) == 1 + 8


def test_what_the_driver_recommends_is_named_below_its_gpu() -> None:
    found = report(gpu2=95)
    lines = list(report_text(found))
    assert not found.is_healthy
    assert lines[4].startswith("  unhealthy: the driver recommends: drain-and-reset: drain the node and reset the GPU")


def test_a_gpu_that_does_not_respond_is_named_with_its_reason() -> None:
    found = report(gpu5=79)
    assert not found.is_healthy
    assert list(report_text(found))[-1].startswith(
        "GPU 5: does not respond: Xid 79: GPU has fallen off the bus: drain the node and switch its power off and on"
    )


def test_logged_errors_of_other_gpus_are_left_out_and_do_not_make_a_gpu_unhealthy() -> None:
    address = report().gpus[0].gpu.pci
    found = report((LoggedXid(address, 31, "NVRM"), LoggedXid("0000:ff:00", 48, "NVRM")))
    assert [[one.xid for one in gpu.logged] for gpu in found.gpus[:2]] == [[31], []]
    assert found.is_healthy


def test_a_gpu_whose_calls_do_not_return_is_named_and_the_report_ends() -> None:
    manager = device_manager("dgx-h100")
    driver = SilentDriver(SimulatedDriver(manager, DcgmExporter(manager, booted_s=0.0), lambda: 1.0))
    driver.hangs = manager.machine.gpus[5].uuid
    driver.hold.clear()
    found = node_report(PatientDriver(lambda: driver, patience_s=0.1))
    driver.hold.set()
    assert not found.is_healthy
    assert list(report_text(found))[-1].startswith(
        "GPU 5: does not respond: NVIDIA's driver has not responded for 0.1 s: drain the node"
    )


def test_a_driver_that_lists_no_gpus_in_time_is_an_error() -> None:
    manager = device_manager("dgx-h100")
    driver = SilentDriver(SimulatedDriver(manager, DcgmExporter(manager, booted_s=0.0), lambda: 1.0))
    driver.hangs_at_list = True
    driver.hold.clear()
    with pytest.raises(TemporaryError, match=r"has not responded for 0\.1 s"):
        node_report(PatientDriver(lambda: driver, patience_s=0.1))
    driver.hold.set()
