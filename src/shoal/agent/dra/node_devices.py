"""Follows the claimable devices of this node: what its driver reports, with the health of each GPU.

A GPU that was lost stays listed as it was, with a taint, so that its claims are not prepared elsewhere by mistake and a
scheduler sees why it gets none. With `mig`, the layout of idle GPUs changes for claims: all instances that the GPUs can
have are published, and those of a claim are created when it is prepared.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from shoal.agent.mig.held_devices import DevicesInUse
from shoal.agent.mig.layout_change import NodeMig
from shoal.devices.claim_places import places_of, steps_for_claim
from shoal.devices.claimable_devices import (
    ClaimableDevice,
    ClaimableInput,
    ClaimedHealth,
    claimable_devices,
    claimed_health,
)
from shoal.devices.device_health import DeviceHealth
from shoal.devices.discovered import with_lost
from shoal.devices.mig_layout_checks import Problem
from shoal.devices.mig_plan import MigPlan
from shoal.devices.mig_port import MigControl
from shoal.devices.port import GpuDriver, InstalledGpu
from shoal.devices.resource_slices import Published, partitions_of, possible_devices
from shoal.units.errors import TemporaryError, UserError

_log = logging.getLogger("shoal.agent.dra")
_RETRY_S = 5.0

_PCIE_ROOT = "pci"


class ClaimableDevices:
    """`health`: the present one of all GPUs. `sys`: where the kernel describes its devices. `mig`: how instances are
    created for claims; None: claims get those that exist.
    """

    def __init__(
        self,
        driver: GpuDriver,
        health: Callable[[], Sequence[DeviceHealth]],
        sys: Path | None = None,
        mig: MigControl | None = None,
    ) -> None:
        self._driver, self._health, self._sys = driver, health, sys
        self._mig = None if mig is None else NodeMig(driver, mig)
        self._lock = threading.Lock()
        self._known: dict[str, InstalledGpu] = {}

    def by_name(self) -> Mapping[str, ClaimableDevice]:
        """Those that exist now. Raises `TemporaryError` if the driver does not respond."""
        return {one.name: one for one in claimable_devices(self._input())}

    def possible(self) -> Mapping[str, ClaimableDevice]:
        """Those that claims can be allocated: one that does not exist yet has no UUID. Raises `TemporaryError` if the
        driver does not respond.
        """
        return self.by_name() if self._mig is None else possible_devices(self._input())

    def published(self) -> Published:
        """Raises `TemporaryError` if the driver does not respond."""
        given = self._input()
        if self._mig is not None:
            return partitions_of(given)
        return Published(tuple(one.described for one in claimable_devices(given)))

    def health(self) -> tuple[ClaimedHealth, ...]:
        """Of the published devices. Raises `TemporaryError` if the driver does not respond."""
        return claimed_health(self.published().devices, {one.uuid: one for one in self._health()})

    def create(self, wanted: Collection[str], held: Collection[str]) -> None:
        """Change the layout so that these devices exist. `held`: the UUIDs of devices that are in use, also without a
        process. Raises `UserError` if what is in use has their place, `TemporaryError` if the driver makes no change.
        """
        if self._mig is None or {*wanted} <= self.by_name().keys():
            return
        self._mig.held = DevicesInUse(frozenset(held))
        steps = steps_for_claim(wanted, places_of(self.gpus()), self._mig.present())
        if isinstance(steps, Problem):
            raise UserError(steps.what, fix=steps.fix)
        change = self._mig.apply(MigPlan(steps, 0))
        for step in change.done:
            _log.info("%s", step)
        if change.failure:
            raise TemporaryError(change.failure, _RETRY_S)
        if change.resets:
            what = f"GPU {change.resets[0]} needs a reset for its MIG mode"
            raise UserError(what, fix="run nvidia-smi --gpu-reset")

    def gpus(self) -> tuple[InstalledGpu, ...]:
        """With those that are lost, as they were."""
        listed = self._driver.gpus()
        with self._lock:
            self._known = with_lost(self._known, listed)
            return tuple(sorted(self._known.values(), key=lambda gpu: gpu.index))

    def _input(self) -> ClaimableInput:
        gpus = self.gpus()
        health = {one.uuid: one for one in self._health()}
        roots = {gpu.uuid: root for gpu in gpus if (root := self._root(gpu))}
        return ClaimableInput(self._driver.versions(), gpus, health, roots)

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
