"""Swaps placeholders for the pods that arrived, each for one, and for the pods of a gang all or none.

A pod rarely requests exactly what its template said: the API server adds tolerations, and webhooks change fields. So
the placeholder is evicted in a trial and the pod is placed on its node if it fits there. A pod that does not fit there
is placed on any node; the pods of a gang are placed so together. A pod that fits nowhere stays pending like any pod.

A pod with an index gets the placeholder with its rank, so that ranks are in the domains that the admission intends.

Guarantees: no other pod is placed between the end of a placeholder and the placement of its pod; a placeholder is
dropped only for a pod.

Rejected: leaving the pods pending with a nominated node. Pods with higher priority are scheduled first and would take
the capacity that was proven for the gang.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from shoal.controllers.queues.placeholders.placeholder_pods import Placeholder, Placeholders
from shoal.controllers.queues.placeholders.pod_set_templates import PodRanks
from shoal.engine.asks import Ask
from shoal.engine.fitter import Fitter
from shoal.engine.gang_members import Gang
from shoal.engine.gangs.attempt import is_running, place_gang
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.plan import Place
from shoal.engine.reasons import Code

PendingPod = tuple[str, str]
"""A pending pod and its pod set, which is empty if the pod does not name one."""


class _Pair(msgspec.Struct, frozen=True):
    pod: str
    placeholder: Placeholder


class PlaceholderSwap:
    """One swap, for pods of one Workload."""

    def __init__(self, placement: Placement, placeholders: Placeholders) -> None:
        self._cluster = placement.cluster
        self._placeholders = placeholders
        self._ledger = Ledger(self._cluster)
        self._fitter = Fitter(placement, self._ledger, 0)

    def swap(self, pods: Sequence[PendingPod], placeholders: Iterable[Placeholder]) -> list[Place]:
        """Returns the pods that have a place now."""
        pending, cluster = self._cluster.pending, self._cluster
        groups = dict[str, list[_Pair]]()
        for pair in self._paired(pods, list(placeholders)):
            # A pod of no gang is a group by itself.
            groups.setdefault(pending[pair.pod].who.group or f"#{pair.pod}", []).append(pair)
        try:
            for group, pairs in groups.items():
                gang = cluster.gangs.find(group)
                if not self._place_at_placeholders(pairs, gang):
                    self._place_elsewhere(pairs, gang)
        except Exception:
            # The trial is incomplete: the placeholders keep their places.
            self._ledger.rollback()
            raise
        placed = [
            Place(pod, cluster.names[cluster.pods[pod].row], cluster.pods[pod].grant)
            for pod in self._ledger.placed_since(0)
        ]
        self._ledger.commit()
        for pairs in groups.values():
            for pair in pairs:
                self._placeholders.drop(pair.placeholder.workload, [pair.placeholder.key])
        return placed

    # internals

    def _paired(self, pods: Sequence[PendingPod], left: list[Placeholder]) -> Iterator[_Pair]:
        """Pods with an index come first and get the placeholder with that number; other pods can take any."""
        ranks = self._placeholders.ranks(left[0].workload) if left else PodRanks(None)
        numbered = {(placeholder.pod_set, placeholder.number): placeholder for placeholder in left}
        others = []
        for pod, pod_set in pods:
            rank = ranks.of(pod_set, dict(self._cluster.pending[pod].who.traits.labels))
            own = numbered.pop((pod_set, rank), None) if rank is not None else None
            if own is not None:
                left.remove(own)
                yield _Pair(pod, own)
            else:
                others.append((pod, pod_set))
        for pod, pod_set in others:
            placeholder = self._choose(self._cluster.pending[pod].charge.ask, pod_set, left)
            if placeholder is not None:
                left.remove(placeholder)
                yield _Pair(pod, placeholder)

    def _choose(self, ask: Ask, pod_set: str, left: list[Placeholder]) -> Placeholder | None:
        """A placeholder of the pod set, preferably one with the same requests."""
        candidates = [placeholder for placeholder in left if not pod_set or placeholder.pod_set == pod_set]
        for placeholder in candidates:
            allocation = self._placeholders.allocation(placeholder.key)
            if allocation is not None and _amounts(allocation.charge.ask) == _amounts(ask):
                return placeholder
        return candidates[0] if candidates else None

    def _place_at_placeholders(self, pairs: list[_Pair], gang: Gang | None) -> bool:
        mark = self._ledger.mark()
        for pair in pairs:
            allocation = self._placeholders.allocation(pair.placeholder.key)
            if allocation is None:
                break
            self._ledger.evict(pair.placeholder.key)
            if not self._fitter.pod(pair.pod, np.array([allocation.row])):
                break
        else:
            if self._is_whole(gang):
                return True
        self._ledger.rollback(mark)
        return False

    def _place_elsewhere(self, pairs: list[_Pair], gang: Gang | None) -> None:
        """The pods do not fit on the nodes of their placeholders: free all of these, and place the pods anywhere."""
        for pair in pairs:
            if self._placeholders.allocation(pair.placeholder.key) is not None:
                self._ledger.evict(pair.placeholder.key)
        if gang is None:
            for pair in pairs:
                self._fitter.pod(pair.pod)
            return
        while any(pair.pod in self._cluster.pending for pair in pairs):
            if place_gang(self._fitter, gang) is not Code.PLACED:
                return

    def _is_whole(self, gang: Gang | None) -> bool:
        """Whether the gang has its minimum now, including pods for which no place was kept."""
        if gang is None or gang.facts is None or is_running(self._cluster, gang):
            return True
        return place_gang(self._fitter, gang) is Code.PLACED


def _amounts(ask: Ask) -> tuple[object, ...]:
    return ask.requests, ask.devices, ask.gpu_models
