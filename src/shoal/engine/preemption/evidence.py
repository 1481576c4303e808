"""Explains why preemption does not help, and what would: computed on request, and tried on the ledger.

The named rule is the first without which preemption would have helped, from the mildest to the hardest: a minimum
runtime, a budget, priority. What would help is the least to be freed, whatever pods hold it: an answer for people, who
can talk to the owners of pods that may not be preempted. Only the nodes that come nearest are asked, so that the answer
does not take longer on a larger fleet; the statements about them are true, but elsewhere there may be less to free.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

import msgspec
import numpy as np

from shoal.engine import facts
from shoal.engine.asks import Ask
from shoal.engine.charges import Charge
from shoal.engine.fitter import Fitter
from shoal.engine.preemption.candidates import Candidates, Mask, is_willing
from shoal.engine.preemption.capacity_bounds import FeasibleRows, Rows
from shoal.engine.preemption.policy import Order, VictimPolicy
from shoal.engine.preemption.preemptor import Preemptor
from shoal.engine.preemption.search import Search
from shoal.engine.preemption.victims import Victims
from shoal.engine.reasons import Code

T = TypeVar("T")

GPU_COMPUTE = "GPU compute"
"""Counted in thousandths of one GPU."""

_NEAREST = 64
"""Nodes asked about one pod; for a gang, two more for each of its pods."""


class NodeShortage(msgspec.Struct, frozen=True):
    """Room to be made on one node."""

    node: str
    amounts: tuple[tuple[str, int], ...]
    """(resource, amount in the engine's units) to be freed at least."""
    pods: tuple[str, ...]
    """Whose end would free it."""
    ports: tuple[int, ...] = ()
    """Host ports that these pods hold, to be freed as well."""


def hindrance(fitter: Fitter, claim: Preemptor, policy: VictimPolicy, now_s: float) -> Code | None:
    """Why preemption does not help; None when it does, or when the claimant fits. The facts stay as they are."""
    return Code.NEVER_PREEMPTS if not claim.preempts else PreemptionTrials(fitter, claim, now_s).hindrance(policy)


def what_would_help(
    fitter: Fitter, claim: Preemptor, now_s: float, spared: Collection[str] = ()
) -> tuple[NodeShortage, ...]:
    """The least to be freed so that the claimant fits; empty when it fits, or when nothing of the kind would help.
    `spared`: pods that must not end for it, such as those of its own job."""
    return PreemptionTrials(fitter, claim, now_s, spared).what_would_help()


class PreemptionTrials:
    """Questions about one claimant, each on a trial that leaves no trace."""

    def __init__(self, fitter: Fitter, claim: Preemptor, now_s: float, spared: Collection[str] = ()) -> None:
        self._fitter = fitter
        self._cluster = fitter.cluster
        self._claim = claim
        self._own = claim.name if claim.gang else ""
        self._now_s = now_s
        self._spared = spared
        self._reaches = FeasibleRows(fitter.cluster)

    def hindrance(self, policy: VictimPolicy) -> Code | None:
        return self._once_all_have_left(lambda: self._hindrance(policy))

    def what_would_help(self) -> tuple[NodeShortage, ...]:
        return self._once_all_have_left(self._help)

    def _hindrance(self, policy: VictimPolicy) -> Code | None:
        claim, cluster = self._claim, self._cluster
        if claim.fits(self._fitter):
            return None
        near = self._near()
        willing = [pod for pod in near if is_willing(cluster, cluster.pods[pod])]
        at_any_age = msgspec.structs.replace(policy, min_runtime_s=float("-inf"))
        old_enough = Candidates(cluster, policy, self._now_s, pods=willing)
        all_willing = Candidates(cluster, at_any_age, self._now_s, pods=willing)
        all_candidates = Candidates(cluster, at_any_age, self._now_s, pods=near)
        breaks = policy.may_break_budgets
        if self._would_help(old_enough, self._lower(old_enough), breaking=breaks):
            return None
        lower = self._lower(all_willing)
        if self._would_help(all_willing, lower, breaking=breaks):
            return Code.TOO_EARLY
        if self._would_help(all_willing, lower, breaking=True):
            return Code.BUDGETS
        if self._would_help(all_candidates, all_candidates.eligible(None, None, self._own), breaking=True):
            return Code.ONLY_HIGHER
        return Code.NOT_ENOUGH if lower.any() else Code.NO_VICTIMS

    def _help(self) -> tuple[NodeShortage, ...]:
        if self._claim.fits(self._fitter):
            return ()
        pods = [pod for pod in self._near() if pod not in self._spared]
        policy = VictimPolicy(Order.FEWEST_GPUS)
        candidates = Candidates(self._cluster, policy, self._now_s, pods=pods, each_alone=True)
        # Pods of lower priority first: pods before the preemptor are not removed for it.
        lower = self._lower(candidates)
        found = self._search(candidates, lower, breaking=True) if lower.any() else None
        if found is None:
            found = self._search(candidates, candidates.eligible(None, None), breaking=True)
        return () if found is None else self._freed(candidates, found)

    def _freed(self, candidates: Candidates, found: list[int]) -> tuple[NodeShortage, ...]:
        """What the claimant takes on each node beyond what is free there."""
        cluster, ledger = self._cluster, self._fitter.ledger
        rows = sorted(set(candidates.row[found].tolist()), key=lambda row: int(cluster.rank[row]))
        lacking = {row: -np.maximum(cluster.free[row], 0) for row in rows}
        held = {row: [cluster.pods[pod].ask for pod in self._of_row(candidates, found, row)] for row in rows}
        ports: dict[int, set[int]] = {row: set() for row in rows}
        for index in found:
            ledger.evict(candidates.keys[index])
        mark = ledger.mark()
        self._claim.place(self._fitter)
        for pod in ledger.placed_since(mark):
            allocation = cluster.pods[pod]
            if allocation.row in lacking:
                lacking[allocation.row] += allocation.charge.taken
                ports[allocation.row] |= _shared_ports(allocation.ask, held[allocation.row])
        names = {facts.GPU_MILLI: GPU_COMPUTE, **cluster.resources.names}
        return tuple(
            NodeShortage(
                cluster.names[row],
                tuple((name, int(lacking[row][column])) for column, name in names.items() if lacking[row][column] > 0),
                self._of_row(candidates, found, row),
                tuple(sorted(ports[row])),
            )
            for row in rows
        )

    def _of_row(self, candidates: Candidates, found: list[int], row: int) -> tuple[str, ...]:
        return tuple(candidates.keys[index] for index in found if candidates.row.item(index) == row)

    def _lower(self, candidates: Candidates) -> Mask:
        return candidates.eligible(self._claim.priority, self._claim.queue, self._own)

    def _would_help(self, candidates: Candidates, eligible: Mask, *, breaking: bool) -> bool:
        return bool(eligible.any()) and self._search(candidates, eligible, breaking=breaking) is not None

    def _search(self, candidates: Candidates, eligible: Mask, *, breaking: bool) -> list[int] | None:
        victims = Victims(self._cluster, self._fitter.ledger, candidates)
        return Search(self._fitter, victims, self._claim, self._reaches).find(eligible, may_break=breaking)

    def _once_all_have_left(self, asked: Callable[[], T]) -> T:
        ledger = self._fitter.ledger
        mark = ledger.mark()
        for pod in list(self._cluster.terminating):
            ledger.evict(pod)
        try:
            return asked()
        finally:
            ledger.rollback(mark)

    def _near(self) -> list[str]:
        """Pods on the nodes that come nearest to having room, and the rest of their gangs, but not the claimant's."""
        cluster = self._cluster
        pods: dict[str, None] = {}
        for charge in {cluster.pending[pod].charge for pod in self._claim.pods}:
            for row in self._nearest(charge).tolist():
                pods.update(dict.fromkeys(cluster.pods_on(row)))
        for pod in list(pods):
            gang = cluster.gangs.find(cluster.pods[pod].who.group)
            if gang is not None:
                pods.update(dict.fromkeys(gang.running))
        return [pod for pod in pods if not self._own or cluster.pods[pod].who.group != self._own]

    def _nearest(self, charge: Charge) -> Rows:
        """Rows that could hold such a pod if they were empty, those that lack least in proportion."""
        cluster = self._cluster
        rows = self._reaches.of(charge)
        columns = (charge.need > 0).nonzero()[0]
        least = charge.need[columns]
        rows = rows[(cluster.total[np.ix_(rows, columns)] >= least).all(axis=1)]
        gap = (np.maximum(least - cluster.free[np.ix_(rows, columns)], 0) / least).sum(axis=1)
        most = _NEAREST + 2 * len(self._claim.pods)
        nearest: Rows = np.sort(rows[np.lexsort((cluster.rank[rows], gap))[:most]])
        return nearest


def _shared_ports(ask: Ask, others: Iterable[Ask]) -> set[int]:
    """Host ports that it asks for and one of the others has."""
    there = [port for other in others for port in other.host_ports]
    return {port.port for port in ask.host_ports if any(port.conflicts(each) for each in there)}
