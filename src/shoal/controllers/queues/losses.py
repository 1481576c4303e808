"""Places of admitted work whose pods went, or could not be bound: kept for those that come in their stead.

Who is admitted holds its quota until it ends, and its job replaces a pod that was lost. Between the end of the one and
the arrival of the other somebody else would take the room, and the workload would hold quota and wait. So a ghost takes
the place in the round that hears of the loss.

Promises: a place is kept for five minutes from its loss, and a successor of this process keeps it as long, as far as
the Workload says since when its pods are not all there; after a pod that did its part for a moment only, since most
need no successor. A pod that cannot be bound comes back to its place once; if it fails again it stands in line.

Rejected: giving room back to the line with the replacement first in it. It is not there yet, and nobody knows when.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import msgspec

from shoal.controllers.brain.parts import Sights
from shoal.controllers.queues.arrivals import Arrivals
from shoal.controllers.queues.book import Book
from shoal.controllers.queues.ghosts import KEPT_S, Ghosts
from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, PodBound, PodGone, PodRejected
from shoal.engine.placement import Placement
from shoal.engine.pods import Holding
from shoal.engine.queues.held import Held

NEXT_S = 10.0
"""So long a place is kept after a pod that succeeded: a job may have more to complete than it runs at a time."""


class _Loss(msgspec.Struct, frozen=True):
    pod_set: str
    node: str
    holding: Holding
    kept_s: float


class Losses:
    def __init__(self, book: Book, arrivals: Arrivals, sights: Sights, cluster: Cluster) -> None:
        self._book = book
        self._arrivals = arrivals
        self._sights = sights
        self._cluster = cluster
        self._lost: dict[str, list[_Loss]] = {}
        """By workload, since they were last kept."""
        self._stirred: dict[str, None] = {}
        """Workloads about which something changed in this round."""
        self._failed: dict[str, None] = {}
        """Pods that could not be bound, and were not since."""
        self._until_s: dict[str, dict[str, float]] = {}
        """Workload -> ghost that took the place of a pod -> until when; without a name what was lost before."""

    def hear(self, event: Event) -> None:
        """Before whoever forgets whose pod it was."""
        if not isinstance(event, PodBound | PodGone | PodRejected):
            return
        workload, pod_set = self._arrivals.belonging(event.key)
        self.stir(workload)
        is_failed = event.key in self._failed
        if not isinstance(event, PodRejected):
            self._failed.pop(event.key, None)
        holding = self._cluster.pods.get(event.key)
        if isinstance(event, PodBound) or holding is None or not workload or holding.promised:
            return
        kept_s = KEPT_S
        if isinstance(event, PodGone):
            sight = self._sights.sight(event.key)
            kept_s = NEXT_S if sight is not None and sight.has_succeeded else KEPT_S
        elif is_failed:
            return
        else:
            self._failed[event.key] = None
        node = self._cluster.names[holding.row]
        self._lost.setdefault(workload, []).append(_Loss(pod_set, node, holding, kept_s))

    def stir(self, workload: str) -> None:
        """Something about it has changed."""
        if workload in self._until_s:
            self._stirred[workload] = None

    def since(self, workload: str, moment_s: float) -> None:
        """It lacks pods from then on, as it says itself."""
        self._until_s.setdefault(workload, {})[""] = moment_s + KEPT_S

    def keep(self, ghosts: Ghosts, placement: Placement, now_s: float) -> Iterator[str]:
        """Keep what was lost since the last call; those who need a place elsewhere."""
        lost, self._lost = self._lost, {}
        for workload, losses in lost.items():
            held = self._book.held(workload)
            if held is None or held.evicted or not held.facts.admitted:
                continue
            missing, until_s = self._missing(held, ghosts), self._until_s.setdefault(workload, {})
            self._stirred[workload] = None
            for loss in losses:
                if not missing.takes(loss.pod_set):
                    continue
                ghost = ghosts.stand_in(workload, loss.pod_set, loss.node, loss.holding, placement)
                if ghost:
                    until_s[ghost] = now_s + loss.kept_s
                elif loss.kept_s == KEPT_S:
                    until_s[""] = now_s + KEPT_S
                    yield workload

    def tidy(self, ghosts: Ghosts, now_s: float) -> None:
        """Nothing is kept any longer than it is needed."""
        for workload, until_s in list(self._until_s.items()):
            held = self._book.held(workload)
            if workload in self._stirred and held is not None:
                self._let_spare_ones_go(held, until_s, ghosts)
            for ghost, moment_s in list(until_s.items()):
                if held is None or held.evicted or moment_s <= now_s:
                    del until_s[ghost]
                    ghosts.drop(workload, [ghost])
            if not until_s:
                del self._until_s[workload]

    def _let_spare_ones_go(self, held: Held, until_s: dict[str, float], ghosts: Ghosts) -> None:
        kept, missing = frozenset(ghosts.keys(held.key)), self._missing(held, ghosts)
        for ghost in [ghost for ghost in until_s if ghost]:
            if ghost not in kept or missing.gives_back(ghost.rsplit("#", 2)[1]):
                del until_s[ghost]
                ghosts.drop(held.key, [ghost])

    def take_stirred(self) -> list[str]:
        """Workloads whose pods may take a place of these by now, since it was asked last."""
        stirred, self._stirred = self._stirred, {}
        return list(stirred)

    def forget_all(self) -> None:
        """Nothing is kept for anybody."""
        self._lost.clear()
        self._until_s.clear()
        self._stirred.clear()

    def until_s(self, workload: str) -> float:
        """Until when places are kept for it on account of what it lost."""
        return max(self._until_s.get(workload, {}).values(), default=0.0)

    def moments(self) -> list[float]:
        return [moment_s for each in self._until_s.values() for moment_s in each.values()]

    # Inside

    def _missing(self, held: Held, ghosts: Ghosts) -> _Missing:
        counts = {each.name: each.count for each in held.admission.pod_sets}
        missing = Counter(counts)
        missing.subtract({name: count for name, count in held.facts.reclaimable.items() if name in counts})
        missing.subtract(self._arrivals.placed(held.key))
        missing.subtract(Counter(ghost.pod_set for ghost in ghosts.of(held.key)))
        return _Missing(missing, counts)


class _Missing:
    """How many places it has less than it was admitted with, by pod set; over all of them where a pod says none."""

    def __init__(self, by_set: Counter[str], known: Collection[str]) -> None:
        self._by_set = by_set
        self._known = known
        self._all = sum(by_set.values())

    def takes(self, pod_set: str) -> bool:
        """Whether it needs one more, which it then has."""
        return self._add(pod_set, -1) if self._of(pod_set) > 0 else False

    def gives_back(self, pod_set: str) -> bool:
        """Whether it has one too many, which it then has not."""
        return self._add(pod_set, 1) if self._of(pod_set) < 0 else False

    def _of(self, pod_set: str) -> int:
        return self._by_set[pod_set] if pod_set in self._known else self._all

    def _add(self, pod_set: str, number: int) -> bool:
        self._by_set[pod_set] += number
        self._all += number
        return True
