"""Decodes the few fields of nodes, pods and events that the dashboard shows.

Every text is one printable line. The constructors ensure this, because a user who may write Events could otherwise
send control sequences to the terminal that shows the dashboard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class Slot(msgspec.Struct, frozen=True):
    """A part of a GPU that is handed out as one device: all of it, a MIG instance, a replica."""

    device: str
    gpu: int
    start: float
    """Where on the GPU it begins, 0 to 1."""
    width: float


class NodeFacts(msgspec.Struct, frozen=True):
    name: str
    kind: str
    """What machines of one kind share: the instance type, else the GPU product."""
    gpus: int
    slots: tuple[Slot, ...]
    """Empty where nothing says which devices there are; then GPUs are filled in order."""
    is_ready: bool = True
    is_cordoned: bool = False
    broken: frozenset[int] = frozenset()
    """GPUs that have failed."""


class PodFacts(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    phase: str
    node: str
    gpus: float
    """How many devices it asks for, of whatever size."""
    devices: tuple[str, ...]
    why: str
    """Why it waits, in the scheduler's or kubelet's words."""
    created: str
    is_ending: bool = False

    @property
    def address(self) -> tuple[str, str]:
        return (self.namespace, self.name)

    @property
    def waits(self) -> bool:
        return self.phase == "Pending" and not self.is_ending

    @property
    def holds(self) -> bool:
        return bool(self.node) and self.phase in ("Pending", "Running")


class EventFacts(msgspec.Struct, frozen=True):
    """An Event, in a line."""

    at: str
    about: str
    reason: str
    message: str
    is_warning: bool
    count: int = 1


class GpuSlot(msgspec.Struct, frozen=True):
    """A stretch of one GPU with one owner (a namespace; empty where it is free)."""

    start: float
    width: float
    owner: str


class Tile(msgspec.Struct, frozen=True):
    """A node and who holds which part of it."""

    node: NodeFacts
    parts: Sequence[Sequence[GpuSlot]]
    """For each GPU, in order."""
    sums: Mapping[str, float]
    """GPUs by owner, parts as fractions."""


class Fleet(msgspec.Struct, frozen=True):
    """All tiles together."""

    gpus: int
    broken: int
    sums: Mapping[str, float]
    """GPUs by owner."""


class DashboardFacts(msgspec.Struct, frozen=True):
    """Everything one frame shows."""

    title: str
    clock: str
    tiles: Sequence[Tile]
    fleet: Fleet
    waiting: Sequence[PodFacts]
    """Those that wait longest, oldest first: as many as a terminal has lines for."""
    waits: int
    """How many wait in all."""
    running: int
    done: int
    failed: int
    events: Sequence[EventFacts]
    """The newest first."""
    footer: str = ""
