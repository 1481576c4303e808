"""Searches victims for one preemptor: the cheapest ones, all necessary, and proven by placing the whole preemptor
afterwards.

The price is minimised from the left: first the highest level that must yield at all is found, then, among candidates up
to that level, the rest of the price. A pod's victims share a node, so node by node is exact. A gang's nodes share
victims (once a gang yields, all its nodes have capacity), so nodes are taken one by one at what they cost *now*; then
what proved unnecessary is spared, and where candidates are few every other set is tried. What nodes cannot tell (rules
about pods in other places) is left to the last resort: all are taken, and spared again one by one.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from shoal.engine.charges import Charge
from shoal.engine.fitter import Fitter
from shoal.engine.preemption.candidates import Mask
from shoal.engine.preemption.capacity_bounds import FeasibleRows, Rows
from shoal.engine.preemption.cheapest_victims import MOST_ITEMS, CheapestVictims
from shoal.engine.preemption.closeness import Closeness
from shoal.engine.preemption.domain_estimates import DomainEstimates
from shoal.engine.preemption.policy import Price
from shoal.engine.preemption.preemptor import Preemptor
from shoal.engine.preemption.slots import Slots
from shoal.engine.preemption.trim import trim
from shoal.engine.preemption.victims import Victims

_MOST_FOR_LAST_RESORT = 512
_MOST_LEVELS = 16


class Search:
    """One preemptor's search; no victim is taken when it starts, nor when it ends."""

    def __init__(self, fitter: Fitter, victims: Victims, claim: Preemptor, reaches: FeasibleRows) -> None:
        self._fitter = fitter
        self._cluster = fitter.cluster
        self._victims = victims
        self._claim = claim
        self._reaches = reaches
        self._pods = claim.pods
        self._charge = claim.charge(fitter.cluster)
        self._close = Closeness(fitter, victims, claim, reaches)

    def find(self, eligible: Mask, *, may_break: bool = False) -> list[int] | None:
        """Whose yielding lets the claimant in at the least price, or None."""
        found = self._cheapest_level(eligible)
        if found is None and may_break:
            self._victims.breaking = True
            found = self._least_broken(eligible)
            self._victims.breaking = False
        return found

    def _cheapest_level(self, eligible: Mask) -> list[int] | None:
        for level in self._levels(eligible):
            found = self._up_to(eligible & (self._victims.candidates.level <= level))
            if found is not None:
                return found
        return None

    def _least_broken(self, eligible: Mask) -> list[int] | None:
        """Broken budgets come before levels in the price, so any level may be the one."""
        best: tuple[Price, list[int]] | None = None
        for level in self._levels(eligible):
            found = self._up_to(eligible & (self._victims.candidates.level <= level))
            if found is not None:
                priced = self._victims.price(found), found
                best = priced if best is None else min(best, priced)
        return None if best is None else best[1]

    def _levels(self, eligible: Mask) -> list[float]:
        """The levels at which there may be room, lowest first."""
        mask = self._victims.now(eligible)
        level_of = self._victims.candidates.level
        levels: list[float] = np.unique(level_of[mask]).tolist()
        first = bisect_left(levels, True, key=lambda level: self._may_suffice(mask & (level_of <= level)))
        levels = levels[first:]
        return levels if len(levels) <= _MOST_LEVELS else [*levels[: _MOST_LEVELS - 1], levels[-1]]

    def _may_suffice(self, eligible: Mask) -> bool:
        """Whether there could be room if all the eligible yielded."""
        if self._charge is None:
            return True
        prospects = DomainEstimates(self._cluster, self._victims, self._charge, self._reaches, eligible)
        return prospects.most_slots(self._reaches.of(self._charge)) >= len(self._pods)

    def _up_to(self, eligible: Mask) -> list[int] | None:
        """The cheapest among the eligible, whatever their level."""
        found = None
        domains = self._close.whole_domains()
        if self._charge is not None and domains is not None:
            domains = DomainEstimates(self._cluster, self._victims, self._charge, self._reaches, eligible).best(
                domains, len(self._pods)
            )
            if not domains:
                return None
            if len(self._pods) > 1:
                found = self._by_slots(eligible, self._charge, domains)
        if found is None:
            found = self._pod_by_pod(eligible)
        if found is None:
            found = self._last_resort(eligible)
        return found

    # -- one ask, several pods: nodes are freed until there are slots for all -------------------------------------

    def _by_slots(self, eligible: Mask, charge: Charge, domains: list[Rows]) -> list[int] | None:
        """The cheapest in any of the sets of nodes."""
        best: tuple[Price, list[int]] | None = None
        for rows in domains:
            found = Slots(self._fitter, self._victims, self._claim, charge, rows).free(eligible)
            if found is not None:
                priced = self._victims.price(found), found
                best = priced if best is None else min(best, priced)
        return None if best is None else best[1]

    # -- pods that differ, or one alone: each in turn, where room costs least --------------------------------------

    def _pod_by_pod(self, eligible: Mask) -> list[int] | None:
        victims = self._victims
        chosen = self._close.free(eligible)
        if chosen is None or self._claim.gang is None:
            return chosen
        victims.take(chosen)
        return self._trimmed(eligible)

    def _trimmed(self, eligible: Mask) -> list[int] | None:
        """Of those that yield now the ones that are needed, or the cheapest others."""
        victims = self._victims
        found = None
        if self._proves():
            trim(victims, self._proves)
            found = victims.chosen
        victims.spare(victims.chosen)
        items = victims.now(eligible).nonzero()[0].tolist()
        if len(items) > MOST_ITEMS:
            return found
        return CheapestVictims(victims, items, lambda _: True, self._proves, found).found()

    # -- all are taken, then those that are not needed are spared ---------------------------------------------------

    def _last_resort(self, eligible: Mask) -> list[int] | None:
        victims = self._victims
        items = victims.now(eligible).nonzero()[0].tolist()
        if len(items) > _MOST_FOR_LAST_RESORT:
            return None
        victims.take_all(items)
        return self._trimmed(eligible)

    def _proves(self) -> bool:
        return self._claim.fits(self._fitter)
