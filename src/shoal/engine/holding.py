"""A pod on a node, and what it took there."""

from __future__ import annotations

import msgspec

from shoal.engine.asks import Ask
from shoal.engine.charges import Charge
from shoal.engine.devices.demand import Grant
from shoal.engine.who import NOBODY, Who


class Holding(msgspec.Struct, gc=False):
    """A pod on a node and what it took there."""

    row: int
    charge: Charge
    grant: Grant | None
    priority: int
    turn: int | None
    """Its place in line before, should the world reject the placement."""
    bound: bool
    """False while the placement is only our plan."""
    goes_first: bool = False
    """It stood before every priority in line."""
    daemon_set: str = ""
    who: Who = NOBODY
    leaving: bool = False
    """It is being terminated, or our plan says so: it still holds what it holds."""
    promised: bool = False
    """Nominated: part of what it holds is still held by pods that leave."""
    guessed: bool = False
    """Its devices are not known: the grant is what it most likely holds."""

    @property
    def ask(self) -> Ask:
        return self.charge.ask
