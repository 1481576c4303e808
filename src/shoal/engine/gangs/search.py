"""Finds a place for all that is wanted, or for nothing: a walk over domains that goes back when a later part is stuck.

Each team is tried in its sites, the best first; parts that wish to be together are placed one after the other, and when
one finds no place, the part before it moves on to its next site. Pods themselves are never permuted: within one site
there is one way to fill it. So the search is exact for parts that differ only in size, and ends: going back costs from
a purse, and when that is empty, the first ways found for earlier parts are final.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from shoal.engine.fitter import Fitter
from shoal.engine.gangs.candidate_domains import ANYWHERE, CandidateDomain, CandidateDomains
from shoal.engine.gangs.next_pods import PodsToPlace
from shoal.engine.gangs.team_placement import TeamPlacement

_PURSE = 5_000
"""Pods that may be placed again on the way back."""

Ways = Iterator[bool]
"""Each step leaves a part placed (True) or left out (False); going on undoes it."""


class Search:
    """One search, for one gang."""

    __slots__ = ("_fill", "_ledger", "_purse", "_sites")

    def __init__(self, fitter: Fitter, running: list[str]) -> None:
        self._ledger = fitter.ledger
        self._fill = TeamPlacement(fitter, running)
        self._sites = CandidateDomains(fitter)
        self._purse = _PURSE

    def place(self, want: PodsToPlace) -> bool:
        """Place all of it; a failure leaves no trace."""
        mark = self._ledger.mark()
        if next(self._ways(want, ANYWHERE), False):
            return True
        self._ledger.rollback(mark)
        return False

    def _ways(self, want: PodsToPlace, outer: CandidateDomain) -> Ways:
        ledger = self._ledger
        mark = ledger.mark()
        for site in self._sites.of(want, outer):
            yield from self._inside(want, site)
            ledger.rollback(mark)

    def _inside(self, want: PodsToPlace, site: CandidateDomain) -> Ways:
        """Parts first, they are harder to please than single pods."""
        ledger = self._ledger
        if not self._is_hopeful(want, site):
            return
        parts = sorted(want.parts[: want.least], key=attrgetter("at_most"), reverse=True) + want.parts[want.least :]
        walk: list[Ways] = []
        placed: list[bool] = []
        while True:
            if sum(placed) >= want.least:
                mark = ledger.mark()
                if self._fill.fill(want, site):
                    yield True
                ledger.rollback(mark)
                if not self._may_go_back(want):
                    return
            else:
                at = len(placed)
                spare = len(parts) - at > want.least - sum(placed)
                walk.append(self._or_without(self._ways(parts[at], site), spare=spare))
                placed.append(False)
            while walk:
                way = next(walk[-1], None)
                if way is not None:
                    placed[-1] = way
                    break
                walk.pop()
                placed.pop()
                if walk and not self._may_go_back(parts[len(walk) - 1]):
                    return
            if not walk:
                return

    def _or_without(self, ways: Ways, *, spare: bool) -> Ways:
        """The ways to place a part, and where enough others are left, to do without it."""
        yield from ways
        if spare:
            yield False

    def _is_hopeful(self, want: PodsToPlace, site: CandidateDomain) -> bool:
        """Whether every part alone has some place to be tried in: saves placing the first when the last has none."""
        if len(want.parts) < 2 or want.least < len(want.parts):
            return True
        return all(next(self._sites.of(part, site), None) is not None for part in want.parts)

    def _may_go_back(self, want: PodsToPlace) -> bool:
        self._purse -= max(want.at_most, 1)
        return self._purse >= 0
