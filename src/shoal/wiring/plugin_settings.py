"""Reads the settings of the device plugin: options of the command line, which come before the configuration file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from shoal.agent.cdi.driver_files import driver_nodes
from shoal.agent.patient_call import PatientCall
from shoal.agent.plugin.device_plugin import PluginSettings
from shoal.devices.mps_limits import MOST_MPS_CLIENTS, most_clients_of
from shoal.devices.plugin_config import DEFAULT_MPS_ROOT, started_config
from shoal.devices.plugin_file import PluginFile, parse_plugin_file
from shoal.devices.plugin_flags import PluginFlags
from shoal.devices.port import GpuDriver
from shoal.units.errors import TemporaryError

_PATIENCE_S = 3.0


class SettingsReader:
    """`given`: options by the names of `PluginFlags`. `most_mps_clients`: of each GPU of the node; called for a
    configuration with MPS only.
    """

    def __init__(
        self,
        given: Mapping[str, Any],
        most_mps_clients: Callable[[], int] = lambda: MOST_MPS_CLIENTS,
        defaults: PluginFlags | None = None,
    ) -> None:
        """`defaults`: what the file does not set; None: as NVIDIA's charts install the plugin."""
        self._given, self._most_mps_clients = given, most_mps_clients
        self._defaults = defaults or PluginFlags(mps_root=DEFAULT_MPS_ROOT)

    def read(self, text: str = "") -> tuple[PluginSettings, tuple[str, ...]]:
        """The settings, and notes about what is ignored. Raises `PluginConfigError`."""
        return self.settings(parse_plugin_file(text))

    def settings(self, file: PluginFile) -> tuple[PluginSettings, tuple[str, ...]]:
        flags = msgspec.structs.replace(file.flags, plugin={**file.flags.plugin, **self._given})
        chosen, defaults = msgspec.structs.replace(file, flags=flags), self._defaults
        most = self._most_mps_clients() if chosen.sharing == "mps" else MOST_MPS_CLIENTS
        config = started_config(chosen, defaults, most)
        used = flags.over(defaults)
        return PluginSettings(used, config, driver_nodes(dev_root(used))), config.notes


def dev_root(flags: PluginFlags) -> Path:
    """The folder that has the driver's `/dev`."""
    return Path(flags.dev_root or flags.driver_root)


def most_mps_clients(driver: GpuDriver, patience_s: float = _PATIENCE_S) -> Callable[[], int]:
    """The number of MPS clients that each GPU of the node can have. While the driver lists no GPUs, the number of
    present models; the MPS daemons check that of each GPU again.
    """
    listed = PatientCall(driver.gpus, patience_s)

    def most() -> int:
        try:
            found = [most_clients_of(gpu.compute_capability or "") for gpu in listed().gpus]
        except TemporaryError:
            return MOST_MPS_CLIENTS
        return min(found, default=MOST_MPS_CLIENTS)

    return most
