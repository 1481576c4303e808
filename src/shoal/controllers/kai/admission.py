"""Lets KAI's fair share decide about the pods of its queues in the scheduling loop, and writes what was decided.

The decisions are those of the engine's discipline `fairshare`, by the steps of the cycle. Queues come from a watch
cache; which gang or pod is in which queue is part of the facts. A pod of KAI's scheduler is held back from the facts
until its group is written.

Guarantees: while KAI itself runs, nothing is decided or written here. After a restart the objects contain all that is
known: which pods run, and since when a gang runs below its minimum.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from shoal.client.context import Context
from shoal.client.presence import Presence
from shoal.client.served import Served
from shoal.controllers.kai.podgrouper import PodGrouper
from shoal.controllers.kai.queue_cache import QueueCache
from shoal.controllers.kai.status_writer import KaiStatusWriter
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.events import Event, PodArrived, PodBound, PodGone
from shoal.engine.plan import Evict, Place
from shoal.engine.queues.disciplines.kai.fair_queues import fair_queues
from shoal.engine.queues.disciplines.kai.fairshare import Fairshare
from shoal.engine.queues.disciplines.kai.queue_members import DEFAULT_QUEUE, QueueMembers


class KaiAdmission:
    """An admission discipline, which holds back pods without a group, and a queue discipline."""

    def __init__(
        self,
        context: Context,
        served: Served,
        scheduling: SchedulerState,
        onward: Callable[[Event], None] | None = None,
        presence: Presence | None = None,
    ) -> None:
        """`onward` receives the events that enter the facts."""
        self._scheduling = scheduling
        self._presence = presence
        self._onward = onward or scheduling.intake.apply
        self.discipline = Fairshare()
        self._members = QueueMembers()
        self._was_present = False
        self._are_queues_new = True
        self._status_writer = KaiStatusWriter(context, scheduling.cluster, self.discipline)
        self._cache = QueueCache(context, served, self._queues_changed, self._status_writer.follow)
        self._podgrouper = PodGrouper(context, served, lambda: not self._is_kai_present)

    # -- admission --------------------------------------------------------------------------------------------------

    def hear(self, event: Event) -> bool:
        if isinstance(event, PodGone):
            self._podgrouper.forget(event.key)
        if self._is_kai_present or not self._cache.is_served:
            return False
        if isinstance(event, PodArrived) and self._podgrouper.holds(event):
            return True
        translated = self._members.translated(event)
        if len(translated) == 1 and translated[0] == event:
            return False
        for each in translated:
            self._onward(each)
        return True

    def round(self, now_s: float) -> Sequence[Place | Evict]:  # noqa: ARG002 - the signature is the protocol's
        if self._is_kai_present != self._was_present:
            self._was_present = self._is_kai_present
            self._handed_over()
        if self._are_queues_new:
            self._are_queues_new = False
            queues = self._cache.queues
            self.discipline.queues = tuple(fair_queues(queues.values()))
            for event in self._members.put_default(exists=DEFAULT_QUEUE in queues):
                self._onward(event)
        return ()

    def next_s(self) -> float | None:
        return self.discipline.next_s() if self._decides else None

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
            group.create_task(self._status_writer.run())
            group.create_task(self._podgrouper.run())
            if self._presence is not None:
                group.create_task(self._presence.run(self._presence_changed))

    # -- the cycle --------------------------------------------------------------------------------------------------

    def steps(self) -> Sequence[Step]:
        if self._is_kai_present:
            self._status_writer.pause()
            return ()
        if not self._cache.is_synced:
            return (self.keep,)
        return (*self.discipline.steps(), self._note)

    def keep(self, state: CycleState) -> None:
        if not self._is_kai_present:
            self.discipline.keep(state)

    def words_of(self, group: str) -> str:
        return self._status_writer.words_of(group) if self._decides else ""

    def _note(self, _state: CycleState) -> None:
        self._status_writer.round_done(self._cache.queues)

    # -- internals --------------------------------------------------------------------------------------------------

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
        for event in self._scheduling.watched.reported():
            for each in self._members.translated(event) if self._is_known(event) else ():
                self._onward(each)

    def _is_known(self, event: PodArrived | PodBound) -> bool:
        """Whether the pod is in the facts: others are offered by the guard of the project."""
        return event.key in self._scheduling.cluster.pods or event.key in self._scheduling.cluster.pending

    @property
    def _decides(self) -> bool:
        return not self._is_kai_present and self._cache.is_synced

    @property
    def _is_kai_present(self) -> bool:
        return self._presence is not None and self._presence.is_there
