"""Pods take the places that ghosts kept for them, each its own, and no gang takes half of them.

A pod hardly ever asks for exactly what its template said: the API server adds tolerations, webhooks add what they like.
So its place is tried like any place, with the ghost out of the way, and taken where the pod can be there. One that
cannot be goes wherever it fits; the pods of a gang do so together. What fits nowhere stands in line like any pod.

A pod that has an index gets the place of that number: ranks are where the admission wants them.

Promises: between a ghost's leaving and the pod's coming nobody else is asked; a ghost leaves for a pod only.

Rejected: putting the pods in line with a promise of their nodes. Whoever has the higher priority is asked before them,
and takes the room that was proven for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from shoal.controllers.queues.ghosts import Ghost, Ghosts
from shoal.controllers.queues.ranks import Ranks
from shoal.engine.asks import Ask
from shoal.engine.fitter import Fitter
from shoal.engine.gangs.attempt import is_running, place_gang
from shoal.engine.gangs.members import Gang
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.plan import Place
from shoal.engine.reasons import Code

Comer = tuple[str, str]
"""A pod that stands in line, and its pod set where it says so."""


class _Pair(msgspec.Struct, frozen=True):
    pod: str
    ghost: Ghost


class HandOver:
    """One of them, for pods of one workload."""

    def __init__(self, placement: Placement, ghosts: Ghosts) -> None:
        self._cluster = placement.cluster
        self._ghosts = ghosts
        self._ledger = Ledger(self._cluster)
        self._fitter = Fitter(placement, self._ledger, 0)

    def do(self, comers: Sequence[Comer], ghosts: Iterable[Ghost]) -> list[Place]:
        """The pods that have a place now."""
        pending, cluster = self._cluster.pending, self._cluster
        companies = dict[str, list[_Pair]]()
        for pair in self._paired(comers, list(ghosts)):
            # Whoever is alone is a company of his own.
            companies.setdefault(pending[pair.pod].who.group or f"#{pair.pod}", []).append(pair)
        try:
            for group, pairs in companies.items():
                gang = cluster.gangs.find(group)
                if not self._place_at_ghosts(pairs, gang):
                    self._place_elsewhere(pairs, gang)
        except Exception:
            # Half of a trial is none: the ghosts hold their places as before.
            self._ledger.rollback()
            raise
        placed = [
            Place(pod, cluster.names[cluster.pods[pod].row], cluster.pods[pod].grant)
            for pod in self._ledger.placed_since(0)
        ]
        self._ledger.commit()
        for pairs in companies.values():
            for pair in pairs:
                self._ghosts.drop(pair.ghost.workload, [pair.ghost.key])
        return placed

    # Inside

    def _paired(self, comers: Sequence[Comer], left: list[Ghost]) -> Iterator[_Pair]:
        """Who has an index comes first, and gets the place of that number: the others can take any."""
        ranks = self._ghosts.ranks(left[0].workload) if left else Ranks(None)
        numbered = {(ghost.pod_set, ghost.number): ghost for ghost in left}
        others = []
        for pod, pod_set in comers:
            rank = ranks.of(pod_set, dict(self._cluster.pending[pod].who.traits.labels))
            own = numbered.pop((pod_set, rank), None) if rank is not None else None
            if own is not None:
                left.remove(own)
                yield _Pair(pod, own)
            else:
                others.append((pod, pod_set))
        for pod, pod_set in others:
            ghost = self._choose(self._cluster.pending[pod].charge.ask, pod_set, left)
            if ghost is not None:
                left.remove(ghost)
                yield _Pair(pod, ghost)

    def _choose(self, ask: Ask, pod_set: str, left: list[Ghost]) -> Ghost | None:
        """One that asks for the same, of its pod set."""
        mine = [ghost for ghost in left if not pod_set or ghost.pod_set == pod_set]
        for ghost in mine:
            holding = self._ghosts.holding(ghost.key)
            if holding is not None and _amounts(holding.charge.ask) == _amounts(ask):
                return ghost
        return mine[0] if mine else None

    def _place_at_ghosts(self, pairs: list[_Pair], gang: Gang | None) -> bool:
        mark = self._ledger.mark()
        for pair in pairs:
            holding = self._ghosts.holding(pair.ghost.key)
            if holding is None:
                break
            self._ledger.evict(pair.ghost.key)
            if not self._fitter.pod(pair.pod, np.array([holding.row])):
                break
        else:
            if self._is_whole(gang):
                return True
        self._ledger.rollback(mark)
        return False

    def _place_elsewhere(self, pairs: list[_Pair], gang: Gang | None) -> None:
        """Their places are not for them: all of these are free, and each goes where it can."""
        for pair in pairs:
            if self._ghosts.holding(pair.ghost.key) is not None:
                self._ledger.evict(pair.ghost.key)
        if gang is None:
            for pair in pairs:
                self._fitter.pod(pair.pod)
            return
        while any(pair.pod in self._cluster.pending for pair in pairs):
            if place_gang(self._fitter, gang) is not Code.PLACED:
                return

    def _is_whole(self, gang: Gang | None) -> bool:
        """Whether the gang has what it needs by now, with pods beside that had no place kept."""
        if gang is None or gang.facts is None or is_running(self._cluster, gang):
            return True
        return place_gang(self._fitter, gang) is Code.PLACED


def _amounts(ask: Ask) -> tuple[object, ...]:
    return ask.requests, ask.devices, ask.gpu_models
