"""Tracks how many more evictions each disruption budget allows in this cycle, and which pods that protects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from shoal.engine.cluster import Cluster


class Allowances:
    """Budgets as numbers that go down with every victim and up again with every one that is spared.

    Candidates are known by their number. Rejected: asking every budget about every pod; a cluster has a budget per
    service and most pods have none.
    """

    __slots__ = ("_left", "_members", "_of", "_spent")

    def __init__(self, cluster: Cluster, candidates: list[str]) -> None:
        number = {key: index for index, key in enumerate(candidates)} if cluster.budgets else {}
        self._left: list[int] = []
        self._members: list[NDArray[np.int64]] = []
        self._of: dict[int, list[int]] = {}
        self._spent = np.zeros(len(candidates), np.int64)
        """How many of its budgets let no pod go any more, per candidate."""
        for budget in cluster.budgets.values():
            members = sorted(number[pod] for pod in budget.pods if pod in number)
            place = len(self._left)
            self._left.append(budget.allowed)
            self._members.append(np.array(members, np.int64))
            for index in members:
                self._of.setdefault(index, []).append(place)
            if budget.allowed <= 0:
                self._spent[members] += 1

    @property
    def barred(self) -> NDArray[np.bool_]:
        """Who may not yield without breaking a budget."""
        return self._spent > 0

    @property
    def covered(self) -> Collection[int]:
        """Candidates under some budget."""
        return self._of.keys()

    def covers(self, index: int) -> bool:
        """Whether any budget covers a candidate."""
        return index in self._of

    def beside(self, index: int) -> Iterator[int]:
        """Candidates under a budget that covers this one too."""
        for place in self._of.get(index, ()):
            yield from self._members[place].tolist()

    def take(self, index: int, sign: int) -> None:
        """A candidate yields, or (-1) does not after all."""
        for place in self._of.get(index, ()):
            before = self._left[place] > 0
            self._left[place] -= sign
            after = self._left[place] > 0
            if before != after:
                self._spent[self._members[place]] += 1 if before else -1

    def broken_by(self, going: Iterable[int]) -> int:
        """How many of these would yield against a budget, beside those that have yielded."""
        if not self._of:
            return 0
        taken: Counter[int] = Counter()
        broken = 0
        for index in going:
            against = False
            for place in self._of.get(index, ()):
                taken[place] += 1
                against |= taken[place] > self._left[place]
            broken += against
        return broken
