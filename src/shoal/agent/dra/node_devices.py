"""Follows the claimable devices of this node: what its driver reports, with the health of each GPU.

A GPU that was lost stays listed as it was, with a taint, so that its claims are not prepared elsewhere by mistake and a
scheduler sees why it gets none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from shoal.devices.claimable_devices import ClaimableDevice, ClaimableInput, claimable_devices
from shoal.devices.device_health import DeviceHealth
from shoal.devices.port import GpuDriver, InstalledGpu
from shoal.devices.resource_slices import Published

_PCIE_ROOT = "pci"


class ClaimableDevices:
    """`health`: the present one of all GPUs. `sys`: where the kernel describes its devices."""

    def __init__(
        self, driver: GpuDriver, health: Callable[[], Sequence[DeviceHealth]], sys: Path | None = None
    ) -> None:
        self._driver, self._health, self._sys = driver, health, sys
        self._lock = threading.Lock()
        self._known: dict[str, InstalledGpu] = {}

    def by_name(self) -> Mapping[str, ClaimableDevice]:
        """Raises `TemporaryError` if the driver does not respond."""
        return {one.name: one for one in self._claimable()}

    def published(self) -> Published:
        """Raises `TemporaryError` if the driver does not respond."""
        return Published(tuple(one.described for one in self._claimable()))

    def gpus(self) -> tuple[InstalledGpu, ...]:
        """With those that are lost, as they were."""
        listed = self._driver.gpus()
        present = {gpu.uuid: gpu for gpu in listed.gpus}
        lost = {one.uuid for one in listed.lost}
        with self._lock:
            kept = {uuid: gpu for uuid, gpu in self._known.items() if uuid in lost}
            self._known = kept | present
            return tuple(sorted(self._known.values(), key=lambda gpu: gpu.index))

    def _claimable(self) -> tuple[ClaimableDevice, ...]:
        gpus = self.gpus()
        health = {one.uuid: one for one in self._health()}
        roots = {gpu.uuid: root for gpu in gpus if (root := self._root(gpu))}
        return claimable_devices(ClaimableInput(self._driver.versions(), gpus, health, roots))

    def _root(self, gpu: InstalledGpu) -> str:
        """The folder below `/sys/devices` in which the device of the bus is, such as `pci0000:48`."""
        if self._sys is None:
            return ""
        domain, _, rest = gpu.pci.lower().partition(":")
        link = self._sys / "bus/pci/devices" / f"{domain[-4:]}:{rest}"
        try:
            parts = link.resolve(strict=True).parts
        except (OSError, RuntimeError):
            return ""
        return next((part for part in parts if part.startswith(_PCIE_ROOT) and ":" in part), "")
