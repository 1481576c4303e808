"""Runs scheduling cycles: take in events, decide about queues and placement together, hand out the plan.

One process has one scheduling loop, because a gang's quota and its nodes are one decision. A cycle does not wait: while
executors write, the next cycle may run, and earlier decisions are in the facts already.

Guarantees: a change is considered in the next cycle; a cycle places a bounded number of pods, so that the writes of a
large backlog begin at once and leases are renewed; errors are logged, and cycles continue until the process ends. An
error in preemption does not prevent the placement of pods that fit without it.

Rejected: a scheduler and an admission controller that communicate through the API only: between the admission of a gang
and the arrival of its pods another pod would take its capacity. Also rejected: restarting the loop after an error.
Writes that its executors had begun would be lost while the facts count them.
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
from shoal.controllers.scheduling_loop.queue_steps import QueueSteps
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import STEPS, cycle
from shoal.engine.cycle_state import Step
from shoal.engine.events import Event
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Evict, Place, Plan
from shoal.store.watched.cluster import WatchedCluster

_log = logging.getLogger("shoal.scheduling")
_AGAIN_S = 1.0
_LONGEST_S = 30.0
"""How long the loop waits for the disciplines at its start."""


class SchedulingLoopSettings(msgspec.Struct, frozen=True):
    steps: tuple[Step, ...] = STEPS
    seed: int = 42
    most_placed: int = 256
    """Pods placed in one cycle; a larger gang is still placed as a whole."""
    stopwatch: Callable[[], float] | None = None
    """A clock for durations: with it, slow cycles place fewer pods. Without it the result is reproducible."""
    places: bool = True
    """False: another scheduler places pods, and only queues are decided here."""
    again_s: float | None = None
    """While pods wait, a cycle is due after this time: what the steps may do depends on how long pods have run or
    waited. None: it does not."""
    waiting_reason: str = "Unschedulable"
    """In the condition `PodScheduled` of pods for which there is no node."""


class SchedulingLoop:
    def __init__(
        self,
        clock: Clock,
        make_world: Callable[[Callable[[], None]], WatchedCluster],
        placement: Callable[[Cluster], Placement],
        settings: SchedulingLoopSettings,
    ) -> None:
        """`make_world` receives the function that requests a cycle."""
        self.cluster = Cluster()
        self.intake = Intake(self.cluster)
        self.placement = placement(self.cluster)
        self.settings = settings
        self._size = CycleSize(settings.most_placed, is_timed=settings.stopwatch is not None)
        self.clock = clock
        self._wakeup = asyncio.Event()
        self.watched = make_world(self.wake)
        self.executors: Sequence[PlanExecutor] = ()
        self.discipline: AdmissionDiscipline | None = None
        self.queue_steps = QueueSteps(settings.stopwatch)
        self.held_pods: dict[str, tuple[str, str]] = {}
        """Pods that a discipline keeps out of the facts, with the reason and message of their condition."""
        self.rounds = 0
        self._decided: list[Place | Evict] = []
        """Decisions of the disciplines that were not handed out yet."""
        self._is_cut_short = False
        """The cycle left out some of its steps or events."""
        self._unheard: list[Event] = []
        """Outcomes that could not be applied."""

    def wake(self) -> None:
        """Request a scheduling cycle."""
        self._wakeup.set()

    def queue_words(self, group: str) -> str:
        """Why a queue discipline holds the group back; empty if none does."""
        return self.queue_steps.words_of(group)

    async def run(self) -> None:
        """Runs until cancelled."""
        await self.watched.synced()
        async with asyncio.TaskGroup() as group:
            for executor in self.executors:
                group.create_task(supervised(self.clock, type(executor).__name__, executor.run))
            if self.discipline is not None:
                group.create_task(supervised(self.clock, type(self.discipline).__name__, self.discipline.run))
                await self._known_to(self.discipline)
            while True:
                self._wakeup.clear()
                due_s = self._guarded_round()
                if due_s is not None and due_s <= 0:
                    # Other tasks run between two cycles.
                    await asyncio.sleep(0)
                else:
                    await self._until(due_s)

    async def _known_to(self, discipline: AdmissionDiscipline) -> None:
        """Waits until the disciplines know the admitted workloads, so that other pods do not get their reserved nodes.

        Kinds that may not be read delay the loop by this wait only.
        """
        knowing = asyncio.ensure_future(discipline.synced())
        try:
            await asyncio.wait((knowing,), timeout=_LONGEST_S)
            if knowing.done():
                knowing.result()
            else:
                _log.warning("queues are not synced after %.0f s; scheduling starts without them", _LONGEST_S)
        finally:
            knowing.cancel()

    def _guarded_round(self) -> float | None:
        try:
            return self.round()
        except Exception:  # noqa: BLE001 - the cause may be gone in the next cycle, and no other process decides meanwhile
            _log.exception("scheduling cycle failed")
            return _AGAIN_S

    def round(self) -> float | None:
        """Run one cycle; the seconds until the next one is due, None: at the next event."""
        self.rounds += 1
        self._is_cut_short = False
        now_s = self.clock.seconds()
        discipline = self.discipline
        self._hear_all(discipline)
        # These decisions are in the facts already: if the rest of the cycle fails, the next one hands them out.
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
        if (queues_s := self.queue_steps.next_s()) is not None:
            due_s = min(due_s, queues_s)
        if self._is_cut_short:
            due_s = min(due_s, now_s + _AGAIN_S)
        if self.settings.again_s is not None and self.cluster.pending:
            due_s = min(due_s, now_s + self.settings.again_s)
        return None if math.isinf(due_s) else max(due_s - now_s, 0.01)

    def _hand_out(self, plan: Plan, executor: PlanExecutor) -> None:
        try:
            executor.carry_out(plan)
        except Exception:  # noqa: BLE001 - an executor that only counts must not prevent the others
            _log.exception("%s failed on a plan", type(executor).__name__)

    def _hear_all(self, discipline: AdmissionDiscipline | None) -> None:
        """Apply all events; one that raises an error is applied again in the next cycle."""
        outcomes, self._unheard = self._unheard, []
        for executor in self.executors:
            outcomes += executor.outcomes()
        self._unheard = [event for event in outcomes if not self._hear(event, discipline)]
        broken = [event for event in self.watched.drain() if not self._hear(event, discipline)]
        for event in broken:
            self.watched.report_again(event)
        self._is_cut_short = bool(self._unheard or broken)

    def _hear(self, event: Event, discipline: AdmissionDiscipline | None) -> bool:
        try:
            if discipline is None or not discipline.hear(event):
                self.intake.apply(event)
        except Exception:  # noqa: BLE001 - any error concerns this event only
            _log.exception("event %s could not be applied", type(event).__name__)
            return False
        return True

    def _placement_plan(self, now_s: float) -> Plan:
        settings = self.settings
        if not settings.places:
            self.cluster.refusing.expire(now_s)
            return Plan(now_s, self.cluster.version, ())
        try:
            return self._cycle(now_s, self.queue_steps.before(settings.steps, now_s))
        except Exception:  # noqa: BLE001 - pods that fit without preemption are placed whatever fails in preemption
            _log.exception("scheduling cycle failed; trying it without preemption")
            self._is_cut_short = True
            return self._cycle(now_s, self.queue_steps.before(settings.steps[:1], now_s))

    def _cycle(self, now_s: float, steps: Sequence[Step]) -> Plan:
        settings, size = self.settings, self._size
        began = settings.stopwatch() if settings.stopwatch is not None else 0.0
        plan = cycle(self.cluster, self.placement, now_s=now_s, seed=settings.seed, steps=steps, most=size.now)
        if settings.stopwatch is not None:
            size.note(settings.stopwatch() - began, is_cut=plan.is_cut, reading_s=self.queue_steps.reading_s)
        return plan

    async def _until(self, due_s: float | None) -> None:
        """Wait for an event, or until the time is up."""
        timer = None if due_s is None else self.clock.call_later(due_s, self._wakeup.set)
        try:
            await self._wakeup.wait()
        finally:
            if timer is not None:
                timer.cancel()
