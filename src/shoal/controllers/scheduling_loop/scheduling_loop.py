"""The round, over and over: hear what happened, decide about queues and places together, hand it out.

One process has one brain, because a gang's quota and its places are one decision. Nothing in a round waits: while
others write, the next round may be decided, and what was decided already stands in the facts.

Promises: a change is decided upon in the round after it; a round places a bounded number of pods, so that the writing
of a large backlog begins at once and leases are kept; whatever breaks is logged, and once rounds have begun they go on
until the process ends. What breaks in making room for somebody keeps nobody from the room that is there.

Rejected: a scheduler and an admission controller that meet in the API only. Between the admission of a gang and the
arrival of its pods somebody else would take its room. And a brain that is begun again after a fault: what its hands had
begun to write would be lost, while it stands in the facts.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence

import msgspec
from msgspec import structs

from shoal.client.clock import Clock
from shoal.client.supervise import supervised
from shoal.controllers.scheduling_loop.cycle_size import CycleSize
from shoal.controllers.scheduling_loop.protocols import AdmissionDiscipline, PlanExecutor
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import STEPS, cycle
from shoal.engine.cycle_state import Step
from shoal.engine.events import Event
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Evict, Place, Plan
from shoal.store.watched.cluster import WatchedCluster

_log = logging.getLogger("shoal.brain")
_AGAIN_S = 1.0
_LONGEST_S = 30.0
"""How long is waited for what queues are decided by."""


class SchedulingLoopSettings(msgspec.Struct, frozen=True):
    steps: tuple[Step, ...] = STEPS
    seed: int = 42
    most_placed: int = 256
    """Pods placed in one round; a gang that goes beyond is placed whole all the same."""
    stopwatch: Callable[[], float] | None = None
    """Seconds from anywhere: with it, rounds that take long place fewer pods. Without it the same happens each time."""
    places: bool = True
    """False: pods are somebody else's to place, and only queues are decided here."""


class SchedulingLoop:
    def __init__(
        self,
        clock: Clock,
        make_world: Callable[[Callable[[], None]], WatchedCluster],
        placement: Callable[[Cluster], Placement],
        settings: SchedulingLoopSettings,
    ) -> None:
        """`make_world` is given what wakes the brain."""
        self.cluster = Cluster()
        self.intake = Intake(self.cluster)
        self.placement = placement(self.cluster)
        self.settings = settings
        self._size = CycleSize(settings.most_placed, is_timed=settings.stopwatch is not None)
        self.clock = clock
        self._wakeup = asyncio.Event()
        self.world = make_world(self.wake)
        self.executors: Sequence[PlanExecutor] = ()
        self.discipline: AdmissionDiscipline | None = None
        self.rounds = 0
        self._decided: list[Place | Evict] = []
        """By the desk, and not handed out yet."""
        self._is_cut_short = False
        """The round did without some of its steps, or of what happened."""
        self._unheard: list[Event] = []
        """Outcomes that could not be taken in."""

    def wake(self) -> None:
        """Something happened: a round is due."""
        self._wakeup.set()

    async def run(self) -> None:
        """Until cancelled."""
        await self.world.synced()
        async with asyncio.TaskGroup() as group:
            for executor in self.executors:
                group.create_task(supervised(self.clock, type(executor).__name__, executor.run))
            if self.discipline is not None:
                group.create_task(supervised(self.clock, type(self.discipline).__name__, self.discipline.run))
                await self._known_to(self.discipline)
            while True:
                self._wakeup.clear()
                due_s = self._round_or_story()
                if due_s is not None and due_s <= 0:
                    # Others get their turn between two rounds.
                    await asyncio.sleep(0)
                else:
                    await self._until(due_s)

    async def _known_to(self, discipline: AdmissionDiscipline) -> None:
        """Before it is known who is admitted, others would be given the places that are kept for them. Kinds that
        nobody may read keep the brain from nothing but that."""
        knowing = asyncio.ensure_future(discipline.synced())
        try:
            await asyncio.wait((knowing,), timeout=_LONGEST_S)
            if knowing.done():
                knowing.result()
            else:
                _log.warning("what queues are decided by is not known after %.0f s: it goes on without", _LONGEST_S)
        finally:
            knowing.cancel()

    def _round_or_story(self) -> float | None:
        try:
            return self.round()
        except Exception:  # noqa: BLE001 - what broke one round may be gone in the next; nobody else decides meanwhile
            _log.exception("a round broke")
            return _AGAIN_S

    def round(self) -> float | None:
        """Hear, decide, hand out; in how many seconds to look again, None: when something happens."""
        self.rounds += 1
        self._is_cut_short = False
        now_s = self.clock.seconds()
        discipline = self.discipline
        self._hear_all(discipline)
        # It stands in the facts already: should the rest of the round break, it is handed out in the next.
        self._decided += discipline.round(now_s) if discipline is not None else ()
        plan = self._placement_plan(now_s)
        if self._decided:
            plan = structs.replace(plan, intentions=(*self._decided, *plan.intentions))
            self._decided = []
        for executor in self.executors:
            self._hand_out(plan, executor)
        if plan.is_cut or (discipline is not None and not discipline.is_idle):
            return 0.0
        due_s = self.cluster.refusing.next_s()
        if discipline is not None and (discipline_s := discipline.next_s()) is not None:
            due_s = min(due_s, discipline_s)
        if self._is_cut_short:
            due_s = min(due_s, now_s + _AGAIN_S)
        return None if math.isinf(due_s) else max(due_s - now_s, 0.01)

    def _hand_out(self, plan: Plan, executor: PlanExecutor) -> None:
        try:
            executor.carry_out(plan)
        except Exception:  # noqa: BLE001 - whoever only counts what was decided must not keep it from being done
            _log.exception("%s could not take on a plan", type(executor).__name__)

    def _hear_all(self, discipline: AdmissionDiscipline | None) -> None:
        """What breaks the code keeps nothing else from being heard, and is told again."""
        outcomes, self._unheard = self._unheard, []
        for executor in self.executors:
            outcomes += executor.outcomes()
        self._unheard = [event for event in outcomes if not self._hear(event, discipline)]
        broken = [event for event in self.world.drain() if not self._hear(event, discipline)]
        for event in broken:
            self.world.tell_again(event)
        self._is_cut_short = bool(self._unheard or broken)

    def _hear(self, event: Event, discipline: AdmissionDiscipline | None) -> bool:
        try:
            if discipline is None or not discipline.hear(event):
                self.intake.apply(event)
        except Exception:  # noqa: BLE001 - whatever it is, it is about this one
            _log.exception("a %s could not be taken in", type(event).__name__)
            return False
        return True

    def _placement_plan(self, now_s: float) -> Plan:
        settings = self.settings
        if not settings.places:
            self.cluster.refusing.expire(now_s)
            return Plan(now_s, self.cluster.version, ())
        try:
            return self._cycle(now_s, settings.steps)
        except Exception:  # noqa: BLE001 - who needs nobody's room is placed whatever breaks in making some
            _log.exception("a round broke: it is tried without making room")
            self._is_cut_short = True
            return self._cycle(now_s, settings.steps[:1])

    def _cycle(self, now_s: float, steps: Sequence[Step]) -> Plan:
        settings, size = self.settings, self._size
        began = settings.stopwatch() if settings.stopwatch is not None else 0.0
        plan = cycle(self.cluster, self.placement, now_s=now_s, seed=settings.seed, steps=steps, most=size.now)
        if settings.stopwatch is not None:
            size.note(settings.stopwatch() - began, is_cut=plan.is_cut)
        return plan

    async def _until(self, due_s: float | None) -> None:
        """Something happens, or it is time."""
        timer = None if due_s is None else self.clock.call_later(due_s, self._wakeup.set)
        try:
            await self._wakeup.wait()
        finally:
            if timer is not None:
                timer.cancel()
