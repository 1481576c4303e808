"""Keeps capacity on nodes for admitted Workloads: proves it before the admission, keeps it with placeholder pods until
the pods arrive, and gives each pod its place."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from shoal.controllers.queues.placeholders.placeholder_pods import KEPT_S, Placeholders
from shoal.controllers.queues.placeholders.pod_set_templates import TemplateAsks
from shoal.controllers.queues.pod_arrivals import PodArrivals
from shoal.controllers.queues.replacement_pods import ReplacementPods
from shoal.controllers.queues.workload_cache import WorkloadCache
from shoal.controllers.queues.workload_status.status_reports import StatusReports
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.events import Event, NodeSeen, PodArrived, PodGone
from shoal.engine.plan import Place
from shoal.engine.queues.facts import QuotaAssignment, WorkloadFacts
from shoal.engine.queues.proof import Proof, Proven
from shoal.store.watched.queues import WatchedQueues

_log = logging.getLogger("shoal.queues")


class NodeCapacity:
    def __init__(
        self, scheduling: SchedulerState, watched: WatchedQueues, cache: WorkloadCache, reports: StatusReports
    ) -> None:
        self._scheduling = scheduling
        self._watched = watched
        self._cache = cache
        self._reports = reports
        self.arrivals = PodArrivals(scheduling.intake, scheduling.placement, scheduling.watched)
        self._asks = TemplateAsks(scheduling.watched, watched)
        self.placeholders = Placeholders(scheduling.intake, watched.workload, self._asks.of, self.arrivals.staying)
        self.replacements = ReplacementPods(cache, self.arrivals, scheduling.watched, scheduling.cluster)
        self._wanted: dict[str, None] = {}
        """Admitted Workloads for whose missing pods no places are kept."""
        self._unplaced: dict[str, None] = {}
        """Those of them for which the nodes lacked free capacity."""
        self._found: dict[str, None] = {}
        """Admitted Workloads for whose missing pods places were found in this round."""
        self._changed_nodes: set[str] = set()
        self._prover: Proof | None = None

    # -- before an admission ---------------------------------------------------------------------------------

    def handle(self, event: Event) -> None:
        """Must be called before the facts take the event."""
        self.replacements.handle(event)
        if isinstance(event, NodeSeen):
            self._changed_nodes.add(event.node.name)

    def begin_round(self, now_s: float) -> bool:
        """Returns whether volumes changed such that pods may fit on other nodes than before."""
        changed = self._asks.stirred()
        self._release_unreachable(changed)
        self._wanted.update(dict.fromkeys(self.placeholders.drop_without_node()))
        if self._prover is None:
            queues = self._cache.queues
            intake, placement = self._scheduling.intake, self._scheduling.placement
            self._prover = Proof(queues, intake, placement, self._pods_of, self._running_of)
            self._prover.terminating = lambda: self.arrivals.former
        self._scheduling.placement.renew()
        self._update_kept(now_s)
        return bool(changed)

    def _update_kept(self, now_s: float) -> None:
        """Keep the places of pods that were lost, and drop places on nodes where pods may not run any more."""
        placement, nodes = self._scheduling.placement, self._changed_nodes
        self._changed_nodes = set()
        self.replacements.tidy(self.placeholders, now_s)
        self._wanted.update(dict.fromkeys(self.replacements.keep(self.placeholders, placement, now_s)))
        if nodes:
            self._wanted.update(dict.fromkeys(self.placeholders.drop_unfit(nodes, placement)))

    def reset(self) -> None:
        """The configuration of queues is another one."""
        self._prover = None

    @property
    def prover(self) -> Proof | None:
        """None if admissions are not proven: no node is known, or the configuration decides by quota only."""
        if not self._scheduling.cluster.row_of or self._cache.queues.settings.placement == "quotaOnly":
            return None
        return self._prover

    def keep_proven(self) -> None:
        """Keep the places that the last cycle proved."""
        if self._prover is not None and self._prover.placed:
            placed, self._prover.placed = self._prover.placed, []
            self.placeholders.keep(placed)

    def drop_proven(self) -> None:
        """Drop the places that were proven for decisions that were not recorded."""
        if self._prover is not None:
            placed, self._prover.placed = self._prover.placed, []
            for place in placed:
                self._scheduling.intake.apply(PodGone(place.pod))

    # -- during an admission ---------------------------------------------------------------------------------

    def want(self, workload: str, since_s: float = 0.0) -> None:
        """The Workload is admitted and lacks pods; `since_s` says since when, if that is later than its admission."""
        self._wanted[workload] = None
        if since_s:
            self.replacements.note_missing_since(workload, since_s)

    def release(self, workload: str) -> None:
        """The Workload is not admitted any more."""
        self.placeholders.drop(workload)
        self._wanted.pop(workload, None)
        self._unplaced.pop(workload, None)

    def forget(self, workload: str) -> None:
        """The Workload was deleted; its pods are scheduled like any pod."""
        self.release(workload)
        self.arrivals.release(workload)
        self.arrivals.forget_replacements(workload)
        self._asks.forget(workload)

    def place_wanted(self, now_s: float, *, is_freed: bool) -> None:
        """Keep places for Workloads that were admitted earlier, for the pods that have none."""
        if is_freed:
            self._wanted |= self._unplaced
            self._unplaced = {}
        wanted, self._wanted = self._wanted, {}
        for key in wanted:
            held = self._cache.held(key)
            if held is None or held.evicted or not held.facts.admitted or now_s >= self._kept_until_s(key):
                continue
            if self._prover is not None and self._scheduling.cluster.row_of:
                proven = self._prover.admit(held.facts, held.admission)
                if proven in (Proven.NO_CAPACITY, Proven.LATER):
                    self._unplaced[key] = None
                elif proven is Proven.PLACED:
                    # Pods that are pending already take these places in this round.
                    self._found[key] = None
                self.keep_proven()

    def take(self, now_s: float) -> list[Place]:
        """The pods that take places in this round."""
        placed: list[Place] = []
        found, self._found = self._found, {}
        for workload in dict.fromkeys((*self.arrivals.waiting(), *self.replacements.take_changed(), *found)):
            held, view = self._cache.held(workload), self._cache.views.get(workload)
            if held is None and view is not None and not view.is_finished:
                # The Workload is not admitted: its pods are terminating, or arrived too early.
                continue
            if held is not None and (held.evicted or not held.facts.admitted):
                continue
            try:
                placed += self._taken(workload, now_s)
            except Exception:  # noqa: BLE001 - the places that other pods took are in the facts and must be returned
                _log.exception("the pods of workload %s could not take their places", workload)
        return placed

    def _taken(self, workload: str, now_s: float) -> list[Place]:
        if self.placeholders.count(workload):
            return self.arrivals.take(workload, self.placeholders, now_s)
        self.arrivals.release(workload)
        return []

    def expire(self, now_s: float) -> None:
        for key in self.placeholders.workloads():
            if now_s >= self._kept_until_s(key):
                count, view = self.placeholders.drop(key), self._cache.views.get(key)
                if view is not None:
                    self._reports.places_dropped(view, count, KEPT_S)

    def release_all(self) -> None:
        """Kueue itself decides about admission."""
        self.replacements.forget_all()
        self._changed_nodes.clear()
        for workload in self.arrivals.waiting():
            self.arrivals.release(workload)
        for workload in self.placeholders.workloads():
            # Their pods are scheduled like any pod now, and must not wait for the capacity of their own placeholders.
            self.placeholders.drop(workload)
            self._wanted[workload] = None
        self.placeholders.tidy()

    def moments(self) -> list[float]:
        """When time alone makes something due."""
        due = (self.arrivals.due_s(key) for key in self.arrivals.waiting() if self.placeholders.count(key))
        found = [moment_s for moment_s in due if moment_s is not None] + self.replacements.moments()
        return found + [self._kept_until_s(key) for key in self.placeholders.workloads()]

    # internals

    def _kept_until_s(self, workload: str) -> float:
        held = self._cache.held(workload)
        return 0.0 if held is None else max(held.facts.admitted_s + KEPT_S, self.replacements.until_s(workload))

    def _pods_of(self, facts: WorkloadFacts, admission: QuotaAssignment) -> list[PodArrived]:
        return self.placeholders.missing_pods(self._cache.queues, self._watched.priorities, facts, admission)

    def _running_of(self, workload: str) -> list[str]:
        return [*self.arrivals.pods_of(workload), *self.placeholders.keys(workload)]

    def _release_unreachable(self, workloads: Iterable[str]) -> None:
        """Drop places from which the volumes cannot be reached any more; other places are looked for."""
        cluster = self._scheduling.cluster
        for workload in workloads:
            held = [(each.pod_set, self.placeholders.allocation(each.key)) for each in self.placeholders.of(workload)]
            places = [
                (pod_set, cluster.names[allocation.row]) for pod_set, allocation in held if allocation is not None
            ]
            if places and not self._asks.are_reached(workload, places):
                self.placeholders.drop(workload)
                self.want(workload)
