"""Holds back the pods of queued Workloads when they arrive, until they take the places that were kept for them.

The pods of a Workload take their places together, so that a gang is bound completely or not at all. A Workload that
creates its pods one after another still makes progress: after `PATIENCE_S` the pods that have arrived take their
places, except members of gangs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from shoal.controllers.queues.placeholders.placeholder_pods import Placeholders
from shoal.controllers.queues.placeholders.placeholder_swap import PlaceholderSwap
from shoal.controllers.scheduling_loop.protocols import PodViews
from shoal.engine.events import Event, PodArrived, PodBound, PodGone
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Place

PATIENCE_S = 2.0


class PodArrivals:
    def __init__(self, intake: Intake, placement: Placement, pod_cache: PodViews) -> None:
        self._intake = intake
        self._placement = placement
        self._pod_cache = pod_cache
        self._held_back: dict[str, dict[str, PodArrived]] = {}
        """Workload -> pods that arrived and are not in the facts yet."""
        self._since: dict[str, float] = {}
        self._overdue: set[str] = set()
        """Workloads whose missing pods were waited for long enough."""
        self._pods: dict[str, dict[str, str]] = {}
        """Workload -> pods in the facts -> pod set."""
        self._workload_of: dict[str, tuple[str, str]] = {}
        """Pod -> Workload and pod set."""
        self._former: dict[str, None] = {}
        self._replacements: dict[str, str] = {}
        """Workload -> the Workload that replaced it (elastic jobs)."""

    def handle(self, event: Event, placeholders: Placeholders) -> bool:
        """Returns whether the pod is held back."""
        if isinstance(event, PodArrived):
            return self._arrived(event)
        if isinstance(event, PodBound):
            self._bound(event, placeholders)
        elif isinstance(event, PodGone):
            self._gone(event.key)
        return False

    @property
    def former(self) -> Collection[str]:
        """Pods in the facts whose admission has ended: they still use their nodes, but count for no Workload."""
        return self._former

    def replacement(self, workload: str) -> str:
        """The Workload to which the pods belong now: the last one that replaced it, or itself."""
        seen = {workload}
        while (found := self._replacements.get(workload)) is not None and found not in seen:
            seen.add(workload := found)
        return workload

    def replace(self, before: str, after: str) -> None:
        """The pods of one Workload of an elastic job belong to another one from now on."""
        if self._replacements.get(before) == after:
            return
        self._replacements.pop(after, None)
        self._replacements[before] = after
        if before in self._held_back:
            self._held_back.setdefault(after, {}).update(self._held_back.pop(before))
        if before in self._pods:
            self._pods.setdefault(after, {}).update(self._pods.pop(before))
        for pod, (workload, pod_set) in self._workload_of.items():
            if workload == before:
                self._workload_of[pod] = after, pod_set
        self._stop_waiting(before)

    def forget_replacements(self, workload: str) -> None:
        """The Workload was deleted: it replaces no other, and none replaces it."""
        self._replacements = {
            before: after for before, after in self._replacements.items() if workload not in (before, after)
        }

    def end_admission(self, workload: str) -> None:
        """Its admission has ended: pods that it still has do not belong to its next admission."""
        for pod in self._pods.pop(workload, ()):
            self._workload_of.pop(pod, None)
            self._former[pod] = None

    def staying(self, workload: str) -> Mapping[str, int]:
        """Number of its pods that have a node or a nomination and are not terminating, by pod set."""
        cluster, pods = self._intake.cluster, self._pods.get(workload, {})
        leaving = cluster.terminating
        return Counter(pod_set for pod, pod_set in pods.items() if pod in cluster.pods and pod not in leaving)

    def pods_of(self, workload: str) -> list[str]:
        """Its pods in the facts."""
        return list(self._pods.get(workload, ()))

    def workload_of(self, pod: str) -> str:
        """Empty for a pod of no Workload."""
        return self._workload_of.get(pod, ("", ""))[0]

    def workload_and_pod_set(self, pod: str) -> tuple[str, str]:
        """The Workload and pod set of a pod in the facts; empty for other pods."""
        known = self._workload_of.get(pod, ("", ""))
        return known if pod in self._pods.get(known[0], ()) else ("", "")

    def placed(self, workload: str) -> Mapping[str, int]:
        """Number of its pods that have a place and not only a nomination, by pod set."""
        cluster, pods = self._intake.cluster, self._pods.get(workload, {})
        return Counter(pod_set for pod, pod_set in pods.items() if pod in cluster.pods and pod not in cluster.nominated)

    def waiting(self) -> list[str]:
        """Workloads with pods that are held back."""
        return list(self._held_back)

    def pending(self, workload: str) -> list[str]:
        """Its pods in the facts that have no place, in the order in which they arrived."""
        pending = self._intake.cluster.pending
        return [pod for pod in self._pods.get(workload, ()) if pod in pending]

    def due_s(self, workload: str) -> float | None:
        """Until when the missing pods are waited for; None once that has passed, or if no pod is held back."""
        since_s = self._since.get(workload)
        return None if since_s is None or workload in self._overdue else since_s + PATIENCE_S

    def release(self, workload: str) -> None:
        """No places are kept for these pods: they are scheduled like any pod."""
        self._stop_waiting(workload)
        for key, event in self._held_back.pop(workload, {}).items():
            self._pods.setdefault(workload, {})[key] = self._workload_of[key][1]
            self._intake.apply(event)

    def take(self, workload: str, placeholders: Placeholders, now_s: float) -> list[Place]:
        """The pods that take places now."""
        held_back, pending = self._held_back.get(workload, {}), self.pending(workload)
        left = placeholders.of(workload)
        is_late = bool(held_back) and now_s >= self._since.setdefault(workload, now_s) + PATIENCE_S
        ready = dict(held_back)
        if len(held_back) + len(pending) < len(left):
            known = self._intake.cluster.pending
            ready = {key: event for key, event in held_back.items() if is_late and not event.who.group}
            pending = [key for key in pending if not known[key].who.group]
        if is_late:
            self._overdue.add(workload)
        for key, event in ready.items():
            del held_back[key]
            self._pods.setdefault(workload, {})[key] = self._workload_of[key][1]
            self._intake.apply(event)
        if not held_back:
            self._held_back.pop(workload, None)
            self._stop_waiting(workload)
        pods = [(key, self._workload_of[key][1]) for key in (*pending, *ready)]
        return PlaceholderSwap(self._placement, placeholders).swap(pods, left) if pods else []

    # internals

    def _arrived(self, event: PodArrived) -> bool:
        cluster = self._intake.cluster
        if event.key in cluster.pods or event.key in cluster.pending:
            return False
        view = self._pod_cache.view(event.key)
        if view is None or not view.workload:
            return False
        workload = self.replacement(view.workload)
        self._workload_of[event.key] = workload, view.pod_set
        self._held_back.setdefault(workload, {})[event.key] = event
        return True

    def _bound(self, event: PodBound, placeholders: Placeholders) -> None:
        known = self._workload_of.get(event.key)
        if event.key in self._former:
            return
        if known is None:
            view = self._pod_cache.view(event.key)
            if view is None or not view.workload:
                return
            known = self._workload_of[event.key] = self.replacement(view.workload), view.pod_set
        workload, pod_set = known
        pods = self._pods.setdefault(workload, {})
        self._held_back.get(workload, {}).pop(event.key, None)
        if event.key not in pods:
            pods[event.key] = pod_set
            placeholders.release_one(workload, pod_set, event.node)

    def _gone(self, pod: str) -> None:
        self._former.pop(pod, None)
        workload, _ = self._workload_of.pop(pod, ("", ""))
        if not workload:
            return
        for by_workload in (self._held_back, self._pods):
            known = by_workload.get(workload)
            if known is not None and known.pop(pod, None) is not None and not known:
                del by_workload[workload]
        if workload not in self._held_back:
            self._stop_waiting(workload)

    def _stop_waiting(self, workload: str) -> None:
        self._since.pop(workload, None)
        self._overdue.discard(workload)
