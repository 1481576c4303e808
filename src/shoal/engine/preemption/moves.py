"""Finds pods that move so that a preemptor fits, like victims, but only if each of them finds a place elsewhere.

The fewest pods without which the claimant fits are taken off, the claimant is placed, and they are placed again. Those
that find no place show what cannot be moved (where none of its kind found one, the whole kind), and the search goes on
without them. Rejected: trying every pair of pods and targets, which is a search over the square of the fleet.
"""

from __future__ import annotations

import numpy as np

from shoal.engine import facts
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.fitter import Fitter
from shoal.engine.gangs.attempt import place_gang
from shoal.engine.pending import new_waiting
from shoal.engine.plan import Move
from shoal.engine.preemption.candidates import Mask
from shoal.engine.preemption.capacity_bounds import FeasibleRows
from shoal.engine.preemption.preemptor import Preemptor
from shoal.engine.preemption.search import Search
from shoal.engine.preemption.victims import Victims
from shoal.engine.reasons import Code

_MOST_TRIES = 16

Destination = tuple[str, int, DeviceGrant | None]


class Moves:
    """The search for one claimant."""

    def __init__(
        self, fitter: Fitter, victims: Victims, claim: Preemptor, reaches: FeasibleRows, preemptors: list[Preemptor]
    ) -> None:
        """`preemptors` wait as well and go before those that move: what they could seize on the way is not given up."""
        self._fitter = fitter
        self._cluster = fitter.cluster
        self._victims = victims
        self._claim = claim
        self._reaches = reaches
        self._preemptors = preemptors

    def find(self, eligible: Mask, most: int) -> tuple[list[Move], list[Destination]] | None:
        """Who moves where, and where the claimant goes; all of that stays on the ledger."""
        victims = self._victims
        movable = eligible.copy()
        for _ in range(_MOST_TRIES):
            going = Search(self._fitter, victims, self._claim, self._reaches).find(movable)
            if going is None or len(going) > most:
                return None
            found = self._moved(going)
            if isinstance(found, tuple):
                return found
            for index in found:
                movable[index] = False
        return None

    def _moved(self, going: list[int]) -> tuple[list[Move], list[Destination]] | list[int]:
        """The moves, or who could not be moved."""
        victims, cluster, ledger = self._victims, self._cluster, self._fitter.ledger
        keys = [victims.candidates.keys[index] for index in going]
        before = {key: cluster.pods[key] for key in keys}
        victims.take(going)
        if any(preemptor.fits(self._fitter) for preemptor in self._preemptors):
            victims.spare(going)
            return going
        mark = ledger.mark()
        if not self._claim.place(self._fitter):
            victims.spare(going)
            return going
        destinations = [(pod, cluster.pods[pod].row, cluster.pods[pod].grant) for pod in ledger.placed_since(mark)]
        for key in keys:
            allocation = before[key]
            waiting = new_waiting(allocation.charge, allocation.priority, allocation.turn or 0, who=allocation.who)
            cluster.pending.restore(key, waiting)
        self._place_again(sorted(keys, key=lambda key: -before[key].charge.gpu_milli))
        stuck = [index for index, key in zip(going, keys, strict=True) if key not in cluster.pods]
        if not stuck:
            names = cluster.names
            moves = []
            for key in keys:
                now = cluster.pods[key]
                moves.append(Move(key, names[before[key].row], names[now.row], now.grant, self._claim.name))
            return moves, destinations
        moved_kinds = {before[key].charge for key in keys if key in cluster.pods}
        ledger.rollback(mark)
        for key in keys:
            cluster.pending.remove(key)
        victims.spare(going)
        stuck_kinds = {before[victims.candidates.keys[index]].charge for index in stuck} - moved_kinds
        return stuck + [
            index
            for index, key in enumerate(victims.candidates.keys)
            if stuck_kinds and not victims.candidates.evicted[index] and cluster.pods[key].charge in stuck_kinds
        ]

    def _place_again(self, keys: list[str]) -> None:
        """Pods alone where they fit; gangs their own way, as close together as they wish."""
        for key in keys:
            if key not in self._cluster.pending:
                continue
            gang = self._cluster.gangs.find(self._cluster.pending[key].who.group)
            if gang is None or gang.facts is None:
                self._fitter.pod(key)
                continue
            while key in self._cluster.pending and place_gang(self._fitter, gang) is Code.PLACED:
                pass


def could_be_gathered(cluster: Cluster, claim: Preemptor) -> bool:
    """Whether all nodes together have free what the claimant asks: moving frees nothing."""
    free = cluster.free[: cluster.rows][cluster.alive[: cluster.rows]]
    asked = np.zeros(cluster.width, np.int64)
    for pod in claim.pods:
        asked += cluster.pending[pod].charge.taken
    asked[[facts.CPU_SCORED, facts.MEMORY_SCORED]] = 0
    if cluster.devices.odd:
        # Cut or replicated devices are not conserved: what is free of them depends on who is where.
        asked[[facts.GPU_MILLI, *range(facts.FIRST_EXTENDED, len(asked))]] = 0
    return bool((np.maximum(free, 0).sum(axis=0) >= asked)[asked > 0].all())
