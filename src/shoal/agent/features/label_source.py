"""Computes the labels and annotations of this machine's node from its driver and its files, as often as it is asked.

A GPU that is lost keeps its labels as long as this process has seen it before: it is still in the machine, and a label
that changed with each fault would move pods about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from shoal.agent.features.machine_files import machine_type, pci_devices
from shoal.agent.health.polled_health import PolledHealth
from shoal.devices.device_health import DeviceHealth
from shoal.devices.feature_labels import LabelInput
from shoal.devices.node_metadata import NodeMetadata, node_metadata, presence_labels
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.port import DriverVersions, GpuDriver, GpuList, InstalledGpu
from shoal.units.errors import UserError

_NO_VERSIONS = DriverVersions("", None)


class MachineFiles(msgspec.Struct, frozen=True):
    machine_type_file: Path
    sysfs: Path = Path("/sys")


class SourceSettings(msgspec.Struct, frozen=True):
    config: PluginConfig
    timestamp_s: int | None = None
    needs_driver: bool = True
    """Whether it is an error if there is no driver; otherwise only the PCI devices are labelled."""
    is_pci_only: bool = False
    """Whether the driver is not asked at all."""


class LabelSource:
    def __init__(
        self,
        open_driver: Callable[[], GpuDriver],
        settings: SourceSettings,
        machine: MachineFiles | str,
        health: Callable[[], Sequence[DeviceHealth]] | None = None,
    ) -> None:
        """`machine`: its files, or the type of a simulated machine, which has none. `health`: that of the GPUs, which
        this process watches; None: it is read here.
        """
        self._health, self._polled = health, PolledHealth()
        self._open_driver, self._settings, self._machine = open_driver, settings, machine
        self._driver: GpuDriver | None = None
        self._seen: dict[str, InstalledGpu] = {}

    def read(self) -> NodeMetadata:
        """It blocks as long as the driver does. Raises `TemporaryError` if the driver does not respond, `UserError` if
        there is none and the settings require one, and `FeatureError`.
        """
        if self._settings.is_pci_only and not isinstance(self._machine, str):
            has_gpu = pci_devices(self._machine.sysfs).has_gpu
            return NodeMetadata(presence_labels() if has_gpu else {})
        driver = self._opened()
        listed = GpuList(()) if driver is None else driver.gpus()
        scene = LabelInput(
            versions=_NO_VERSIONS if driver is None else driver.versions(),
            gpus=self._gpus(listed),
            config=self._settings.config,
            timestamp_s=self._settings.timestamp_s,
        )
        unhealthy = self._unhealthy(driver, listed)
        if self._settings.is_pci_only:
            return NodeMetadata(presence_labels() if listed.gpus else {})
        if isinstance(self._machine, str):
            return node_metadata(msgspec.structs.replace(scene, machine_type=self._machine), unhealthy=unhealthy)
        found = pci_devices(self._machine.sysfs)
        scene = msgspec.structs.replace(
            scene, machine_type=machine_type(self._machine.machine_type_file), vgpus=found.vgpus
        )
        return node_metadata(scene, has_device=found.has_gpu, unhealthy=unhealthy)

    def use(self, config: PluginConfig) -> None:
        """From the next report on."""
        self._settings = msgspec.structs.replace(self._settings, config=config)

    def close(self) -> None:
        if self._driver is not None:
            self._driver.close()

    def _opened(self) -> GpuDriver | None:
        """A driver that is not there yet may be installed later."""
        if self._driver is None:
            try:
                self._driver = self._open_driver()
            except UserError:
                if self._settings.needs_driver:
                    raise
        return self._driver

    def _unhealthy(self, driver: GpuDriver | None, listed: GpuList) -> frozenset[int]:
        """The indexes of GPUs that cannot be used as a whole; a fault of one MIG instance leaves the others usable."""
        if driver is None:
            return frozenset()
        health = self._polled.read(driver, listed) if self._health is None else self._health()
        faulty = {
            one.index for one in health if any(cause.is_unhealthy and cause.instance is None for cause in one.causes)
        }
        return frozenset(faulty | {one.index for one in listed.lost})

    def _gpus(self, listed: GpuList) -> tuple[InstalledGpu, ...]:
        gone = [self._seen[one.uuid] for one in listed.lost if one.uuid in self._seen]
        self._seen = {gpu.uuid: gpu for gpu in (*listed.gpus, *gone)}
        return tuple(sorted((*listed.gpus, *gone), key=lambda gpu: gpu.index))
