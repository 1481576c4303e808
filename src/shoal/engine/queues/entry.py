"""Defines the entry of an admission cycle: the head of a queue with its assignment, its victims and its outcome.

`STATES_AFTER` lists the states that a workload can have after each outcome. The requeuing checks it, and
`docs/states.md` draws it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import Usage
from shoal.engine.queues.flavors.assignment import Assignment
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.victims.search import Victim
from shoal.engine.queues.workloads import PendingWorkload

PendingState = Literal["active", "inadmissible", "none"]
"""`none`: the workload is not pending in a cluster queue, and takes no part in cycles until it changes."""


class HeadOutcome(StrEnum):
    """What a cycle decides about a head."""

    ADMITTED = "Admitted"
    PREEMPTING = "Preempting"
    """Other workloads are evicted for the head, which is tried again after their pods have ended."""
    RETRY = "Retry"
    """The head lost to other heads of the cycle."""
    INADMISSIBLE = "Inadmissible"
    """No event of this cycle can help the head or its equivalence class."""
    INADMISSIBLE_ALONE = "InadmissibleAlone"
    """Only this head is inadmissible: other workloads of its equivalence class can be admitted."""
    NAMESPACE_MISMATCH = "NamespaceMismatch"
    """The namespace must not use the cluster queue: the head is inadmissible under StrictFIFO too."""


STATES_AFTER: Mapping[HeadOutcome, frozenset[PendingState]] = {
    HeadOutcome.ADMITTED: frozenset({"none"}),
    HeadOutcome.PREEMPTING: frozenset({"active"}),
    HeadOutcome.RETRY: frozenset({"active"}),
    HeadOutcome.INADMISSIBLE: frozenset({"active", "inadmissible"}),
    HeadOutcome.INADMISSIBLE_ALONE: frozenset({"active", "inadmissible"}),
    HeadOutcome.NAMESPACE_MISMATCH: frozenset({"inadmissible"}),
}
"""An inadmissible head remains active if its queue is StrictFIFO, or if it has flavors left to try."""


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
    outcome: HeadOutcome = HeadOutcome.INADMISSIBLE
    why: Wait = Wait.PENDING
    message: str = ""

    @property
    def usage(self) -> Usage:
        return {} if self.assignment is None else self.assignment.usage

    @property
    def borrow(self) -> int:
        return 0 if self.assignment is None else self.assignment.borrow

    def mark_inadmissible(self, why: Wait, message: str, outcome: HeadOutcome = HeadOutcome.INADMISSIBLE) -> None:
        self.why, self.message, self.outcome = why, message, outcome
