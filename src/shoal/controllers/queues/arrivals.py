"""Pods of queued workloads as they come: kept back until they take the places that were kept for them.

The pods of a workload take their places in one go, so that a gang is bound whole or not at all. Work that starts its
pods one after another gets on all the same: after a moment those that are there take theirs, but for members of gangs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from shoal.controllers.brain.parts import Sights
from shoal.controllers.queues.ghosts import Ghosts
from shoal.controllers.queues.hand_over import HandOver
from shoal.engine.events import Event, PodArrived, PodBound, PodGone
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Place

PATIENCE_S = 2.0


class Arrivals:
    def __init__(self, intake: Intake, placement: Placement, sights: Sights) -> None:
        self._intake = intake
        self._placement = placement
        self._sights = sights
        self._kept: dict[str, dict[str, PodArrived]] = {}
        """Workload -> pods that came and are not in the facts yet."""
        self._since: dict[str, float] = {}
        self._overdue: set[str] = set()
        """Workloads whose other pods were waited for long enough."""
        self._there: dict[str, dict[str, str]] = {}
        """Workload -> pods in the facts -> pod set."""
        self._workload_of: dict[str, tuple[str, str]] = {}
        """Pod -> workload and pod set."""
        self._former: dict[str, None] = {}
        self._heirs: dict[str, str] = {}
        """Workload -> the one that took its place."""

    def hear(self, event: Event, ghosts: Ghosts) -> bool:
        """Whether the pod is kept back."""
        if isinstance(event, PodArrived):
            return self._arrived(event)
        if isinstance(event, PodBound):
            self._bound(event, ghosts)
        elif isinstance(event, PodGone):
            self._gone(event.key)
        return False

    @property
    def former(self) -> Collection[str]:
        """Pods of admissions that are over, as long as they are in the facts: they hold their room, and nobody's."""
        return self._former

    def heir(self, workload: str) -> str:
        """Whose its pods are by now."""
        seen = {workload}
        while (found := self._heirs.get(workload)) is not None and found not in seen:
            seen.add(workload := found)
        return workload

    def succeed(self, before: str, after: str) -> None:
        """Work of another size: the pods of the one workload are the other's from now on."""
        if self._heirs.get(before) == after:
            return
        self._heirs.pop(after, None)
        self._heirs[before] = after
        if before in self._kept:
            self._kept.setdefault(after, {}).update(self._kept.pop(before))
        if before in self._there:
            self._there.setdefault(after, {}).update(self._there.pop(before))
        for pod, (workload, pod_set) in self._workload_of.items():
            if workload == before:
                self._workload_of[pod] = after, pod_set
        self._no_longer_waits(before)

    def disinherit(self, workload: str) -> None:
        """It is gone: nobody has its place, nor it anybody's."""
        self._heirs = {before: after for before, after in self._heirs.items() if workload not in (before, after)}

    def dismiss(self, workload: str) -> None:
        """Its admission is over: the pods that it has belong to no other one."""
        for pod in self._there.pop(workload, ()):
            self._workload_of.pop(pod, None)
            self._former[pod] = None

    def present(self, workload: str) -> Mapping[str, int]:
        """Pods in the facts that stay, by pod set: those on their way out leave their room to whoever is next."""
        leaving = self._intake.cluster.leaving
        return Counter(pod_set for pod, pod_set in self._there.get(workload, {}).items() if pod not in leaving)

    def there(self, workload: str) -> list[str]:
        return list(self._there.get(workload, ()))

    def workload_of(self, pod: str) -> str:
        """Empty for pods that are nobody's."""
        return self._workload_of.get(pod, ("", ""))[0]

    def belonging(self, pod: str) -> tuple[str, str]:
        """Workload and pod set of a pod in the facts."""
        known = self._workload_of.get(pod, ("", ""))
        return known if pod in self._there.get(known[0], ()) else ("", "")

    def placed(self, workload: str) -> Mapping[str, int]:
        """Its pods that have a place, not just the promise of one, by pod set."""
        cluster, there = self._intake.cluster, self._there.get(workload, {})
        return Counter(pod_set for pod, pod_set in there.items() if pod in cluster.pods and pod not in cluster.promised)

    def waiting(self) -> list[str]:
        """Workloads of which pods are kept back."""
        return list(self._kept)

    def in_line(self, workload: str) -> list[str]:
        """Its pods in the facts that have no place, in the order in which they came."""
        pending = self._intake.cluster.pending
        return [pod for pod in self._there.get(workload, ()) if pod in pending]

    def due_s(self, workload: str) -> float | None:
        """Until when the others of its pods are waited for; None once that has passed, or nobody waits."""
        since_s = self._since.get(workload)
        return None if since_s is None or workload in self._overdue else since_s + PATIENCE_S

    def let_go(self, workload: str) -> None:
        """Nothing is kept for them: they stand in line like any pod."""
        self._no_longer_waits(workload)
        for key, event in self._kept.pop(workload, {}).items():
            self._there.setdefault(workload, {})[key] = self._workload_of[key][1]
            self._intake.apply(event)

    def take(self, workload: str, ghosts: Ghosts, now_s: float) -> list[Place]:
        """The pods that take places now."""
        kept, in_line = self._kept.get(workload, {}), self.in_line(workload)
        left = ghosts.of(workload)
        is_late = bool(kept) and now_s >= self._since.setdefault(workload, now_s) + PATIENCE_S
        ready = dict(kept)
        if len(kept) + len(in_line) < len(left):
            pending = self._intake.cluster.pending
            ready = {key: event for key, event in kept.items() if is_late and not event.who.group}
            in_line = [key for key in in_line if not pending[key].who.group]
        if is_late:
            self._overdue.add(workload)
        for key, event in ready.items():
            del kept[key]
            self._there.setdefault(workload, {})[key] = self._workload_of[key][1]
            self._intake.apply(event)
        if not kept:
            self._kept.pop(workload, None)
            self._no_longer_waits(workload)
        comers = [(key, self._workload_of[key][1]) for key in (*in_line, *ready)]
        return HandOver(self._placement, ghosts).do(comers, left) if comers else []

    # Inside

    def _arrived(self, event: PodArrived) -> bool:
        cluster = self._intake.cluster
        if event.key in cluster.pods or event.key in cluster.pending:
            return False
        sight = self._sights.sight(event.key)
        if sight is None or not sight.workload:
            return False
        workload = self.heir(sight.workload)
        self._workload_of[event.key] = workload, sight.pod_set
        self._kept.setdefault(workload, {})[event.key] = event
        return True

    def _bound(self, event: PodBound, ghosts: Ghosts) -> None:
        known = self._workload_of.get(event.key)
        if event.key in self._former:
            return
        if known is None:
            sight = self._sights.sight(event.key)
            if sight is None or not sight.workload:
                return
            known = self._workload_of[event.key] = self.heir(sight.workload), sight.pod_set
        workload, pod_set = known
        there = self._there.setdefault(workload, {})
        self._kept.get(workload, {}).pop(event.key, None)
        if event.key not in there:
            there[event.key] = pod_set
            ghosts.give_way(workload, pod_set, event.node)

    def _gone(self, pod: str) -> None:
        self._former.pop(pod, None)
        workload, _ = self._workload_of.pop(pod, ("", ""))
        if not workload:
            return
        for pods in (self._kept, self._there):
            known = pods.get(workload)
            if known is not None and known.pop(pod, None) is not None and not known:
                del pods[workload]
        if workload not in self._kept:
            self._no_longer_waits(workload)

    def _no_longer_waits(self, workload: str) -> None:
        self._since.pop(workload, None)
        self._overdue.discard(workload)
