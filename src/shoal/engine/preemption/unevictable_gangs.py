"""Determines the gangs that cannot lose one more pod: they have none to spare and may not be evicted as a whole.

Known beforehand, so that what nodes could be freed of is not overrated: a search that finds out node by node has tried
a thousand nodes before it gives up.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.preemption.budgets import Allowances
from shoal.engine.preemption.candidates import Candidates


class UnevictableGangs:
    """Two verdicts per gang: with budgets respected, and regardless of budgets. The last entry is for pods without a
    gang."""

    __slots__ = ("_allowances", "_candidates", "_watched", "anyway", "by_budgets")

    def __init__(self, candidates: Candidates, allowances: Allowances) -> None:
        self._candidates = candidates
        self._allowances = allowances
        count = len(candidates.units)
        self.anyway = np.zeros(count + 1, np.bool_)
        self.by_budgets = np.zeros(count + 1, np.bool_)
        covered = {candidates.unit.item(index) for index in allowances.covered} - {-1}
        torn = {place for place, unit in enumerate(candidates.units) if not unit.may_be_evicted}
        self._watched = covered | torn
        for place in self._watched:
            self._judge(place)

    def look(self, going: list[int]) -> None:
        """These have yielded, or do not any more: who is concerned?"""
        if not self._watched:
            return
        unit_of = self._candidates.unit
        concerned = {unit_of.item(index) for index in going}
        for index in going:
            for other in self._allowances.beside(index):
                concerned.add(unit_of.item(other))
        for place in concerned & self._watched:
            self._judge(place)

    def _judge(self, place: int) -> None:
        unit = self._candidates.units[place]
        none_spare = unit.most_spare == 0
        self.anyway[place] = none_spare and not unit.may_be_evicted
        self.by_budgets[place] = none_spare and (
            not unit.may_be_evicted or self._allowances.broken_by(unit.members.keys() - unit.evicted) > 0
        )
