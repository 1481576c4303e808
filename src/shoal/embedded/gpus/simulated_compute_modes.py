"""Keeps the compute modes of simulated GPUs. They do not limit what simulated programs do."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.devices.compute_mode import ComputeMode, ComputeModeError


class SimulatedComputeModes:
    """Implements ComputeModes. `uuids`: the GPUs of the node, all in the default mode."""

    def __init__(self, uuids: Iterable[str]) -> None:
        self._modes: dict[str, ComputeMode] = dict.fromkeys(uuids, "default")

    def mode(self, uuid: str) -> ComputeMode:
        if uuid not in self._modes:
            raise ComputeModeError(f"cannot read the compute mode of {uuid}: there is no such GPU")
        return self._modes[uuid]

    def set_mode(self, uuid: str, mode: ComputeMode) -> None:
        if uuid not in self._modes:
            raise ComputeModeError(f"cannot set the compute mode of {uuid} to {mode}: there is no such GPU")
        self._modes[uuid] = mode
