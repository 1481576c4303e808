"""Applies disruption budgets to sets of victims: each eviction reduces what the next may use.

A workload that is being evicted and still has quota counts with its pods, so budgets hold over all victims of one
cycle and over those of the cycles before. Candidates keep their order: the first ones use up a budget, and later ones
that would violate it are skipped.

Rejected: looking for another order where that one fails. It would take other victims than the order says, for a rule
that bends it anyway.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.state import Queues


class Budgets:
    """What a growing set of victims uses up, on top of those that are stopping already."""

    __slots__ = ("_queues", "_used")

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._used: dict[str, int] | None = None
        """Worked out when it is asked for: most workloads have no budget."""

    def allow(self, held: AdmittedWorkload) -> bool:
        """Whether it may end as well."""
        if held.evicted or not held.facts.budgets:
            return True
        used = self._so_far()
        return all(used.get(use.name, 0) + use.pods <= use.allowed for use in held.facts.budgets)

    def use(self, held: AdmittedWorkload) -> None:
        """It ends as well."""
        if not held.evicted:
            _add(self._so_far(), held)

    def forget(self) -> None:
        """None of them ends."""
        self._used = None

    def _so_far(self) -> dict[str, int]:
        if self._used is None:
            self._used = {}
            for held in self._queues.held.values():
                if held.evicted:
                    _add(self._used, held)
        return self._used


def are_within(queues: Queues, victims: Iterable[AdmittedWorkload]) -> bool:
    """Whether all of these may end together, beside those under eviction; yes if budgets are not respected."""
    if not queues.settings.respect_budgets:
        return True
    budgets = Budgets(queues)
    for held in victims:
        if not budgets.allow(held):
            return False
        budgets.use(held)
    return True


def _add(used: dict[str, int], held: AdmittedWorkload) -> None:
    for use in held.facts.budgets:
        used[use.name] = used.get(use.name, 0) + use.pods
