"""A head in one cycle: what it would get, who would have to go for it, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import Usage
from shoal.engine.queues.flavors.assignment import Assignment
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.victims.search import Victim
from shoal.engine.queues.workloads import PendingWorkload


class HeadOutcome(Enum):
    """What becomes of a head after the cycle."""

    INADMISSIBLE = auto()
    """Nothing that happens in this cycle could help: it is parked, unless its queue is strict."""
    AGAIN = auto()
    """It lost to others of this cycle and tries again."""
    VICTIMS = auto()
    """Others were told to stop for it."""
    NOT_HERE = auto()
    """It must not use this queue: parked, whatever the queue's strategy."""
    ALONE = auto()
    """Turned away for what it is itself: others of its form may do better."""
    ADMITTED = auto()


@dataclass(slots=True, eq=False)
class CycleEntry:
    """One head and its nomination."""

    waiting: PendingWorkload
    queue: ClusterQueue
    assignment: Assignment | None = None
    victims: list[Victim] = field(default_factory=list)
    barred: frozenset[str] = frozenset()
    """Flavors on whose nodes its pods do not fit."""
    is_resumed: bool = False
    """Its search over flavors goes on where it stopped."""
    is_renewed: bool = False
    """Its domains were lost to others of the cycle, and it was nominated once more."""
    is_cut: bool = False
    """There were no places for the size that it has quota for, and it was nominated smaller."""
    fate: HeadOutcome = HeadOutcome.INADMISSIBLE
    why: Wait = Wait.PENDING
    message: str = ""

    @property
    def usage(self) -> Usage:
        return {} if self.assignment is None else self.assignment.usage

    @property
    def borrow(self) -> int:
        return 0 if self.assignment is None else self.assignment.borrow

    def mark_inadmissible(self, why: Wait, message: str, fate: HeadOutcome = HeadOutcome.INADMISSIBLE) -> None:
        self.why, self.message, self.fate = why, message, fate
