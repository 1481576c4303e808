"""Lists the domains where a subgroup may run as sets of nodes to try, the best first.

    required level      one domain of it, the tightest with enough capacity
    preferred level     the same at that level; if none has capacity, one domain of the next level out, and so on to the
                        required level; without one, anywhere, over as few domains of the preferred level as possible
    closest             as preferred, from the innermost level

Of several domains, those where pods of the gang were promised room come first, then the one where it ran before, then
those with the fewest domains of the preferred level. Among equals the order is that of a walk of the tree from the
outermost level in: at each level the domain with the least free capacity first, then the one with the first node.

Pods of a team that run hold it in their domain. A team of which none run goes back to the required domain it was in
before any other is looked at, however close together it could be there; but it does not wait for it. Counts only
discard and order; whether the team really fits is tried on the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.fitter import Fitter, Rows
from shoal.engine.gangs.next_pods import GangDemand, PodsToPlace
from shoal.engine.gangs.node_capacity import Counts, capacity_now
from shoal.engine.topology.fewest import whole_slices
from shoal.engine.topology.tree import NO_DOMAIN, Tree


@dataclass(frozen=True, slots=True)
class CandidateDomain:
    """Nodes among which a team is tried."""

    rows: Rows | None = None
    """None: all of them."""
    tree: Tree | None = None
    """How close they are to each other, if that matters."""
    level: int = 0
    """The level from which inwards the pods are spread over as few domains as possible."""
    slice_level: int = -1
    slice_size: int = 1


ANYWHERE = CandidateDomain()


@dataclass(slots=True)
class Load:
    """So many pods, of asks that there are so many of."""

    asks: dict[Charge, int]
    need: int


def loads(fitter: Fitter, want: PodsToPlace) -> list[Load]:
    """What must fit together wherever the team goes; each line is a condition of its own."""
    whole: dict[Charge, int] = {}
    found: list[Load] = []
    pending = fitter.cluster.pending
    for demand in _certain(want):
        asks: dict[Charge, int] = {}
        for pod in demand.pods:
            charge = pending[pod].charge
            asks[charge] = asks.get(charge, 0) + 1
        if len(asks) == 1:
            charge = next(iter(asks))
            whole[charge] = whole.get(charge, 0) + demand.need
        elif demand.need == len(demand.pods):
            for charge, count in asks.items():
                whole[charge] = whole.get(charge, 0) + count
        else:
            found.append(Load(asks, demand.need))
    return [*(Load({charge: count}, count) for charge, count in whole.items()), *found]


def _certain(want: PodsToPlace) -> Iterator[GangDemand]:
    yield from want.demands
    if want.least == len(want.parts):
        for part in want.parts:
            yield from _certain(part)


class CandidateDomains:
    """Finds sites for the teams of one gang."""

    __slots__ = ("_fitter",)

    def __init__(self, fitter: Fitter) -> None:
        self._fitter = fitter

    def of(self, want: PodsToPlace, outer: CandidateDomain) -> Iterator[CandidateDomain]:
        """The sites of a team inside that of the team around it, the best first."""
        requirement = want.requirement
        if requirement.is_empty:
            yield outer
            return
        search = self.search(want, outer)
        if search is None:
            if not (requirement.required or requirement.slice_level):
                yield outer
            return
        tree, required, preferred = search.tree, search.required, search.preferred
        innermost = len(tree.levels) - 1 if requirement.closest else max(preferred, required)
        for back in (True, False) if search.home is not None and required >= 0 else (None,):
            for level in range(innermost, max(required, 0) - 1, -1):
                yield from search.domains(level, must=level == required, back=back)
        if required < 0:
            yield search.site(outer.rows, max(preferred, 0))

    def search(self, want: PodsToPlace, outer: CandidateDomain) -> DomainSearch | None:
        """The levels a wish speaks of; None when there is no such topology or level."""
        requirement = want.requirement
        tree = self._fitter.placement.trees.of(requirement)
        if tree is None or any(key and tree.level(key) < 0 for key in (requirement.required, requirement.slice_level)):
            return None
        return DomainSearch(self._fitter, want, outer, tree)


class DomainSearch:
    """The search of one team over one tree, on facts that stay as they are while it lasts."""

    def __init__(self, fitter: Fitter, want: PodsToPlace, outer: CandidateDomain, tree: Tree) -> None:
        cluster = fitter.cluster
        requirement = want.requirement
        self.tree = tree
        self.required = tree.level(requirement.required)
        self.preferred = tree.level(requirement.preferred)
        """Numbers of levels, -1 for none."""
        self._outer = outer
        self._slice_level = tree.level(requirement.slice_level)
        self._slice_size = max(requirement.slice_size, 1)
        self._running = [cluster.pods[pod].row for pod in want.running]
        nominated = {cluster.pending[pod].nominated for pod in want.all_pods()} - {""}
        self._nominated = [cluster.row_of[node] for node in nominated if node in cluster.row_of]
        self.home = None if self._running or self._nominated else self._row_before(cluster, want)
        """The row where the team ran before, if nothing newer determines its place."""
        self._loads = loads(fitter, want)
        self._capacities = {
            charge: self._inside(capacity_now(fitter.placement, charge)) for load in self._loads for charge in load.asks
        }

    def domains(self, level: int, *, must: bool, back: bool | None = None) -> Iterator[CandidateDomain]:
        """The domains of a level that have enough capacity by the count; only those inside the required domain where
        the team ran before, or only the others, as requested.
        """
        tree = self.tree
        sums = {
            charge: tree.sums(level, self._countable(capacity, level)) for charge, capacity in self._capacities.items()
        }
        fits = np.ones(len(tree.first_rank[level]), np.bool_)
        for load in self._loads:
            there = sum(np.minimum(sums[charge], count) for charge, count in load.asks.items())
            fits &= there >= self._in_whole_slices(load.need, level)
        if back is not None:
            fits &= self._inside_former(level) == back
        for domain in self._ordered(level, sums, self._held(level, fits, must=must)):
            rows = tree.rows_of(level, domain)
            if self._outer.rows is not None:
                rows = np.intersect1d(rows, self._outer.rows, assume_unique=True)
            yield self.site(rows, level + 1)

    def largest(self, level: int) -> list[tuple[int, int]]:
        """(pods by the count, domain) of a level, the most pods first: for telling what a team lacks."""
        taken = np.zeros(len(self.tree.first_rank[level]), np.int64)
        for load in self._loads:
            for charge, count in load.asks.items():
                taken += np.minimum(self.tree.sums(level, self._countable(self._capacities[charge], level)), count)
        held = self._held(level, taken >= 0, must=True)
        order = held[np.lexsort((self.tree.first_rank[level].take(held), -taken.take(held)))]
        return [(int(taken[domain]), domain) for domain in order.tolist()]

    def within(self, level: int, domain: int) -> CandidateDomain:
        """A domain, whether it fits or not."""
        return self.site(self.tree.rows_of(level, domain), level + 1)

    def site(self, rows: Rows | None, level: int) -> CandidateDomain:
        return CandidateDomain(rows, self.tree, level, self._slice_level, self._slice_size)

    def _held(self, level: int, fits: NDArray[np.bool_], *, must: bool) -> Rows:
        """The domains that fit and where the team may be, given where some of it runs."""
        codes = [code for code in self.tree.codes[level][self._running].tolist() if code != NO_DOMAIN]
        if codes:
            there = sorted(set(codes), key=lambda code: (-codes.count(code), self.tree.first_rank[level].item(code)))
            # It may have been split: then the larger part decides, where it must be together.
            return np.array([code for code in there[:1] if fits[code] and (must or len(there) == 1)], np.int64)
        return fits.nonzero()[0]

    def _ordered(self, level: int, sums: dict[Charge, Counts], domains: Rows) -> list[int]:
        if len(domains) < 2:
            found: list[int] = domains.tolist()
            return found
        tree = self.tree
        capacity = sum((each.take(domains) for each in sums.values()), np.zeros(len(domains), np.int64))
        nominated = ~np.isin(domains, tree.codes[level][self._nominated])
        left = np.ones(len(domains), np.bool_) if self.home is None else domains != tree.codes[level].item(self.home)
        breadth = self._breadth(level, domains)
        around = self._around(level, domains)
        order = np.lexsort((tree.first_rank[level].take(domains), capacity, *around, breadth, left, nominated))
        chosen: list[int] = domains[order].tolist()
        return chosen

    def _around(self, level: int, domains: Rows) -> list[Counts]:
        """The places of the domains around these in a walk of the tree, for `lexsort`: the outermost last.

        At each level the domain with the least capacity comes first, then the one with the first node."""
        tree = self.tree
        firsts = np.array([tree.rows_of(level, domain)[0] for domain in domains.tolist()], np.int64)
        keys: list[Counts] = []
        for outer in range(level - 1, -1, -1):
            codes = tree.codes[outer].take(firsts)
            if (codes == codes[0]).all():
                continue
            capacity = np.zeros(len(tree.first_rank[outer]), np.int64)
            for each in self._capacities.values():
                capacity += tree.sums(outer, self._countable(each, outer))
            keys += [tree.first_rank[outer].take(codes), capacity.take(codes)]
        return keys

    def _row_before(self, cluster: Cluster, want: PodsToPlace) -> int | None:
        """Of the nodes where it ran, the latest that is still there and has the levels that matter."""
        if not self.tree.levels:
            return None
        codes = self.tree.codes[max(self.required, 0)]
        rows = (cluster.row_of.get(node) for node in want.was_on)
        return next((row for row in rows if row is not None and codes[row] != NO_DOMAIN), None)

    def _inside_former(self, level: int) -> NDArray[np.bool_]:
        """Per domain of a level, whether it is inside the required domain where the team ran before."""
        tree = self.tree
        inside = np.zeros(len(tree.first_rank[level]), np.bool_)
        if self.home is not None:
            codes = tree.codes[level].take(tree.rows_of(self.required, tree.codes[self.required].item(self.home)))
            inside[codes[codes != NO_DOMAIN]] = True
        return inside

    def _breadth(self, level: int, domains: Rows) -> Counts:
        """Over how many domains of the preferred level the commonest ask would spread in each."""
        breadth = np.zeros(len(domains), np.int64)
        tree, inside = self.tree, max(self.preferred, self.required)
        if level >= inside or not self._loads:
            return breadth
        load = max(self._loads, key=lambda load: load.need)
        capacity = sum(self._capacities[charge] for charge in load.asks)
        inner = tree.sums(inside, np.asarray(capacity))
        firsts = np.array([tree.rows_of(inside, code)[0] for code in range(len(inner))], np.int64)
        around = tree.codes[level].take(firsts)
        for at, domain in enumerate(domains.tolist()):
            largest_first = -np.sort(-inner[around == domain])
            breadth[at] = np.searchsorted(np.cumsum(largest_first), load.need) + 1
        return breadth

    def _countable(self, capacity: Counts, level: int) -> Counts:
        if level > self._slice_level:
            return capacity
        return whole_slices(self.tree, capacity, self._slice_size, self._slice_level)

    def _in_whole_slices(self, need: int, level: int) -> int:
        return need if level > self._slice_level else need // self._slice_size * self._slice_size

    def _inside(self, capacity: Counts) -> Counts:
        """Room only among the nodes that may be used at all."""
        if self._outer.rows is None:
            return capacity
        inside = np.zeros_like(capacity)
        inside[self._outer.rows] = capacity.take(self._outer.rows)
        return inside
