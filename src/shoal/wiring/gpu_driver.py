"""Opens the GPU driver of this machine, or that of a simulated machine on request."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from shoal.devices.port import GpuDriver
from shoal.units.errors import UserError

if TYPE_CHECKING:
    from shoal.embedded.machines.machine import Machine


def open_driver(fake: str = "") -> GpuDriver:
    """`fake`: a machine as `shoal up --nodes` accepts it, such as `dgx-h100` or `p5.48xlarge[mig=all-1g.10gb]`. Without
    it the driver of this machine is opened. Raises `UserError` if there is none.
    """
    if fake:
        return _simulated(fake)
    from shoal.agent.nvml import NvmlDriver
    from shoal.agent.nvml_library import nvml_library

    try:
        return NvmlDriver(nvml_library())
    except UserError as error:
        fix = f"{error.fix}; to try the agent without a GPU: --fake dgx-h100"
        raise UserError(error.what, where=error.where, fix=fix) from error


def type_of_fake(fake: str) -> str:
    """The product name in the firmware of a simulated machine."""
    return _machine(fake).machine_type


def _simulated(spec: str) -> GpuDriver:
    from shoal.embedded.gpus.dcgm import DcgmExporter
    from shoal.embedded.gpus.device_manager import DeviceManager
    from shoal.embedded.gpus.simulated_driver import SimulatedDriver

    device_manager = DeviceManager(_machine(spec))
    return SimulatedDriver(device_manager, DcgmExporter(device_manager, booted_s=time.monotonic()), time.monotonic)


def _machine(spec: str) -> Machine:
    from shoal.embedded.machines.fleet_spec import read_fleet

    machines = read_fleet(spec)
    if len(machines) != 1:
        raise UserError(
            f"--fake describes {len(machines)} machines; an agent serves one", fix="such as --fake dgx-h100"
        )
    return machines[0]
