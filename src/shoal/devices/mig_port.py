"""Defines how the MIG layout of a node's GPUs is changed: modes, GPU instances and compute instances.

An adapter over the driver's library and one over simulated GPUs implement it. Every call can be repeated after a crash:
a mode that is set already is set again without effect, and instances are named by their numbers, which
`instances` reports.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

ChangeFailure = Literal["in-use", "no-room", "not-supported", "no-permission", "no-instance", "lost", "other"]


class MigChangeError(Exception):
    """The driver did not make a change; the GPU is as it was."""

    def __init__(self, reason: ChangeFailure, what: str) -> None:
        super().__init__(what)
        self.reason = reason


class GpuInstance(msgspec.Struct, frozen=True):
    number: int
    profile: str
    """`1g.10gb`; empty if the table has no such profile."""
    start: int
    """Its first memory slice."""
    width: int
    compute: tuple[int, ...] = ()
    """The slices of each of its compute instances, the largest first."""


class MigControl(Protocol):
    """`uuid` is that of a GPU. All methods raise `MigChangeError`, and `UnknownGpuError` for the UUID of no GPU."""

    def instances(self, uuid: str) -> tuple[GpuInstance, ...]:
        """By start, also those without compute instances; none for a GPU that is not in MIG mode."""
        ...

    def set_mode(self, uuid: str, *, enabled: bool) -> bool:
        """Returns whether the mode is in effect; if not, the GPU has to be reset first."""
        ...

    def create(self, uuid: str, profile: str, start: int, compute: tuple[int, ...]) -> None:
        """Create a GPU instance at this memory slice, and its compute instances. If one of these cannot be created, the
        GPU instance is destroyed again.
        """
        ...

    def destroy(self, uuid: str, number: int) -> None:
        """Destroy a GPU instance with its compute instances. One that does not exist is no failure."""
        ...
