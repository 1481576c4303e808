"""Decides in each round of the scheduling loop which Workloads are admitted.

The discipline is the same code that decides manifests (`engine/queues`). Here its facts come from watch caches, its
admissions are proven on the nodes as they are, and its decisions are in the facts at once and in the Workloads as soon
as they are written. Until such a write has finished, what the watch caches say about that Workload is out of date and
is ignored.

Guarantees: all state is in the Workloads, so another process decides the same from the same objects; a Workload that
cannot be read or written gets a condition that says so and delays no other; the cost of a round depends on what
changed, not on the number of pending Workloads.

Rejected: a snapshot per cycle. Each cycle would read thousands of pending Workloads again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from shoal.client.context import Context
from shoal.client.presence import KUEUE, Presence
from shoal.client.supervise import supervised
from shoal.controllers.queues.admission_cycles import AdmissionCycles
from shoal.controllers.queues.disruption_facts import DisruptionFacts
from shoal.controllers.queues.event_handlers import EventHandlers
from shoal.controllers.queues.failed_nodes import FailedNodes
from shoal.controllers.queues.node_capacity import NodeCapacity
from shoal.controllers.queues.placeholders.placeholder_pods import Placeholders
from shoal.controllers.queues.pod_arrivals import PodArrivals
from shoal.controllers.queues.pod_gates.elastic_gates import ElasticGates
from shoal.controllers.queues.pod_gates.topology_gates import TopologyGates
from shoal.controllers.queues.queue_statuses import QueueStatuses, record_unreadable
from shoal.controllers.queues.workload_cache import WorkloadCache
from shoal.controllers.queues.workload_status.status_reports import StatusReports
from shoal.controllers.queues.workload_status.status_writer import StatusWriter
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.events import Event, NodeGone, NodeSeen, PodBound, PodGone
from shoal.engine.plan import Place
from shoal.engine.queues.decisions import Decisions
from shoal.engine.queues.kueue import Kueue
from shoal.store.watched.queue_changes import QueueChanges
from shoal.store.watched.queues import WatchedQueues

_RETRY_S = 1.0


class QueueAdmission:
    """The admission discipline of Kueue's queues. It decides nothing while Kueue itself runs in the cluster."""

    def __init__(
        self, context: Context, watched: WatchedQueues, scheduling: SchedulerState, presence: Presence | None = None
    ) -> None:
        self._context = context
        self._watched = watched
        self._scheduling = scheduling
        self.presence = presence or Presence(context, KUEUE)
        self._writer = StatusWriter(context, watched, self._written)
        self._reports = StatusReports(self._writer, watched)
        self._cache = WorkloadCache(watched.settings, self._writer)
        self._capacity = NodeCapacity(scheduling, watched, self._cache, self._reports)
        self._disruption_facts = DisruptionFacts(scheduling.cluster, self.arrivals.pods_of, self.arrivals.workload_of)
        self._handlers = EventHandlers(self._cache, self._capacity, self._reports, self._disruption_facts)
        self._cycles = AdmissionCycles(self._cache, self._capacity, self._reports)
        self._failed_nodes = FailedNodes(self._cache, self._reports, scheduling.cluster, self.arrivals.pods_of)
        self._statuses = QueueStatuses(context, watched)
        self._gates = TopologyGates(context, watched.workload, lambda: not self.presence.is_there)
        self._elastic = ElasticGates(
            context, watched.workload, self.arrivals.replacement, lambda: not self.presence.is_there
        )
        self._news: list[QueueChanges] = []
        self._is_freed = False
        """Nodes may have free capacity that they did not have in the last round."""

    @property
    def kueue(self) -> Kueue:
        return self._cache.kueue

    @property
    def placeholders(self) -> Placeholders:
        return self._capacity.placeholders

    @property
    def arrivals(self) -> PodArrivals:
        return self._capacity.arrivals

    def measure(self, around: Callable[[Callable[[], Decisions]], Decisions]) -> None:
        """`around` runs each cycle and may time it."""
        self._cycles.measure = around

    # -- the protocol of the scheduling loop -------------------------------------------------------------------

    def hear(self, event: Event) -> bool:
        self._capacity.handle(event)
        if isinstance(event, (NodeSeen, NodeGone)) or (
            isinstance(event, PodGone) and event.key in self._scheduling.cluster.pods
        ):
            self._is_freed = True
        if isinstance(event, PodGone):
            self._disruption_facts.handle(event)
            self._failed_nodes.mark_due()
            return self.arrivals.handle(event, self.placeholders)
        is_kept = self.arrivals.handle(event, self.placeholders)
        self._disruption_facts.handle(event)
        if isinstance(event, PodBound):
            # The pod may be terminating by now.
            self._failed_nodes.mark_due()
        return is_kept

    def round(self, now_s: float) -> list[Place]:
        if self.presence.is_there:
            self._capacity.release_all()
            return []
        if not self._watched.is_synced:
            return []
        try:
            return self._decide(now_s)
        except Exception:
            # Decisions that were not recorded are void: all Workloads are read again.
            self._capacity.drop_proven()
            self._watched.tell_all_again()
            raise

    def _decide(self, now_s: float) -> list[Place]:
        # Conditions have a resolution of one second; this way a time that is read back equals the one decided.
        moment_s = float(int(now_s))
        self._take_news(moment_s)
        self._is_freed |= self._capacity.begin_round(moment_s)
        self._cycles.note_capacity(is_freed=self._is_freed)
        self._failed_nodes.find()
        self._capacity.place_wanted(moment_s, is_freed=self._is_freed)
        self._cycles.evict_due(moment_s)
        self._disruption_facts.update(self._cache.queues, moment_s)
        self._cycles.run(moment_s)
        self._cycles.report_pending()
        self._capacity.expire(moment_s)
        self.placeholders.tidy()
        self._is_freed = False
        self._statuses.note(self.kueue, self._cache.views)
        record_unreadable(self._context, self._watched.troubles)
        return self._capacity.take(now_s)

    def _take_news(self, moment_s: float) -> None:
        """News whose handling failed is handled again: the watch caches report each change once."""
        self._news.append(self._watched.drain())
        while self._news:
            failed = self._handlers.handle(self._news[0], moment_s)
            del self._news[0]
            for key in failed:
                self._watched.again(key)
            if failed:
                self._context.clock.call_later(_RETRY_S, self._scheduling.wake)

    def next_s(self) -> float | None:
        if self.presence.is_there:
            return None
        moments = [*self._cycles.moments(), self._handlers.next_s(), *self._capacity.moments()]
        return min((each for each in moments if each is not None), default=None)

    @property
    def is_idle(self) -> bool:
        if self.presence.is_there or not self._watched.is_synced:
            return True
        return self.kueue.is_idle and not self._cache.unreported

    async def run(self) -> None:
        # Each task restarts by itself: a fault in one must not end what the others write.
        parts: dict[str, Callable[[], Awaitable[None]]] = {
            "the configuration of queues": self._watched.run,
            "writing Workloads": self._writer.run,
            "the statuses of queues": self._statuses.run,
            "gates of pods": self._open_gates,
            "looking for Kueue": partial(self.presence.run, self._scheduling.wake),
        }
        async with asyncio.TaskGroup() as group:
            for name, run in parts.items():
                group.create_task(supervised(self._context.clock, name, run))

    async def synced(self) -> None:
        """Returns when the caches are filled; until then no round decides anything."""
        await self._watched.synced()

    # internals

    async def _open_gates(self) -> None:
        await self._watched.synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._gates.run())
            group.create_task(self._elastic.run())

    def _written(self, key: str, refused: str) -> None:
        """A decision is written, or the server refused it. Either way the object on the server decides what is next."""
        if refused:
            self._handlers.note_refused(key, refused)
        self._gates.wake(key)
        self._elastic.wake(key)
        self._watched.again(key)
        self._scheduling.wake()
