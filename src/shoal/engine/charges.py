"""Compiles a request to vectors over the record: the least amounts it needs and the amounts it takes.

Interned per ask, so that a hundred thousand pods hold a reference each and taking a pod is one vector subtraction.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shoal.engine import facts
from shoal.engine.asks import Ask, counted
from shoal.engine.devices.kinds import kind_of

_LEAST: Final = 4096


class Charge:
    """One ask's vectors; replaced in place when the record grows wider. Compared by identity: one per ask."""

    __slots__ = ("ask", "gpu_milli", "need", "taken")

    def __init__(self, ask: Ask, need: NDArray[np.int64], taken: NDArray[np.int64]) -> None:
        self.ask = ask
        self.need = need
        self.taken = taken
        self.gpu_milli = int(taken[facts.GPU_MILLI])
        """Compute that it takes of the devices of any plain node."""


class Charges:
    """The asks compiled for one cluster; unused ones are dropped before the table doubles."""

    __slots__ = ("_most", "_resources", "known")

    def __init__(self, resources: facts.ResourceColumns) -> None:
        self._resources = resources
        self.known: dict[Ask, Charge] = {}
        self._most = _LEAST

    @property
    def is_full(self) -> bool:
        """Whether unused charges are to be dropped before another is compiled."""
        return len(self.known) >= self._most

    def keep(self, used: AbstractSet[Charge]) -> None:
        """Drop all other charges."""
        self.known = {charge.ask: charge for charge in self.known.values() if charge in used}
        self._most = max(2 * len(self.known), _LEAST)

    def compile(self, ask: Ask) -> Charge:
        """The charge of an ask seen for the first time; what it requests must have columns by now."""
        charge = self.known[ask] = self._vectors(ask)
        return charge

    def widen(self) -> None:
        """Recompile every charge for the record's new width."""
        for ask, charge in self.known.items():
            fresh = self._vectors(ask)
            charge.need = fresh.need
            charge.taken = fresh.taken

    def _vectors(self, ask: Ask) -> Charge:
        amounts = {facts.PODS: 1}
        for name, amount in counted(ask).items():
            column = self._resources.find(name)
            if column is not None and amount > 0:
                amounts[column] = amount
        width = self._resources.width
        need = np.full(width, facts.NEVER_LACKING, np.int64)
        taken = np.zeros(width, np.int64)
        for column, amount in amounts.items():
            need[column] = amount
            taken[column] = amount
        # A request of zero was written down and counts as zero; only silence gets the stand-in.
        written = dict(ask.requests)
        taken[facts.CPU_SCORED] = written.get("cpu", facts.STAND_IN_CPU_MILLI)
        taken[facts.MEMORY_SCORED] = written.get("memory", facts.STAND_IN_MEMORY_BYTES)
        if ask.devices is not None:
            kind = kind_of(ask.devices)
            for column, amount in kind.least(ask.devices).items():
                need[column] = amount
            for column, amount in kind.charged(ask.devices).items():
                taken[column] = amount
        # Most asks end in the first word of the record, however many resources other nodes and pods know.
        asked = (need != facts.NEVER_LACKING).nonzero()[0]
        words = int(asked[-1]) // facts.WORD + 1
        return Charge(ask, need[: words * facts.WORD], taken)
