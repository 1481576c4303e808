"""Places the pods of one team on one set of nodes, all or none, on the ledger.

Where closeness matters, equal pods are shared out over as few domains and hosts as possible (see `topology.fewest`);
where it does not, each goes where it would go alone. Pods that ask for more come first, of equals the ones with fewer
nodes to choose from. When an ask does not fit behind the others, it is tried again before them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.charges import Charge
from shoal.engine.fitter import Fitter, Rows
from shoal.engine.gangs.candidate_domains import CandidateDomain
from shoal.engine.gangs.next_pods import GangDemand, PodsToPlace
from shoal.engine.gangs.node_capacity import Counts, capacity_now
from shoal.engine.ledger import Ledger
from shoal.engine.topology.fewest import Shares, Sharing
from shoal.engine.topology.tree import NO_DOMAIN, Tree

_MOST_ORDERS = 8
"""So often are asks reordered before a set of nodes is given up."""

Batch = tuple[Charge, list[str]]


class TeamPlacement:
    """Fills for one gang, within one trial."""

    __slots__ = ("_all_rows", "_fitter", "_ledger", "_running", "_since")

    def __init__(self, fitter: Fitter, running: list[str]) -> None:
        self._fitter = fitter
        self._ledger: Ledger = fitter.ledger
        self._running = [fitter.cluster.pods[pod].row for pod in running]
        """Rows where the gang is already."""
        self._since = fitter.ledger.mark()
        self._all_rows = fitter.cluster.all_rows()

    def fill(self, want: PodsToPlace, site: CandidateDomain) -> bool:
        """Place the pods of a team itself, without its parts; a failure leaves no trace."""
        batches, choices = self._sorted_out(want)
        mark = self._ledger.mark()
        for _ in range(_MOST_ORDERS):
            stuck = next((at for at, batch in enumerate(batches) if not self._batch(batch, want, site)), -1)
            if stuck < 0 and all(self._choice(choice, site) for choice in choices):
                return True
            self._ledger.rollback(mark)
            if stuck <= 0:
                return False
            batches.insert(0, batches.pop(stuck))
        return False

    def _sorted_out(self, want: PodsToPlace) -> tuple[list[Batch], list[GangDemand]]:
        """Equal pods that are all needed, in the order in which they are tried; and demands that leave a choice."""
        pending = self._fitter.cluster.pending
        equal: dict[Charge, list[str]] = {}
        choices = []
        for demand in want.demands:
            asks = {pending[pod].charge for pod in demand.pods}
            if len(asks) > 1 and demand.need < len(demand.pods):
                choices.append(demand)
                continue
            for pod in demand.pods[: demand.need]:
                equal.setdefault(pending[pod].charge, []).append(pod)
        if len(equal) < 2:
            return list(equal.items()), choices
        return sorted(equal.items(), key=lambda batch: self._weight(batch[0])), choices

    def _weight(self, charge: Charge) -> tuple[float, int]:
        """Sorts the asks that take most of what the fleet has of something first, then those with fewest nodes."""
        cluster = self._fitter.cluster
        width = len(charge.need)
        fleet = np.maximum(cluster.total[: cluster.rows, :width].sum(axis=0), 1)
        asked = np.maximum(charge.need, charge.taken[:width])
        return -float((asked / fleet).max()), len(self._fitter.placement.shape(charge).feasible())

    def _choice(self, demand: GangDemand, site: CandidateDomain) -> bool:
        """So many of different pods as are needed, in order, leaving out those that do not fit."""
        pending = self._fitter.cluster.pending
        need = demand.need
        stuck: set[Charge] = set()
        for pod in demand.pods:
            if need == 0:
                break
            charge = pending[pod].charge
            if charge in stuck:
                continue
            if self._batch((charge, [pod]), None, site):
                need -= 1
            else:
                stuck.add(charge)
        return need == 0

    def most(self, want: PodsToPlace, site: CandidateDomain) -> int:
        """Place as many pods of a team and its parts as fit, whatever else they need; returns how many."""
        pending = self._fitter.cluster.pending
        equal: dict[Charge, list[str]] = {}
        for pod in want.all_pods():
            equal.setdefault(pending[pod].charge, []).append(pod)
        # The smallest first, so that it is many.
        charges = sorted(equal, key=self._weight, reverse=True)
        return sum(self._put(charge, equal[charge], want, site, partly=True) for charge in charges)

    def _batch(self, batch: Batch, want: PodsToPlace | None, site: CandidateDomain) -> bool:
        """Equal pods, all of them; a failure leaves some of them placed."""
        charge, pods = batch
        return self._put(charge, pods, want, site) == len(pods)

    def _put(
        self, charge: Charge, pods: list[str], want: PodsToPlace | None, site: CandidateDomain, *, partly: bool = False
    ) -> int:
        """Place equal pods until one finds no place, and without `partly` give up as soon as that is clear."""
        pod = self._fitter.pod
        if site.tree is None:
            return next((placed for placed, key in enumerate(pods) if not pod(key, site.rows)), len(pods))
        left = pods[::-1]
        full: list[int] = []
        while left:
            capacity = self._capacity_of(charge, site, full)
            shares = self._shares(len(left), charge, capacity, site, want)
            shared = sum(count for _, count in shares)
            if shared == 0 or (shared < len(left) and not partly):
                break
            for row, count in shares:
                here = np.array([row])
                for _ in range(count):
                    if not pod(left[-1], here):
                        full.append(row)
                        break
                    left.pop()
                if full and full[-1] == row:
                    # The count was too high there: the rest is shared out anew.
                    break
        return len(pods) - len(left)

    def _capacity_of(self, charge: Charge, site: CandidateDomain, full: list[int]) -> Counts:
        capacity = capacity_now(self._fitter.placement, charge)
        if site.rows is not None:
            inside = np.zeros_like(capacity)
            inside[site.rows] = capacity.take(site.rows)
            capacity = inside
        capacity[full] = 0
        return capacity

    def _shares(
        self, pods: int, charge: Charge, capacity: Counts, site: CandidateDomain, want: PodsToPlace | None
    ) -> Shares:
        tree = site.tree
        assert tree is not None  # noqa: S101 - the caller's case
        rows = self._all_rows if site.rows is None else site.rows
        order = -self._fitter.placement.shape(charge).keys()
        used = self._used(capacity)
        if site.slice_level < site.level:
            return Sharing(tree, capacity, order, used).over(pods, rows, site.level)
        shares: Shares = []
        for count, inside in self._begun_slices(pods, tree, rows, site, want):
            shares += Sharing(tree, capacity, order, used).over(count, inside, site.slice_level + 1)
            pods -= count
        capacity = _after(capacity, shares)
        # What is left over from whole slices is a smaller slice, together as well.
        rest = pods % site.slice_size
        for count, size in ((pods - rest, site.slice_size), (rest, rest)):
            if count:
                sharing = Sharing(tree, capacity, order, used).in_slices(size, site.slice_level)
                shares += (more := sharing.over(count, rows, site.level))
                capacity = _after(capacity, more)
        return shares

    def _begun_slices(
        self, pods: int, tree: Tree, rows: Rows, site: CandidateDomain, want: PodsToPlace | None
    ) -> list[tuple[int, Rows]]:
        """Slices of pods that run which have lost some: (pods missing, the nodes of its domain)."""
        level = site.slice_level
        counts: dict[int, int] = {}
        for pod in want.running if want is not None else ():
            code = tree.codes[level].item(self._fitter.cluster.pods[pod].row)
            counts[code] = counts.get(code, 0) + 1
        begun = []
        for code, count in sorted(counts.items(), key=lambda item: tree.first_rank[level].item(item[0])):
            missing = min(-count % site.slice_size, pods)
            if code != NO_DOMAIN and missing:
                begun.append((missing, np.intersect1d(tree.rows_of(level, code), rows)))
                pods -= missing
        return begun

    def _used(self, capacity: Counts) -> NDArray[np.bool_]:
        """Rows where the gang is: its pods that run, and those placed before in this trial."""
        pods = self._fitter.cluster.pods
        used = np.zeros(len(capacity), np.bool_)
        used[self._running] = True
        used[[pods[pod].row for pod in self._ledger.placed_since(self._since)]] = True
        return used


def _after(capacity: Counts, shares: Shares) -> Counts:
    left = capacity.copy()
    for row, count in shares:
        left[row] -= count
    return left
