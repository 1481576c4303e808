"""Opens the GPU driver of this machine, or that of a simulated machine on request."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, cast

from shoal.devices.mig_port import MigControl
from shoal.devices.port import GpuDriver
from shoal.units.errors import UserError

if TYPE_CHECKING:
    from shoal.agent.health.watcher import HealthWatcher
    from shoal.agent.mig.nvml_mig import NvmlMigLibrary
    from shoal.agent.nvml_library import NvmlLibrary
    from shoal.agent.patient_driver import PatientDriver
    from shoal.agent.sharing.nvml_compute_mode import NvmlModeLibrary
    from shoal.devices.compute_mode import ComputeModes
    from shoal.embedded.gpus.device_manager import DeviceManager
    from shoal.embedded.machines.machine import Machine


def open_driver(fake: str = "") -> GpuDriver:
    """`fake`: a machine as `shoal up --nodes` accepts it, such as `dgx-h100` or `p5.48xlarge[mig=all-1g.10gb]`. Without
    it the driver of this machine is opened. Raises `UserError` if there is none.
    """
    if fake:
        return _simulated(_simulated_node(fake))
    return _driver(_library())


def open_mig(fake: str = "") -> tuple[GpuDriver, MigControl]:
    """The driver, and the control of the MIG layouts of the same GPUs."""
    if fake:
        from shoal.embedded.gpus.simulated_mig import SimulatedMigControl

        node = _simulated_node(fake)
        return _simulated(node), SimulatedMigControl(node)
    from shoal.agent.mig.nvml_mig import NvmlMigControl

    library = _library()
    return _driver(library), NvmlMigControl(cast("NvmlMigLibrary", library))


def open_mig_patiently(fake: str = "") -> tuple[PatientDriver, MigControl]:
    """As `open_mig`, for a driver some of whose calls may never return, this one included."""
    from shoal.agent.mig.patient_control import PatientMigControl
    from shoal.agent.patient_driver import PatientDriver

    opened: list[MigControl] = []

    def open_both() -> GpuDriver:
        driver, control = open_mig(fake)
        opened.append(control)
        return driver

    driver = PatientDriver(open_both)
    return driver, PatientMigControl(opened[0])


def health_watcher(driver: GpuDriver, fake: str = "") -> HealthWatcher:
    """With the Xids that the environment of the device plugin excludes or adds."""
    from shoal.agent.health.watcher import HealthTimes, HealthWatcher
    from shoal.devices.xids import health_checks

    checks = health_checks(os.environ.get("DP_DISABLE_HEALTHCHECKS", ""), os.environ.get("DP_ENABLE_HEALTHCHECKS", ""))
    # A simulated driver does not wait for an Xid.
    times = HealthTimes(readings_s=5.0, wait_s=0.2) if fake else None
    return HealthWatcher(driver, time.monotonic, checks, times)


def compute_modes(fake: str = "") -> ComputeModes:
    """Of the GPUs of this machine, or of a simulated one."""
    if fake:
        from shoal.embedded.gpus.simulated_compute_modes import SimulatedComputeModes

        return SimulatedComputeModes(gpu.uuid for gpu in open_driver(fake).gpus().gpus)
    from shoal.agent.sharing.nvml_compute_mode import NvmlComputeModes

    return NvmlComputeModes(cast("NvmlModeLibrary", _library()))


def _library() -> NvmlLibrary:
    from shoal.agent.nvml_library import nvml_library

    try:
        return nvml_library()
    except UserError as error:
        raise _with_fake(error) from error


def type_of_fake(fake: str) -> str:
    """The product name in the firmware of a simulated machine."""
    return _machine(fake).machine_type


def _driver(library: NvmlLibrary) -> GpuDriver:
    from shoal.agent.nvml import NvmlDriver

    try:
        return NvmlDriver(library)
    except UserError as error:
        raise _with_fake(error) from error


def _with_fake(error: UserError) -> UserError:
    fix = f"{error.fix}; to try the agent without a GPU: --fake dgx-h100"
    return UserError(error.what, where=error.where, fix=fix)


def _simulated(node: DeviceManager) -> GpuDriver:
    from shoal.embedded.gpus.dcgm import DcgmExporter
    from shoal.embedded.gpus.simulated_driver import SimulatedDriver

    return SimulatedDriver(node, DcgmExporter(node, booted_s=time.monotonic()), time.monotonic)


def _simulated_node(spec: str) -> DeviceManager:
    from shoal.embedded.gpus.device_manager import DeviceManager

    return DeviceManager(_machine(spec))


def _machine(spec: str) -> Machine:
    from shoal.embedded.machines.fleet_spec import read_fleet

    try:
        machines = read_fleet(spec)
    except UserError as error:
        # The same text is an option of another name elsewhere.
        where = error.where.with_path(error.where.path.replace("--nodes", "--fake"))
        raise UserError(error.what, where=where, fix=error.fix.replace("--nodes", "--fake")) from error
    if len(machines) != 1:
        raise UserError(
            f"--fake describes {len(machines)} machines; an agent serves one", fix="such as --fake dgx-h100"
        )
    return machines[0]
