"""Frees capacity for several pods with equal requests: the cheapest nodes first, until they have slots for all.

Slots are counted, not filled: freeing fifty nodes one by one would place and undo a gang fifty times. The count errs on
the side of too many, so the claimant is then placed for real.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from shoal.engine.charges import Charge
from shoal.engine.fitter import Fitter
from shoal.engine.preemption.candidates import Mask
from shoal.engine.preemption.capacity_bounds import PodCapacity, Rows
from shoal.engine.preemption.cheapest_victims import MOST_ITEMS, CheapestVictims
from shoal.engine.preemption.node_costs import RowBounds
from shoal.engine.preemption.preemptor import Preemptor
from shoal.engine.preemption.trim import trim
from shoal.engine.preemption.victims import Victims


class Slots:
    """The nodes of one set, for one claimant."""

    def __init__(self, fitter: Fitter, victims: Victims, claim: Preemptor, charge: Charge, rows: Rows) -> None:
        self._fitter = fitter
        self._cluster = fitter.cluster
        self._victims = victims
        self._claim = claim
        self._wanted = len(claim.pods)
        self._capacity = PodCapacity(fitter.cluster, charge)
        self._rows = rows

    def free(self, eligible: Mask) -> list[int] | None:
        """Victims in these nodes that let the claimant in."""
        found = self._greedy(eligible, in_lots=False)
        if self._has_lots(eligible):
            # A large pod that makes room for several is cheap, but only by the lot.
            other = self._greedy(eligible, in_lots=True)
            found = min(filter(None, (found, other)), key=self._victims.price, default=None)
        if found is None and self._victims.allowances.covered:
            # The cheap victims may have used up a budget that others cannot do without.
            self._victims.thrifty = True
            found = self._greedy(eligible, in_lots=False)
            self._victims.thrifty = False
        return self._improved(eligible, found)

    def _greedy(self, eligible: Mask, *, in_lots: bool) -> list[int] | None:
        victims = self._victims
        bounds = RowBounds(self._cluster, victims, self._capacity, eligible, self._rows)
        bounds.look(self._rows)
        while (missing := self._wanted - int(bounds.slots.sum())) > 0:
            if in_lots:
                bounds.look(self._rows, missing)
            most = missing if in_lots else 1
            if bounds.free_capacity(lambda row: self._slots(np.array([row])) >= bounds.goal(row), most) is None:
                break
        found = None
        if self._proves():
            trim(victims, self._proves, may_spare=partial(self._may_spare, bounds))
            found = victims.chosen
        victims.spare(victims.chosen)
        return found

    def _has_lots(self, eligible: Mask) -> bool:
        bounds = RowBounds(self._cluster, self._victims, self._capacity, eligible, self._rows)
        more = bounds.most_slots(self._rows) - self._capacity.slots(self._rows)
        return bool((more > 1).any())

    def _slots(self, rows: Rows) -> int:
        return int(self._capacity.slots(rows).sum())

    def _may_spare(self, bounds: RowBounds, part: list[int]) -> bool:
        """Whether there would still be slots enough without this part of the victims, by the count."""
        candidates, capacity = self._victims.candidates, self._capacity
        there = np.array(part)[bounds.within[candidates.row[part]]]
        rows, place = np.unique(candidates.row[there], return_inverse=True)
        left = capacity.free(rows)
        np.subtract.at(left, place, candidates.amounts(capacity.columns)[there])
        fewer = np.maximum((left // capacity.taken).min(axis=1), 0) if len(rows) else 0
        return int(bounds.slots.sum() - (bounds.slots[rows] - fewer).sum()) >= self._wanted

    def _proves(self) -> bool:
        return self._slots(self._rows) >= self._wanted and self._claim.fits(self._fitter)

    def _improved(self, eligible: Mask, found: list[int] | None) -> list[int] | None:
        """No set is cheaper, if candidates are few enough to say so."""
        victims, rows, capacity = self._victims, self._rows, self._capacity
        items = victims.now(eligible).nonzero()[0].tolist()
        if len(items) > MOST_ITEMS:
            return found
        place_of = {row: place for place, row in enumerate(rows.tolist())}
        places = {index: place_of.get(victims.candidates.row.item(index), -1) for index in items}
        amounts = victims.candidates.taken[:, capacity.columns]
        free = capacity.free(rows)

        def possible(spared: set[int]) -> bool:
            left = free.copy()
            for index, place in places.items():
                if place >= 0 and index not in spared:
                    left[place] += amounts[index]
            return int(np.maximum((left // capacity.taken).min(axis=1), 0).sum()) >= self._wanted

        return CheapestVictims(victims, items, possible, self._proves, found).found()
