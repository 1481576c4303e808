"""Pods of queued workloads as they come: kept back until they take the places that were kept for them.

The pods of a workload take their places in one go, so that a gang is bound whole or not at all. Work that starts its
pods one after another gets on all the same: after a moment those that are there take theirs, but for members of gangs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import structs

from shoal.controllers.queues.ghosts import Ghost, Ghosts
from shoal.engine.events import Event, PodArrived, PodBound, PodGone
from shoal.engine.fitter import Fitter
from shoal.engine.intake import Intake
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.plan import Place
from shoal.store.watched.sights import PodSight

PATIENCE_S = 2.0


class Sights(Protocol):
    def sight(self, key: str) -> PodSight | None: ...


class Arrivals:
    def __init__(self, intake: Intake, placement: Placement, sights: Sights) -> None:
        self._intake = intake
        self._placement = placement
        self._sights = sights
        self._kept: dict[str, dict[str, PodArrived]] = {}
        """Workload -> pods that came and are not in the facts yet."""
        self._since: dict[str, float] = {}
        self._there: dict[str, dict[str, str]] = {}
        """Workload -> pods in the facts -> pod set."""
        self._workload_of: dict[str, tuple[str, str]] = {}
        """Pod -> workload and pod set."""

    def hear(self, event: Event, ghosts: Ghosts) -> bool:
        """Whether the pod is kept back."""
        if isinstance(event, PodArrived):
            return self._arrived(event)
        if isinstance(event, PodBound):
            self._bound(event, ghosts)
        elif isinstance(event, PodGone):
            self._gone(event.key)
        return False

    def present(self, workload: str) -> Mapping[str, int]:
        """Pods in the facts, by pod set."""
        counts: dict[str, int] = {}
        for pod_set in self._there.get(workload, {}).values():
            counts[pod_set] = counts.get(pod_set, 0) + 1
        return counts

    def there(self, workload: str) -> list[str]:
        return list(self._there.get(workload, ()))

    def workload_of(self, pod: str) -> str:
        """Empty for pods that are nobody's."""
        return self._workload_of.get(pod, ("", ""))[0]

    def waiting(self) -> list[str]:
        """Workloads of which pods are kept back."""
        return list(self._kept)

    def due_s(self, workload: str, now_s: float) -> float:
        """Until when the others of its pods are waited for."""
        return self._since.setdefault(workload, now_s) + PATIENCE_S

    def let_go(self, workload: str) -> None:
        """Nothing is kept for them: they stand in line like any pod."""
        self._since.pop(workload, None)
        for key, event in self._kept.pop(workload, {}).items():
            self._there.setdefault(workload, {})[key] = self._workload_of[key][1]
            self._intake.apply(event)

    def take(self, workload: str, ghosts: Ghosts, now_s: float) -> list[Place]:
        """The pods that take places now."""
        kept, left = self._kept[workload], ghosts.of(workload)
        is_late = now_s >= self.due_s(workload, now_s)
        ready = dict(kept) if len(kept) >= len(left) else {}
        if not ready and is_late:
            ready = {key: event for key, event in kept.items() if not event.who.group}
        if not ready:
            return []
        placed = self._take_places(workload, ready, left, ghosts)
        for key in ready:
            del kept[key]
            self._there.setdefault(workload, {})[key] = self._workload_of[key][1]
        if not kept:
            del self._kept[workload]
            self._since.pop(workload, None)
        return placed

    # Inside

    def _arrived(self, event: PodArrived) -> bool:
        cluster = self._intake.cluster
        if event.key in cluster.pods or event.key in cluster.pending:
            return False
        sight = self._sights.sight(event.key)
        if sight is None or not sight.workload:
            return False
        self._workload_of[event.key] = sight.workload, sight.pod_set
        self._kept.setdefault(sight.workload, {})[event.key] = event
        return True

    def _bound(self, event: PodBound, ghosts: Ghosts) -> None:
        known = self._workload_of.get(event.key)
        if known is None:
            sight = self._sights.sight(event.key)
            if sight is None or not sight.workload:
                return
            known = self._workload_of[event.key] = sight.workload, sight.pod_set
        workload, pod_set = known
        there = self._there.setdefault(workload, {})
        self._kept.get(workload, {}).pop(event.key, None)
        if event.key not in there:
            there[event.key] = pod_set
            ghosts.give_way(workload, pod_set, event.node)

    def _gone(self, pod: str) -> None:
        workload, _ = self._workload_of.pop(pod, ("", ""))
        if not workload:
            return
        for pods in (self._kept, self._there):
            known = pods.get(workload)
            if known is not None and known.pop(pod, None) is not None and not known:
                del pods[workload]

    def _take_places(
        self, workload: str, pods: Mapping[str, PodArrived], left: list[Ghost], ghosts: Ghosts
    ) -> list[Place]:
        cluster = self._intake.cluster
        ledger = Ledger(cluster)
        fitter = Fitter(self._placement, ledger, 0)
        others: list[tuple[str, PodArrived, str]] = []
        for key, event in pods.items():
            ghost = self._choose(key, event, left, ghosts)
            holding = ghosts.holding(ghost.key) if ghost is not None else None
            if ghost is None or holding is None:
                self._intake.apply(event)
                continue
            left.remove(ghost)
            row, node = holding.row, cluster.names[holding.row]
            ghosts.drop(workload, [ghost.key])
            if holding.charge is cluster.charge(event.ask):
                self._intake.apply(event)
                ledger.place(key, row, holding.grant)
            else:
                others.append((key, event, node))
        for _, event, node in others:
            # It asks for something else than its template did: its own place first, else any.
            self._intake.apply(structs.replace(event, nominated=event.nominated or node))
        for key, event, _ in others:
            if not event.who.group and key in cluster.pending:
                fitter.pod(key)
        placed = [
            Place(key, cluster.names[cluster.pods[key].row], cluster.pods[key].grant) for key in ledger.placed_since(0)
        ]
        ledger.commit()
        return placed

    def _choose(self, pod: str, event: PodArrived, left: list[Ghost], ghosts: Ghosts) -> Ghost | None:
        """One that asks for the same, of its pod set."""
        pod_set = self._workload_of[pod][1]
        mine = [ghost for ghost in left if not pod_set or ghost.pod_set == pod_set]
        charge = ghosts.cluster.charge(event.ask)
        for ghost in mine:
            holding = ghosts.holding(ghost.key)
            if holding is not None and holding.charge is charge:
                return ghost
        return mine[0] if mine else None
