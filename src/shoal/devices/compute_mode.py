"""Defines how the compute mode of a GPU is read and set: which processes may use it.

An adapter over the driver's library and one over simulated GPUs implement it. A mode that is set already is set again
without effect.
"""

from __future__ import annotations

from typing import Literal, Protocol

ComputeMode = Literal["default", "exclusive-thread", "prohibited", "exclusive-process"]
COMPUTE_MODES: tuple[ComputeMode, ...] = ("default", "exclusive-thread", "prohibited", "exclusive-process")
"""By the driver's numbers."""


class ComputeModeError(Exception):
    """The driver did not read or set the mode; the GPU is as it was."""


class ComputeModes(Protocol):
    """`uuid` is that of a GPU. Both raise `ComputeModeError`, also for the UUID of no GPU."""

    def mode(self, uuid: str) -> ComputeMode: ...
    def set_mode(self, uuid: str, mode: ComputeMode) -> None: ...
