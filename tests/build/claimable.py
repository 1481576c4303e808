"""The GPUs of simulated machines as input for devices of resource pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from build.gpu_pods import device_manager
from shoal.devices.claimable_devices import ClaimableInput
from shoal.devices.device_health import DeviceHealth, HealthCause
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.simulated_driver import SimulatedDriver

NODE = "n1"


def claimable_driver(manager: DeviceManager, at_s: Callable[[], float] = lambda: 0.0) -> SimulatedDriver:
    return SimulatedDriver(manager, DcgmExporter(manager, booted_s=0.0), at_s)


def claimable(machine: str = "dgx-h100", faults: Mapping[int, tuple[HealthCause, ...]] | None = None) -> ClaimableInput:
    """`faults`: by the index of the GPU."""
    driver = claimable_driver(device_manager(machine))
    gpus = driver.gpus().gpus
    health = {gpu.uuid: DeviceHealth(gpu.index, gpu.uuid, (faults or {}).get(gpu.index, ())) for gpu in gpus}
    return ClaimableInput(driver.versions(), gpus, health)


def cause(code: str, *, is_unhealthy: bool = True, instance: int | None = None) -> HealthCause:
    return HealthCause(code, code, "reset it", is_unhealthy, instance)
