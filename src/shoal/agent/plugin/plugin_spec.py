"""Writes the CDI specification to which the device plugin's answers refer, where its strategies use CDI.

The file is replaced when GPUs, MIG instances or the driver change. If it cannot be written, the former one remains and
the fault is logged once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from shoal.agent.cdi.driver_files import driver_files, missing_library
from shoal.agent.cdi.spec_file import write_spec
from shoal.agent.patient_call import PatientCall
from shoal.agent.plugin.device_plugin import PluginSettings
from shoal.devices.cdi_devices import PLUGIN_KIND, CdiInput, node_spec
from shoal.devices.port import GpuDriver, InstalledGpu
from shoal.units.errors import TemporaryError, UserError

_log = logging.getLogger("shoal.agent.plugin")
_PATIENCE_S = 0.5
_CDI = frozenset({"cdi-annotations", "cdi-cri"})


class PluginSpec:
    """`folder`: where runtimes look for specifications. `capabilities`: the minor numbers of MIG capabilities."""

    def __init__(
        self,
        folder: Path,
        driver: GpuDriver,
        settings: Callable[[], PluginSettings],
        capabilities: Callable[[], Mapping[str, int]],
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self.path = folder / f"{PLUGIN_KIND.replace('/', '-')}.json"
        self._driver, self._settings, self._capabilities = driver, settings, capabilities
        # It is written in the thread that serves devices, which a driver that does not respond must not block.
        self._version = PatientCall(driver.versions, patience_s)
        self._complaint = ""

    def check(self) -> None:
        """Write the file if it has to be changed."""
        if self._is_wanted():
            try:
                gpus = self._driver.gpus().gpus
            except TemporaryError as error:
                self._complain(str(error))
            else:
                self.write(gpus)

    def write(self, gpus: Sequence[InstalledGpu]) -> None:
        """The same for these GPUs."""
        if not self._is_wanted():
            return
        flags = self._settings().flags
        try:
            version = self._version().driver
            root, dev_root = Path(flags.driver_root), Path(flags.dev_root or flags.driver_root)
            files = driver_files(version, root, dev_root)
            given = CdiInput(
                gpus=tuple(gpus),
                driver=version,
                files=files,
                capabilities=self._capabilities(),
                namings=("index", "uuid"),
                dev_root=str(dev_root),
            )
            is_changed = write_spec(node_spec(given, PLUGIN_KIND), self.path)
        except (TemporaryError, UserError) as error:
            self._complain(str(error))
            return
        self._complain(missing_library(files, version, root))
        if is_changed:
            _log.info("%s: was written", self.path)

    def _is_wanted(self) -> bool:
        return bool(_CDI & {*self._settings().flags.device_list_strategy})

    def _complain(self, words: str) -> None:
        """The same complaint is logged once; empty: there is none any more."""
        if words and words != self._complaint:
            _log.warning("%s", words)
        self._complaint = words
