"""Lets KAI's fair share decide about the pods of its queues in the scheduling loop, and writes what was decided.

The decisions are those of the engine's discipline `fairshare`, by the steps of the cycle. Queues come from a watch
cache; which gang or pod is in which queue is part of the facts. A pod of KAI's scheduler is held back from the facts
until its group is written.

Guarantees: while KAI itself runs, nothing is decided or written here. After a restart the objects contain all that is
known: which pods run, since when a gang runs below its minimum, and what queues used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from shoal.api.groups.kai import NODE_POOL_LABEL
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, KAI_SHARDS
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.client.presence import Presence
from shoal.client.served import Served
from shoal.controllers.kai.measured_cycles import CycleObserver, MeasuredCycles
from shoal.controllers.kai.podgrouper import PodGrouper
from shoal.controllers.kai.queue_cache import QueueCache
from shoal.controllers.kai.status_writer import KaiStatusWriter
from shoal.controllers.kai.usage_keeper import UsageKeeper
from shoal.controllers.kai.usage_reader import Ask
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.events import Event, PodArrived, PodBound, PodGone
from shoal.engine.plan import Evict, Place
from shoal.engine.queues.disciplines.kai.fair_queues import fair_queues
from shoal.engine.queues.disciplines.kai.objects import Queue
from shoal.engine.queues.disciplines.kai.pool_members import PoolMembers
from shoal.engine.queues.disciplines.kai.queue_members import DEFAULT_QUEUE, QueueMembers
from shoal.engine.queues.disciplines.kai.sharded_fairshare import ShardedFairshare
from shoal.engine.queues.disciplines.kai.shards import shards_of

_log = logging.getLogger("shoal.kai")


class KaiAdmission:
    """An admission discipline, which holds back pods without a group, and a queue discipline."""

    def __init__(
        self,
        context: Context,
        served: Served,
        scheduling: SchedulerState,
        onward: Callable[[Event], None] | None = None,
        presence: Presence | None = None,
        ask: Ask | None = None,
    ) -> None:
        """`onward` receives the events that enter the facts; `ask` reads what Prometheus servers say of queues."""
        self._scheduling = scheduling
        self._presence = presence
        self._onward = onward or scheduling.intake.apply
        self.discipline = ShardedFairshare()
        self._members = QueueMembers()
        self._pools = PoolMembers()
        self._was_present = False
        self._are_queues_new = True
        self._are_pools_new = False
        self._status_writer = KaiStatusWriter(context, scheduling.cluster, self.discipline)
        self._usage = UsageKeeper(context, scheduling, self.discipline, ask)
        self._warned: tuple[str, ...] = ()
        self._cycles: MeasuredCycles | None = None
        self._cache = QueueCache(context, served, self._queues_changed, self._follow)
        self._podgrouper = PodGrouper(
            context, served, lambda: not self._is_kai_present, lambda: self.discipline.shards.label
        )

    # -- admission --------------------------------------------------------------------------------------------------

    def hear(self, event: Event) -> bool:
        if isinstance(event, PodGone):
            self._podgrouper.forget(event.key)
            if self._decides:
                self._usage.pod_gone(event.key)
        if self._is_kai_present or not self._cache.is_served:
            return False
        if isinstance(event, PodArrived) and self._podgrouper.holds(event):
            return True
        translated = self._translated(event)
        if len(translated) == 1 and translated[0] == event:
            return False
        for each in translated:
            self._onward(each)
        return True

    def round(self, now_s: float) -> Sequence[Place | Evict]:
        if self._is_kai_present != self._was_present:
            self._was_present = self._is_kai_present
            self._handed_over()
        if self._are_queues_new:
            self._put_queues()
            self._are_queues_new = False
        if self._decides:
            self._usage.measure(now_s)
        return ()

    def next_s(self) -> float | None:
        if not self._decides:
            return None
        moments = (self.discipline.next_s(), self._usage.next_s())
        return min((due_s for due_s in moments if due_s is not None), default=None)

    @property
    def is_idle(self) -> bool:
        return True

    async def synced(self) -> None:
        """The steps need the queues, and whether KAI itself runs, which would decide at the same time."""
        if self._presence is not None:
            await self._presence.look()
        await self._cache.synced()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run())
            group.create_task(self._status_writer.run())
            group.create_task(self._podgrouper.run())
            group.create_task(self._usage.run(lambda: self._decides))
            if self._presence is not None:
                group.create_task(self._presence.run(self._presence_changed))

    # -- the cycle --------------------------------------------------------------------------------------------------

    def measure(self, observer: CycleObserver, stopwatch: Callable[[], float]) -> None:
        """Report the durations and the counts of each cycle."""
        self._cycles = MeasuredCycles(observer, stopwatch, self.discipline, self._cache.group_uid)

    @property
    def queues(self) -> Mapping[str, Queue]:
        """Of which metrics are served: none while KAI itself decides."""
        return {} if self._is_kai_present else self._cache.queues

    def steps(self) -> Sequence[Step]:
        if self._is_kai_present:
            self._status_writer.pause()
            return ()
        if not self._cache.is_synced:
            return (self.keep,)
        steps = self.discipline.steps() if self._cycles is None else self._cycles.steps()
        return (*steps, self._note)

    def keep(self, state: CycleState) -> None:
        if not self._is_kai_present:
            self.discipline.keep(state)

    def words_of(self, group: str) -> str:
        return self._status_writer.words_of(group) if self._decides else ""

    def _note(self, _state: CycleState) -> None:
        self._status_writer.round_done(self._cache.queues)
        if self._cycles is not None:
            self._cycles.done()

    # -- internals --------------------------------------------------------------------------------------------------

    def _group_changed(self, before: Item | None, after: Item | None) -> None:
        if self._cycles is not None:
            self._cycles.group_changed(before, after)

    def _follow(self, kind: Kind, informer: Informer) -> None:
        if kind == KAI_POD_GROUPS:
            informer.on_change(self._group_changed)
        if kind == KAI_SHARDS:
            self._usage.follow(informer)
        else:
            self._status_writer.follow(kind, informer)

    def _put_queues(self) -> None:
        queues, config = self._cache.queues, self._cache.config
        label, warnings = (NODE_POOL_LABEL, ()) if config is None else (config.pool_label, config.warnings)
        shards = shards_of(self._cache.shards.values(), label)
        self._are_pools_new |= shards.pools != self.discipline.shards.pools
        self.discipline.put(fair_queues(queues.values(), label), shards)
        self._usage.shards_changed()
        self._warn((*warnings, *shards.warnings))
        for event in self._members.put_default(exists=DEFAULT_QUEUE in queues):
            self._take_in([event])
        if self._are_pools_new and not self._is_kai_present:
            self._report_again()

    def _warn(self, warnings: tuple[str, ...]) -> None:
        """Log each wrong value of a shard once."""
        for warning in warnings:
            if warning not in self._warned:
                _log.warning("%s", warning)
        self._warned = warnings

    def _translated(self, event: Event) -> list[Event]:
        return self._pools.translated(self._members.translated(event))

    def _take_in(self, events: Iterable[Event]) -> None:
        for event in self._pools.translated(events):
            self._onward(event)

    def _report_again(self) -> None:
        """All gangs and pods, translated anew."""
        self._take_in(self._pools.put_pools(self.discipline.shards.pools))
        for event in self._scheduling.watched.reported():
            for each in self._translated(event) if self._is_known(event) else ():
                self._onward(each)
        self._are_pools_new = False

    def _queues_changed(self) -> None:
        self._are_queues_new = True
        self._scheduling.wake()

    def _presence_changed(self) -> None:
        """KAI itself was installed or removed."""
        self._podgrouper.wake()
        self._scheduling.wake()

    def _handed_over(self) -> None:
        """Pods that were held are released when KAI comes. When it goes, pods are assigned to their queues again."""
        if self._is_kai_present:
            for event in self._podgrouper.release_all():
                self._onward(event)
            return
        self._report_again()

    def _is_known(self, event: PodArrived | PodBound) -> bool:
        """Whether the pod is in the facts: others are offered by the guard of the project."""
        return event.key in self._scheduling.cluster.pods or event.key in self._scheduling.cluster.pending

    @property
    def _decides(self) -> bool:
        return not self._is_kai_present and self._cache.is_synced

    @property
    def _is_kai_present(self) -> bool:
        return self._presence is not None and self._presence.is_there
