"""Explains why a gang waits: which part is short, how many pods could run now and at best, and in which domain.

Gathered only on request. Counts for all nodes at once find the domains worth a look; how many pods really fit
there is tried on the ledger, in a few of them, and taken back. What could run if everything else yielded is a bound
that no arrangement can exceed: when it is below what the gang needs, waiting does not help, and the message says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from shoal.engine import facts
from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.fitter import Fitter
from shoal.engine.gang_members import Gang
from shoal.engine.gangs.attempt import can_place, place_gang
from shoal.engine.gangs.candidate_domains import ANYWHERE, CandidateDomains
from shoal.engine.gangs.next_pods import PodsToPlace, minimum, missing_of
from shoal.engine.gangs.node_capacity import capacity_when_empty
from shoal.engine.gangs.search import Search
from shoal.engine.gangs.shortage import leaves_of, shortage_of
from shoal.engine.gangs.team_placement import TeamPlacement
from shoal.engine.gangs.teams import Roster, Team
from shoal.engine.groups import TopologyRequirement
from shoal.engine.reasons import Code
from shoal.engine.repelling_taints import RepellingTaint, repelling_taints, tolerating
from shoal.engine.respelling import respelt_requirement
from shoal.engine.topology.tree import Tree
from shoal.engine.unmatched import Unmatched, unmatched_levels, untold_near

_MOST_PARTS = 32
_MOST_TAINTS = 3
_MOST_DOMAINS = 4
"""So many are tried on the ledger before an answer is given."""


class GroupEvidence(msgspec.Struct, frozen=True):
    """The whole story of a gang that waits."""

    group: str
    code: Code
    part: str = ""
    """The part that is short; empty: the gang itself. All numbers below are about it."""
    role: str = ""
    """The role that is short, if it is one."""
    needs: int = 0
    """Pods that must run."""
    exist: int = 0
    """Pods there are, waiting or running."""
    running: int = 0
    fit_now: int = 0
    """The most that could run now, those that run already included."""
    fit_empty: int = 0
    """The most that could run if everything else yielded; never too low."""
    limit_level: str = ""
    """The level at which no domain has room for them, not even an empty one; empty where that is not the cause."""
    largest: tuple[str, ...] = ()
    """The largest domain of that level, by the values of its labels."""
    largest_pods: int = 0
    """So many of these pods it has room for when it is empty."""
    slice_level: str = ""
    """The level at which the pods of each slice must be together."""
    slice_size: int = 0
    level: str = ""
    """The level at which they must be together."""
    domain: tuple[str, ...] = ()
    """The domain of that level where most could run now, by the values of its labels."""
    pod: str = ""
    """A waiting pod of the part: what keeps it off each node is asked with `evidence.evidence`."""
    fault: str = ""
    """Why its parts make no tree, or, where it is unreadable, what is wrong with what is written about it."""
    is_unreadable: bool = False
    unmatched: tuple[Unmatched, ...] = ()
    """Topology levels that no node has as a label."""
    is_one_pod: bool = False
    """Whether no place for its only pod is all that is missing: then the pod waits for what any other pod waits for."""
    has_fixed_minimum: bool = False
    """Whether the API server lets no one change the minimum of the gang."""

    @property
    def is_hopeless(self) -> bool:
        """Whether waiting cannot help."""
        return self.fit_empty < self.needs


def group_evidence(fitter: Fitter, gang: Gang) -> GroupEvidence:
    """Why a gang waits as of now; the facts stay as they are."""
    if gang.facts is None or gang.fault:
        return GroupEvidence(
            gang.name,
            Code.GANG_MALFORMED if gang.fault else Code.GANG_UNKNOWN,
            exist=len(gang.waiting) + len(gang.running),
            running=len(gang.running),
            pod=min(gang.waiting, key=lambda pod: fitter.cluster.pending[pod].order, default=""),
            fault=gang.fault,
            is_unreadable=gang.facts is not None and bool(gang.facts.unreadable),
        )
    roster = Roster.of_gang(fitter.cluster, gang, gang.facts)
    if not roster.is_met and minimum(roster) is None:
        return _too_small(gang, roster)
    mark = fitter.ledger.mark()
    code = place_gang(fitter, gang)
    fitter.ledger.rollback(mark)
    return _short(fitter, gang, roster, code)


def taints_helpful_to(fitter: Fitter, gang: Gang, pod: str) -> tuple[RepellingTaint, ...]:
    """Taints that, if all waiting pods of the gang tolerated them, would let it run now. `pod`: one that is short."""
    cluster = fitter.cluster
    found = []
    for each in repelling_taints(cluster, cluster.pending[pod].charge.ask)[:_MOST_TAINTS]:
        before = [(name, waiting) for name in list(gang.waiting) if (waiting := cluster.pending.remove(name))]
        try:
            for name, waiting in before:
                charge = cluster.charge(tolerating(waiting.charge.ask, each.taints))
                cluster.pending.restore(name, structs.replace(waiting, charge=charge))
            helps = can_place(fitter, gang)
        finally:
            for name, waiting in before:
                cluster.pending.remove(name)
                cluster.pending.restore(name, waiting)
        if helps:
            found.append(each)
    return tuple(found)


def _too_small(gang: Gang, roster: Roster) -> GroupEvidence:
    lack = shortage_of(roster)
    return GroupEvidence(
        gang.name,
        Code.GANG_TOO_SMALL,
        lack.part,
        lack.role,
        lack.needs,
        lack.exist,
        len(roster.running),
        pod=next(iter(roster.waiting), ""),
        has_fixed_minimum=gang.facts is not None and gang.facts.has_fixed_minimum,
    )


def _short(fitter: Fitter, gang: Gang, roster: Roster, code: Code) -> GroupEvidence:
    """Enough pods exist; the first part that finds no place even alone is what is short, or else the whole."""
    team, want = roster.root, minimum(roster) if not roster.is_met else None
    for part in list(leaves_of(roster.root))[:_MOST_PARTS]:
        alone = None if part.is_met else missing_of(roster, part)
        if alone is not None and not _fits_alone(fitter, roster, alone):
            team, want = part, alone
            break
    running = list(team.all_running())
    lacking = 0 if want is None else want.at_least
    placed, level, domain = (0, "", ()) if want is None else _most_now(fitter, roster, want)
    pods = [*running, *_all_waiting(team)]
    charges = Counter(_charge(fitter.cluster, pod) for pod in pods)
    needs = len(running) + lacking
    empty = _most_when_empty(fitter, charges, team.requirement, needs)
    return GroupEvidence(
        gang.name,
        code,
        team.name,
        "",
        len(running) + lacking,
        len(pods),
        len(running),
        len(running) + placed,
        empty.pods,
        empty.level,
        empty.domain,
        empty.domain_pods,
        team.requirement.slice_level,
        team.requirement.slice_size,
        level,
        domain,
        _shown_pod(fitter.cluster, list(_all_waiting(team))),
        unmatched=_unmatched(fitter, gang, charges, team, needs),
        is_one_pod=code is Code.GANG and len(gang.waiting) + len(gang.running) == 1,
    )


def _unmatched(fitter: Fitter, gang: Gang, charges: Counter[Charge], team: Team, needs: int) -> tuple[Unmatched, ...]:
    """Near levels are given only where, with them, a domain has room for the pods when it is empty."""
    found = unmatched_levels(fitter.cluster, _levels(gang))
    if gang.facts is None or not found or not all(level.near for level in found):
        return untold_near(found)
    meant = respelt_requirement(fitter.cluster, team.requirement, found)
    has_room = _most_when_empty(fitter, charges, meant, needs).pods >= needs
    return tuple(structs.replace(level, near=level.near[:1]) for level in found) if has_room else untold_near(found)


def _levels(gang: Gang) -> Iterator[str]:
    if gang.facts is not None:
        for wish in (gang.facts.requirement, *(part.requirement for part in gang.facts.parts)):
            yield from (wish.required, wish.slice_level)


def _all_waiting(team: Team) -> Iterator[str]:
    yield from team.waiting
    for part in team.parts:
        yield from _all_waiting(part)


def _shown_pod(cluster: Cluster, waiting: list[str]) -> str:
    """The first that no node can take even when it is empty: it alone keeps the gang waiting. Else the first."""
    by_charge: dict[Charge, str] = {}
    for pod in waiting:
        by_charge.setdefault(_charge(cluster, pod), pod)
    impossible = (pod for charge, pod in by_charge.items() if not capacity_when_empty(cluster, charge).any())
    first = next(iter(waiting), "")
    return next(impossible, first) if len(by_charge) > 1 else first


def _charge(cluster: Cluster, pod: str) -> Charge:
    return cluster.pods[pod].charge if pod in cluster.pods else cluster.pending[pod].charge


def _fits_alone(fitter: Fitter, roster: Roster, want: PodsToPlace) -> bool:
    mark = fitter.ledger.mark()
    fits = Search(fitter, roster.running).place(want)
    fitter.ledger.rollback(mark)
    return fits


def _most_now(fitter: Fitter, roster: Roster, want: PodsToPlace) -> tuple[int, str, tuple[str, ...]]:
    """Pods that can be placed together as of now, the level at which they must be, and the domain."""
    fill = TeamPlacement(fitter, roster.running)
    ledger = fitter.ledger
    mark = ledger.mark()
    key = want.requirement.required
    if not key:
        placed = fill.most(want, ANYWHERE)
        ledger.rollback(mark)
        return placed, "", ()
    search = CandidateDomains(fitter).search(want, ANYWHERE)
    best = 0
    name: tuple[str, ...] = ()
    if search is not None:
        for bound, domain in search.largest(search.required)[:_MOST_DOMAINS]:
            if bound <= best:
                break
            placed = fill.most(want, search.within(search.required, domain))
            ledger.rollback(mark)
            if placed > best:
                best, name = placed, search.tree.name(search.required, domain)
    return best, key, name


class _EmptyCapacity(NamedTuple):
    pods: int
    """The most that could run at once."""
    level: str = ""
    domain: tuple[str, ...] = ()
    domain_pods: int = 0


def _most_when_empty(
    fitter: Fitter, charges: Counter[Charge], requirement: TopologyRequirement, needs: int
) -> _EmptyCapacity:
    """The most of these pods that could run at once, together where they must be, if nothing else did. A level is the
    cause only if they would fit without it."""
    tree = fitter.placement.trees.of(requirement)
    level, slice_level = (
        -1 if tree is None else tree.level(key) for key in (requirement.required, requirement.slice_level)
    )
    if (requirement.required and level < 0) or (requirement.slice_level and slice_level < 0):
        return _EmptyCapacity(0)
    most = int(np.max(_bounds(fitter.cluster, charges, tree, -1), initial=0))
    found = _EmptyCapacity(most)
    for key, at, unit in (
        (requirement.slice_level, slice_level, requirement.slice_size),
        (requirement.required, level, 0),
    ):
        if not key or tree is None:
            continue
        bounds = _bounds(fitter.cluster, charges, tree, at)
        largest = int(np.max(bounds, initial=0))
        here = int((bounds // unit * unit).sum()) if unit else largest
        is_cause = found.pods >= needs > here and (not unit or largest < unit)
        name = tree.name(at, int(np.argmax(bounds))) if len(bounds) else ()
        pods = min(found.pods, here)
        found = _EmptyCapacity(pods, key, name, largest) if is_cause else found._replace(pods=pods)
    return found


def _bounds(cluster: Cluster, charges: Counter[Charge], tree: Tree | None, level: int) -> NDArray[np.int64]:
    """By domain of a level, or everywhere together: so many of these pods at most."""

    def per_domain(amounts: NDArray[np.int64]) -> NDArray[np.int64]:
        return amounts.sum(keepdims=True) if tree is None or level < 0 else tree.sums(level, amounts)

    capacities = {charge: capacity_when_empty(cluster, charge) for charge in charges}
    most = sum(np.minimum(per_domain(capacity), charges[charge]) for charge, capacity in capacities.items())
    anywhere = sum(capacity > 0 for capacity in capacities.values()) > 0
    odd = cluster.devices.odd
    for column in (facts.CPU, facts.MEMORY, facts.PODS, *(() if odd else (facts.GPU_MILLI,))):
        # Even if amounts could be cut up at will, the smallest askers first.
        smallest_first = np.sort([charge.taken[column] for charge in charges.elements()])
        there = per_domain(np.where(anywhere, cluster.total[:, column], 0))
        most = np.minimum(most, np.searchsorted(np.cumsum(smallest_first), there, side="right"))
    return np.asarray(most, np.int64)
