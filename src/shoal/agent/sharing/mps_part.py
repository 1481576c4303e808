"""The part of a node's agent that runs MPS daemons for the GPUs that its configuration shares by MPS.

Guarantees: a GPU that MPS shares is usable only while its daemon is ready under the present configuration. A
configuration with which the device plugin would not start changes nothing; a GPU that was lost keeps its daemon.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from shoal.agent.parts import Stop
from shoal.agent.sharing.mps_control import MpsError
from shoal.agent.sharing.mps_daemons import MpsDaemons
from shoal.devices.discovered import with_lost
from shoal.devices.mps_daemons import MpsDaemon, mps_plan
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.port import GpuDriver, InstalledGpu
from shoal.units.errors import TemporaryError

_log = logging.getLogger("shoal.agent.sharing")


class MpsSettings(msgspec.Struct, frozen=True):
    config: PluginConfig
    root: str


class _LastCheck(msgspec.Struct, frozen=True):
    """What the last check found."""

    settings: MpsSettings
    unusable: frozenset[str]
    """Of the GPUs below."""
    gpus: frozenset[str]


class MpsSharing:
    def __init__(self, driver: GpuDriver, daemons: MpsDaemons, settings: Callable[[], MpsSettings]) -> None:
        self._driver, self._daemons, self._settings = driver, daemons, settings
        self._known: dict[str, InstalledGpu] = {}
        self._wanted: tuple[MpsDaemon, ...] = ()
        self._checked: _LastCheck | None = None
        self._listeners: list[Callable[[], object]] = []
        self._complaint = ""

    def listen(self, listener: Callable[[], object]) -> None:
        """Called when GPUs become usable or unusable."""
        self._listeners.append(listener)

    def is_usable(self, uuid: str) -> bool:
        """Whether containers can use this GPU now, as far as MPS is concerned."""
        settings, checked = self._settings(), self._checked
        if settings.config.sharing != "mps":
            return True
        if checked is None or checked.settings != settings:
            return False
        return uuid in checked.gpus and uuid not in checked.unusable

    def run(self, stop: Stop, interval_s: float = 1.0) -> None:
        """Checks until `stop` is set; the daemons continue then, because pods use them."""
        while not stop.is_set():
            self.check()
            stop.wait(interval_s)

    def check(self) -> None:
        settings = self._settings()
        try:
            listed = self._driver.gpus()
        except TemporaryError as error:
            self._complain(str(error))
            return
        self._known = with_lost(self._known, listed)
        gpus = sorted(self._known.values(), key=lambda gpu: gpu.index)
        plan = mps_plan(gpus, settings.config, settings.root)
        if plan.problem:
            self._complain(plan.problem)
        else:
            self._wanted = plan.daemons
        try:
            ready = self._daemons.check(self._wanted)
        except MpsError as error:
            self._complain(str(error))
            ready = frozenset()
        else:
            if not plan.problem:
                self._complaint = ""
        shared = {gpu.uuid for daemon in self._wanted for gpu in daemon.gpus}
        before, self._checked = self._checked, _LastCheck(settings, frozenset(shared - ready), frozenset(self._known))
        if self._checked != before:
            for listener in self._listeners:
                listener()

    def _complain(self, what: str) -> None:
        """The same complaint is logged once."""
        if what != self._complaint:
            _log.warning("MPS: %s", what)
        self._complaint = what
