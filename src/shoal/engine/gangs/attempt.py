"""Places what a gang needs to run, all or nothing; once it runs, one further unit at a time."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.fitter import Fitter
from shoal.engine.gang_members import Gang
from shoal.engine.gangs.candidate_domains import loads
from shoal.engine.gangs.next_pods import PodsToPlace, minimum, one_more
from shoal.engine.gangs.node_capacity import capacity_now
from shoal.engine.gangs.search import Search
from shoal.engine.gangs.teams import Roster
from shoal.engine.pending import MORE_SURPLUS, SURPLUS, USUAL
from shoal.engine.reasons import Code


def place_gang(fitter: Fitter, gang: Gang) -> Code:
    """Place what the gang needs to run (or, once it runs, one unit more), and return the result.

    What was placed stays on the ledger; a failure leaves no trace.
    """
    return Attempt(fitter, gang).step()


def can_place(fitter: Fitter, gang: Gang) -> bool:
    """Whether it would succeed now; nothing stays on the ledger."""
    mark = fitter.ledger.mark()
    placed = place_gang(fitter, gang) is Code.PLACED
    fitter.ledger.rollback(mark)
    return placed


def is_running(cluster: Cluster, gang: Gang) -> bool:
    """Whether the gang has all it needs to run."""
    return gang.facts is not None and not gang.fault and Roster.of_gang(cluster, gang, gang.facts).is_met


def gang_phase(cluster: Cluster, gang: Gang) -> int:
    """Whether a gang comes for what it needs to run, for the first thing beyond that, or for more."""
    if gang.facts is None or not gang.running:
        return USUAL
    roster = Roster.of_gang(cluster, gang, gang.facts)
    if not roster.is_met:
        return USUAL
    return MORE_SURPLUS if roster.has_surplus else SURPLUS


class Attempt:
    """Steps of one gang, one after the other, as long as nothing but these steps changes the gang."""

    __slots__ = ("_fitter", "_gang", "_roster", "_stuck")

    def __init__(self, fitter: Fitter, gang: Gang) -> None:
        self._fitter = fitter
        self._gang = gang
        self._roster = None if gang.facts is None else Roster.of_gang(fitter.cluster, gang, gang.facts)
        self._stuck: set[tuple[str, Charge]] = set()
        """(part, ask) of single pods that found no place: their like would find none either."""

    def step(self) -> Code:
        """What `place_gang` does."""
        roster = self._roster
        if roster is None:
            return Code.GANG_UNKNOWN
        if self._gang.fault:
            return Code.GANG_MALFORMED
        if not roster.is_met:
            want = minimum(roster)
            if want is None:
                return Code.GANG_TOO_SMALL
            return self._place(want)
        code = Code.GANG
        for want in self._more(roster):
            code = self._place(want)
            if code is Code.PLACED:
                break
        return code

    def _more(self, roster: Roster) -> Iterator[PodsToPlace]:
        pending = self._fitter.cluster.pending
        for want in one_more(roster):
            pods = list(want.all_pods())
            if len(pods) > 1:
                yield want
                continue
            alike = roster.team_of(pods[0]).name, pending[pods[0]].charge
            if alike not in self._stuck:
                yield want
                # Only reached when the want found no place.
                self._stuck.add(alike)

    def _place(self, want: PodsToPlace) -> Code:
        roster = self._roster
        assert roster is not None  # noqa: S101 - the caller's case
        mark = self._fitter.ledger.mark()
        if Search(self._fitter, roster.running).place(want):
            roster.started(self._fitter.ledger.placed_since(mark))
            return Code.PLACED
        return Code.TOPOLOGY if _would_fit_apart(self._fitter, want) else Code.GANG


def _would_fit_apart(fitter: Fitter, want: PodsToPlace) -> bool:
    """Whether the fleet has the capacity by the count, so that closeness is what is missing."""
    if not _is_bound(want):
        return False
    capacities = {}
    for load in loads(fitter, want):
        for charge in load.asks:
            if charge not in capacities:
                capacities[charge] = int(capacity_now(fitter.placement, charge).sum())
        if sum(min(capacities[charge], count) for charge, count in load.asks.items()) < load.need:
            return False
    return True


def _is_bound(want: PodsToPlace) -> bool:
    requirement = want.requirement
    return bool(requirement.required or requirement.slice_level) or any(map(_is_bound, want.parts))
