"""What is kept of every pod: while it waits in line, and once it is on a node.

Apart from the classes that work on them, because those may be compiled (`tools/compile_engine.py`) and mypyc does not
pass on what a struct says of itself: frozen, or without a part in garbage collection.
"""

from __future__ import annotations

import msgspec

from shoal.engine.asks import Ask
from shoal.engine.charges import Charge
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.pod_identity import NOBODY, PodIdentity


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """A pod in line."""

    charge: Charge
    """The ask, compiled: one object per ask, so lines are found by identity."""
    priority: int
    turn: int
    goes_first: bool = False
    """Before every priority."""
    who: PodIdentity = NOBODY
    nominated: str = ""
    """The node that was promised to it."""
    first: int = 0
    """Sorts before the turn: made by `standing`."""

    @property
    def order(self) -> tuple[int, int]:
        return self.first, self.turn


class Holding(msgspec.Struct, gc=False):
    """A pod on a node and what it took there."""

    row: int
    charge: Charge
    grant: DeviceGrant | None
    priority: int
    turn: int | None
    """Its place in line before, should the world reject the placement."""
    bound: bool
    """False while the placement is only our plan."""
    goes_first: bool = False
    """It stood before every priority in line."""
    daemon_set: str = ""
    who: PodIdentity = NOBODY
    terminating: bool = False
    """It is being terminated, or our plan says so: it still holds what it holds."""
    nominated: bool = False
    """Nominated: part of what it holds is still held by pods that leave."""
    guessed: bool = False
    """Its devices are not known: the grant is what it most likely holds."""

    @property
    def ask(self) -> Ask:
        return self.charge.ask
