"""Lets Volcano's actions decide about the pods of its groups in the scheduling loop, and writes what they decided.

The decisions are those of the engine's discipline `volcano`, by the steps of the cycle. Queues, groups and the
configuration of Volcano's scheduler come from watch caches. A pod of Volcano's scheduler without a group is held back
until the controller of pod groups has made one for it.

Guarantees: while Volcano itself runs, nothing is decided or written here. After a restart the objects contain all that
is known: which groups are admitted, and which pods run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from shoal.client.presence import VOLCANO, Presence
from shoal.client.served import Served
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.controllers.volcano.group_cache import GroupCache
from shoal.controllers.volcano.measured_sessions import MeasuredSessions, SessionObserver
from shoal.controllers.volcano.scheduler_configuration import SchedulerConfigurationWatch
from shoal.controllers.volcano.status_controller import StatusController
from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.events import Event, PodArrived, PodBound, PodGone
from shoal.engine.fitter import Fitter
from shoal.engine.ledger import Ledger
from shoal.engine.plan import Evict, Place
from shoal.engine.queues.disciplines.volcano.configuration import VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.discipline import Volcano
from shoal.engine.queues.disciplines.volcano.objects import SCHEDULER, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.session import Session
from shoal.engine.queues.disciplines.volcano.session_result import SessionResult, result_of, waiting_words


class VolcanoAdmission:
    """An admission discipline, which holds back pods without a group, and a queue discipline."""

    def __init__(
        self,
        context: Context,
        served: Served,
        scheduling: SchedulerState,
        presence: Presence | None = None,
        onward: Callable[[PodArrived], None] | None = None,
        namespace: str = VOLCANO.namespace,
        *,
        places: bool = True,
    ) -> None:
        """`onward` receives a pod that may be placed; by default it enters the facts. `namespace`: where the ConfigMap
        of Volcano's scheduler is. `places`: whether the scheduling loop places pods; otherwise groups are admitted, so
        that the pods of jobs are created, and another scheduler places them."""
        self._places = places
        self._scheduling = scheduling
        self._presence = presence
        if presence is not None:
            presence.on_change(self._presence_changed)
        self._onward = onward or scheduling.intake.apply
        self._cache = GroupCache(context, served, scheduling.wake)
        self.discipline = Volcano(self._cache.known.facts, admit=self._cache.known.admit)
        self._configuration = SchedulerConfigurationWatch(context, self._configured, namespace)
        self._context = context
        self._served = served
        self._statuses: StatusController | None = None
        self._reported: Session | None = None
        """The session of which the statuses were last written."""
        self._sessions: MeasuredSessions | None = None
        self._held: dict[str, PodArrived] = {}
        self._is_served = asyncio.Event()
        for kind in (VOLCANO_POD_GROUPS, VOLCANO_QUEUES):
            served.when_there(kind, lambda _: self._is_served.set())

    # -- admission --------------------------------------------------------------------------------------------------

    def hear(self, event: Event) -> bool:
        if isinstance(event, PodArrived):
            if self._lacks_group(event):
                self._held[event.key] = event
                return True
            self._held.pop(event.key, None)
        elif isinstance(event, PodBound | PodGone):
            self._held.pop(event.key, None)
        return False

    def round(self, now_s: float) -> Sequence[Place | Evict]:
        self._cache.tree()
        if not self._places and self._decides:
            self._admit_only(now_s)
        if self._held and not self._is_volcano_absent():
            held, self._held = self._held, {}
            for event in held.values():
                self._onward(event)
        return ()

    def next_s(self) -> float | None:
        return self.discipline.next_s() if self._decides else None

    @property
    def is_idle(self) -> bool:
        return True

    async def synced(self) -> None:
        """The sessions need the queues and groups, and whether Volcano itself runs."""
        if self._presence is not None:
            await self._presence.look()
        await self._configuration.synced()
        await self._cache.synced()

    async def run(self) -> None:
        """Writes statuses of groups and queues."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._configuration.run())
            while not self._cache.has_both_kinds:
                self._is_served.clear()
                await self._is_served.wait()
            self._statuses = StatusController(self._context, self._is_volcano_absent, self._result)
            group.create_task(self._statuses.loop.run())

    # -- metrics ----------------------------------------------------------------------------------------------------

    def measure(self, observer: SessionObserver, stopwatch: Callable[[], float]) -> None:
        """Report the durations and the evictions of each session."""
        self._sessions = MeasuredSessions(observer, stopwatch, self.discipline)

    @property
    def session(self) -> Session | None:
        """The last session; None while Volcano itself decides."""
        return self.discipline.session if self._decides else None

    def group_phases(self) -> Counter[tuple[str, str]]:
        """The number of groups by queue and phase."""
        return Counter((group.queue, group.status.phase or "Pending") for group in self._cache.groups())

    # -- the cycle --------------------------------------------------------------------------------------------------

    def steps(self) -> Sequence[Step]:
        if not self._is_volcano_absent():
            return ()
        if not self._cache.is_synced:
            return (self.keep,)
        steps = self.discipline.steps() if self._sessions is None else self._sessions.steps()
        return (*steps, self._note)

    def keep(self, state: CycleState) -> None:
        if self._is_volcano_absent():
            self.discipline.keep(state)

    def words_of(self, group: str) -> str:
        session = self.discipline.session
        if session is None or not self._decides or group not in self._cache.known:
            return ""
        return waiting_words(session, self._cache.known, self._cache.tree(), group)

    def _note(self, _state: CycleState) -> None:
        """Statuses of queues and groups follow from each session."""
        if self._sessions is not None:
            self._sessions.done()
        session = self.discipline.session
        if self._reported is not session:
            self._reported = session
            if self._statuses is not None:
                self._statuses.wake(is_urgent=session is not None and bool(session.enqueued))

    # -- internals --------------------------------------------------------------------------------------------------

    def _admit_only(self, now_s: float) -> None:
        cluster, placement = self._scheduling.cluster, self._scheduling.placement
        ledger = Ledger(cluster)
        state = CycleState(cluster, placement, ledger, Fitter(placement, ledger, 0), now_s)
        for step in self.discipline.admission_steps():
            step(state)
        self._note(state)

    def _result(self, groups: Sequence[QueuedPodGroup]) -> SessionResult | None:
        """None as long as nothing was decided here."""
        session = self.discipline.session
        if session is None or not self._decides:
            return None
        return result_of(session, self._cache.known, self._cache.tree(), groups)

    def _presence_changed(self) -> None:
        self._scheduling.wake()
        if self._statuses is not None:
            self._statuses.wake()

    def _configured(self, configuration: VolcanoConfiguration) -> None:
        self.discipline.configure(configuration)
        self._scheduling.wake()

    @property
    def _decides(self) -> bool:
        return self._is_volcano_absent() and self._cache.is_synced

    def _lacks_group(self, event: PodArrived) -> bool:
        if event.who.group or not self._cache.has_groups or not self._is_volcano_absent():
            return False
        view = self._scheduling.watched.view(event.key)
        return view is not None and view.scheduler == SCHEDULER

    def _is_volcano_absent(self) -> bool:
        return self._presence is None or not self._presence.is_there
