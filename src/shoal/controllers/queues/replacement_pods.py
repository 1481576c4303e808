"""Keeps the places of lost pods of admitted Workloads for the pods that replace them.

An admitted Workload holds its quota until it ends, and its job replaces a pod that was lost. Between the end of the
lost pod and the arrival of its replacement, another pod could take the free capacity, and the Workload would hold quota
and wait. So a placeholder takes the place in the round in which the loss is noticed.

Guarantees: a place is kept for five minutes after the loss, and another process keeps it for as long, if the Workload
records since when its pods are not all ready. After a pod that succeeded the place is kept for a moment only, since
most such pods are not replaced. A pod that cannot be bound gets its place back once; after a second failure it is
scheduled like any pod.

Rejected: freeing the place and scheduling the replacement first. The replacement does not exist yet, and its time of
arrival is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import msgspec

from shoal.controllers.queues.placeholders.placeholder_pods import KEPT_S, Placeholders
from shoal.controllers.queues.pod_arrivals import PodArrivals
from shoal.controllers.queues.workload_cache import WorkloadCache
from shoal.controllers.scheduling_loop.protocols import PodViews
from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, PodBound, PodGone, PodRejected
from shoal.engine.placement import Placement
from shoal.engine.pods import PodAllocation
from shoal.engine.queues.clusterqueue import AdmittedWorkload

KEPT_AFTER_SUCCESS_S = 10.0
"""How long a place is kept after a pod that succeeded: a job may have more completions than pods at a time."""


class _LostPod(msgspec.Struct, frozen=True):
    pod_set: str
    node: str
    allocation: PodAllocation
    kept_s: float


class ReplacementPods:
    def __init__(self, cache: WorkloadCache, arrivals: PodArrivals, pod_cache: PodViews, cluster: Cluster) -> None:
        self._cache = cache
        self._arrivals = arrivals
        self._pod_cache = pod_cache
        self._cluster = cluster
        self._lost: dict[str, list[_LostPod]] = {}
        """By Workload, since places were kept last."""
        self._changed: dict[str, None] = {}
        """Workloads that changed in this round."""
        self._failed: dict[str, None] = {}
        """Pods that could not be bound, and have not been bound since."""
        self._until_s: dict[str, dict[str, float]] = {}
        """Workload -> placeholder that took the place of a pod -> until when. The empty name represents pods that were
        lost before and have no placeholder."""

    def handle(self, event: Event) -> None:
        """Must be called before `PodArrivals` forgets the Workload of a pod that is gone."""
        if not isinstance(event, PodBound | PodGone | PodRejected):
            return
        workload, pod_set = self._arrivals.workload_and_pod_set(event.key)
        self.mark_changed(workload)
        is_failed = event.key in self._failed
        if not isinstance(event, PodRejected):
            self._failed.pop(event.key, None)
        allocation = self._cluster.pods.get(event.key)
        if isinstance(event, PodBound) or allocation is None or not workload or allocation.is_nominated:
            return
        kept_s = KEPT_S
        if isinstance(event, PodGone):
            view = self._pod_cache.view(event.key)
            kept_s = KEPT_AFTER_SUCCESS_S if view is not None and view.has_succeeded else KEPT_S
        elif is_failed:
            return
        else:
            self._failed[event.key] = None
        node = self._cluster.names[allocation.row]
        self._lost.setdefault(workload, []).append(_LostPod(pod_set, node, allocation, kept_s))

    def mark_changed(self, workload: str) -> None:
        """The Workload or one of its pods has changed."""
        if workload in self._until_s:
            self._changed[workload] = None

    def note_missing_since(self, workload: str, moment_s: float) -> None:
        """The Workload lacks pods since that moment, by its own PodsReady condition."""
        self._until_s.setdefault(workload, {})[""] = moment_s + KEPT_S

    def keep(self, placeholders: Placeholders, placement: Placement, now_s: float) -> Iterator[str]:
        """Keep the places of the pods lost since the last call; yields Workloads that need a place elsewhere."""
        lost, self._lost = self._lost, {}
        for workload, lost_pods in lost.items():
            held = self._cache.held(workload)
            if held is None or held.evicted or not held.facts.admitted:
                continue
            missing, until_s = self._count_missing(held, placeholders), self._until_s.setdefault(workload, {})
            self._changed[workload] = None
            for lost_pod in lost_pods:
                if not missing.takes(lost_pod.pod_set):
                    continue
                placeholder = placeholders.keep_place(
                    workload, lost_pod.pod_set, lost_pod.node, lost_pod.allocation, placement
                )
                if placeholder:
                    until_s[placeholder] = now_s + lost_pod.kept_s
                elif lost_pod.kept_s == KEPT_S:
                    until_s[""] = now_s + KEPT_S
                    yield workload

    def tidy(self, placeholders: Placeholders, now_s: float) -> None:
        """Drop the places that are not needed any more."""
        for workload, until_s in list(self._until_s.items()):
            held = self._cache.held(workload)
            if workload in self._changed and held is not None:
                self._drop_surplus(held, until_s, placeholders)
            for placeholder, moment_s in list(until_s.items()):
                if held is None or held.evicted or moment_s <= now_s:
                    del until_s[placeholder]
                    placeholders.drop(workload, [placeholder])
            if not until_s:
                del self._until_s[workload]

    def _drop_surplus(self, held: AdmittedWorkload, until_s: dict[str, float], placeholders: Placeholders) -> None:
        kept, missing = frozenset(placeholders.keys(held.key)), self._count_missing(held, placeholders)
        for placeholder in [placeholder for placeholder in until_s if placeholder]:
            if placeholder not in kept or missing.gives_back(placeholder.rsplit("#", 2)[1]):
                del until_s[placeholder]
                placeholders.drop(held.key, [placeholder])

    def take_changed(self) -> list[str]:
        """Workloads that changed since the last call: their pods may take one of these places now."""
        changed, self._changed = self._changed, {}
        return list(changed)

    def forget_all(self) -> None:
        """No places are kept any more."""
        self._lost.clear()
        self._until_s.clear()
        self._changed.clear()

    def until_s(self, workload: str) -> float:
        """Until when places of lost pods are kept for the Workload."""
        return max(self._until_s.get(workload, {}).values(), default=0.0)

    def moments(self) -> list[float]:
        return [moment_s for each in self._until_s.values() for moment_s in each.values()]

    # internals

    def _count_missing(self, held: AdmittedWorkload, placeholders: Placeholders) -> _MissingPlaces:
        counts = {each.name: each.count for each in held.admission.pod_sets}
        missing = Counter(counts)
        missing.subtract({name: count for name, count in held.facts.reclaimable.items() if name in counts})
        missing.subtract(self._arrivals.placed(held.key))
        missing.subtract(Counter(placeholder.pod_set for placeholder in placeholders.of(held.key)))
        return _MissingPlaces(missing, counts)


class _MissingPlaces:
    """How many places a Workload lacks, by pod set; over all pod sets for a pod that names none."""

    def __init__(self, by_set: Counter[str], known: Collection[str]) -> None:
        self._by_set = by_set
        self._known = known
        self._all = sum(by_set.values())

    def takes(self, pod_set: str) -> bool:
        """Returns whether a place was missing, and counts it as filled."""
        return self._add(pod_set, -1) if self._of(pod_set) > 0 else False

    def gives_back(self, pod_set: str) -> bool:
        """Returns whether there was a place too many, and counts it as dropped."""
        return self._add(pod_set, 1) if self._of(pod_set) < 0 else False

    def _of(self, pod_set: str) -> int:
        return self._by_set[pod_set] if pod_set in self._known else self._all

    def _add(self, pod_set: str, number: int) -> bool:
        self._by_set[pod_set] += number
        self._all += number
        return True
