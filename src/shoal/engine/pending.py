"""Pods that wait, grouped by what they ask: a round looks at one head per ask, not at every pod.

When an ask fits nowhere, every pod behind it with the same ask fits nowhere either, so a backlog of ten thousand
equal pods costs a round as much as one. Order is priority, then arrival; a pod sent back keeps its old place. Pods of
a gang stand in no line: they are decided together.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import msgspec

from shoal.engine.charges import Charge
from shoal.engine.gangs.members import Gangs
from shoal.engine.who import NOBODY, Who

_FIRST = -(1 << 40)

# Among equals in priority: whoever was promised a place, then everybody, then what gangs want beyond their minimum.
PROMISED = 0
USUAL = 1
SURPLUS = 2
MORE_SURPLUS = 3


def standing(priority: int, phase: int) -> int:
    """One number that sorts by priority, highest first, then by phase."""
    return phase - (priority << 2)


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """A pod in line."""

    charge: Charge
    """The ask, compiled: one object per ask, so lines are found by identity."""
    priority: int
    turn: int
    goes_first: bool = False
    """Before every priority."""
    who: Who = NOBODY
    nominated: str = ""
    """The node that was promised to it."""

    @property
    def order(self) -> tuple[int, int]:
        phase = PROMISED if self.nominated else USUAL
        return (_FIRST if self.goes_first else standing(self.priority, phase)), self.turn


class Pending:
    """All waiting pods of a cluster."""

    __slots__ = ("_fresh", "_gangs", "_lines", "_pods", "_turns")

    def __init__(self, gangs: Gangs) -> None:
        self._gangs = gangs
        self._pods: dict[str, Waiting] = {}
        self._lines: dict[Charge, list[tuple[int, int, str]]] = {}
        self._fresh: dict[str, None] = {}
        self._turns = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __getitem__(self, key: str) -> Waiting:
        return self._pods[key]

    def charges(self) -> set[Charge]:
        """The asks of all waiting pods."""
        return {waiting.charge for waiting in self._pods.values()}

    def keys(self) -> list[str]:
        """Waiting pods in the order in which they are tried."""
        return sorted(self._pods, key=lambda key: self._pods[key].order)

    def add(
        self,
        key: str,
        charge: Charge,
        priority: int,
        turn: int | None = None,
        *,
        goes_first: bool = False,
        who: Who = NOBODY,
        nominated: str = "",
    ) -> None:
        """Put a pod in line; with the turn it had before, at its old place."""
        if turn is None:
            turn = self._turns
            self._turns += 1
        self.restore(key, Waiting(charge, priority, turn, goes_first, who, nominated))
        self._fresh[key] = None

    def remove(self, key: str) -> Waiting | None:
        # The heap entry stays and is skipped when its turn comes: removal from the middle of a heap is a scan.
        waiting = self._pods.pop(key, None)
        if waiting is not None and waiting.who.group:
            self._gangs.waits_no_more(waiting.who.group, key)
        return waiting

    def restore(self, key: str, waiting: Waiting) -> None:
        """Undo `remove`. The line may have dropped the entry meanwhile; a second one is skipped as easily as none."""
        self._pods[key] = waiting
        if waiting.who.group:
            self._gangs.waits(waiting.who.group, key, waiting.turn)
            return
        line = self._lines.get(waiting.charge)
        if line is None:
            line = self._lines[waiting.charge] = []
        heappush(line, (*waiting.order, key))

    def heads(self) -> list[tuple[int, int, str, Charge]]:
        """The first pod of every line, as a heap."""
        heads = []
        for charge in list(self._lines):
            head = self.head(charge)
            if head is not None:
                heads.append((*head, charge))
        heapify(heads)
        return heads

    def head(self, charge: Charge) -> tuple[int, int, str] | None:
        """The first pod still waiting in the ask's line."""
        line = self._lines[charge]
        while line:
            first = line[0]
            pod = self._pods.get(first[2])
            # A pod that left, or came back with another ask or priority, has another turn or none.
            if pod is not None and pod.charge is charge and pod.order == first[:2]:
                return first
            heappop(line)
        del self._lines[charge]
        return None

    def take_fresh(self) -> list[str]:
        """Pods that joined since the last call and still wait: the ones that are owed an answer."""
        fresh = [key for key in self._fresh if key in self._pods]
        self._fresh = {}
        return fresh
