"""Gangs that cannot be made to yield a single pod more: they have none to spare and cannot go whole.

Known beforehand, so that what nodes could be freed of is not overrated: a search that finds out node by node has tried
a thousand nodes before it gives up.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.preemption.budgets import Allowances
from shoal.engine.preemption.candidates import Candidates


class UnevictableGangs:
    """Two verdicts per company: with budgets kept, and whatever budgets say. The last entry stands for no company."""

    __slots__ = ("_allowances", "_candidates", "_watched", "anyway", "by_budgets")

    def __init__(self, candidates: Candidates, allowances: Allowances) -> None:
        self._candidates = candidates
        self._allowances = allowances
        count = len(candidates.companies)
        self.anyway = np.zeros(count + 1, np.bool_)
        self.by_budgets = np.zeros(count + 1, np.bool_)
        covered = {candidates.company.item(index) for index in allowances.covered} - {-1}
        torn = {place for place, company in enumerate(candidates.companies) if not company.may_go}
        self._watched = covered | torn
        for place in self._watched:
            self._judge(place)

    def look(self, going: list[int]) -> None:
        """These have yielded, or do not any more: who is concerned?"""
        if not self._watched:
            return
        company_of = self._candidates.company
        concerned = {company_of.item(index) for index in going}
        for index in going:
            for other in self._allowances.beside(index):
                concerned.add(company_of.item(other))
        for place in concerned & self._watched:
            self._judge(place)

    def _judge(self, place: int) -> None:
        company = self._candidates.companies[place]
        none_spare = company.most_spare == 0
        self.anyway[place] = none_spare and not company.may_go
        self.by_budgets[place] = none_spare and (
            not company.may_go or self._allowances.broken_by(company.members.keys() - company.gone) > 0
        )
