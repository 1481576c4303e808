"""The desks of a brain: each project's queues have their own, and the first to keep a pod keeps it.

Move reservations come first: no other discipline decides about successors of moved pods. Volcano's and KAI's come
before Kueue's: a pod that they release may still wait for a Workload. Kueue's is the last, because its pods replace
their placeholders in the facts, where no discipline may hold them back any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shoal.client import presence
from shoal.client.presence import Presence
from shoal.controllers.scheduling_loop.disciplines import Disciplines, Onward
from shoal.wiring.run_choice import KAI, QUEUES, SCHEDULER, SCHEDULER_OF, VOLCANO, RunChoice

if TYPE_CHECKING:
    from shoal.client.context import Context
    from shoal.client.served import Served
    from shoal.controllers.queues.admission_loop import QueueAdmission
    from shoal.controllers.scheduler.move_reservations import MoveReservations
    from shoal.controllers.scheduling_loop.protocols import AdmissionDiscipline
    from shoal.controllers.scheduling_loop.scheduling_loop import SchedulingLoop
    from shoal.engine.events import Event
    from shoal.store.watched.queues import WatchedQueues

    Queues = tuple[QueueAdmission, WatchedQueues]

ContextOf = Callable[[str], "Context"]
"""By the name of a part."""


def give_desks(
    scheduling: SchedulingLoop,
    context_of: ContextOf,
    served: Served,
    choice: RunChoice,
    kueue: Presence,
    volcano: Presence | None,
) -> Queues | None:
    """Returns Kueue's discipline, for its metrics."""
    disciplines, queues = Disciplines(scheduling.intake, scheduling.clock), None
    moves = SCHEDULER in choice.controllers and choice.own.preemption.moves
    if moves:
        disciplines.add(lambda onward: _successors(scheduling, onward))
    if volcano is not None:
        from shoal.controllers.volcano.admission import VolcanoAdmission

        context = context_of(VOLCANO)
        _add(
            disciplines,
            scheduling,
            VOLCANO,
            volcano,
            lambda onward: VolcanoAdmission(context, served, scheduling, volcano, onward),
        )
    if KAI in choice.controllers:
        from shoal.controllers.kai.admission import KaiAdmission

        own = context_of(KAI)
        beside = Presence(own, presence.KAI, choice.own.namespaces.kai)
        _add(disciplines, scheduling, KAI, beside, lambda onward: KaiAdmission(own, served, scheduling, onward, beside))
    if QUEUES in choice.controllers:
        queues = found = _queues(scheduling, context_of(QUEUES), served, choice, kueue)
        disciplines.add(lambda _: found[0])
    if moves or {VOLCANO, KAI, QUEUES} & {*choice.controllers}:
        scheduling.discipline = disciplines
    return queues


def _add(
    disciplines: Disciplines,
    scheduling: SchedulingLoop,
    part: str,
    there: Presence,
    make: Callable[[Onward], AdmissionDiscipline],
) -> None:
    """A project's desk, behind one that leaves its scheduler's pods to it where it is here itself. What the second lets
    go when the project comes is left to it as well."""
    from shoal.controllers.scheduling_loop.foreign_scheduler import ForeignSchedulerGuard

    leaving: list[ForeignSchedulerGuard] = []

    def make_leaving(onward: Onward) -> ForeignSchedulerGuard:
        leaving.append(ForeignSchedulerGuard(scheduling, SCHEDULER_OF[part], lambda: there.is_there, onward))
        return leaving[0]

    def make_own(onward: Onward) -> AdmissionDiscipline:
        def let_go(event: Event) -> None:
            if not leaving[0].hear(event):
                onward(event)

        return make(let_go)

    disciplines.add(make_leaving)
    disciplines.add(make_own)


def _successors(scheduling: SchedulingLoop, onward: Callable[[Event], None]) -> MoveReservations:
    from shoal.controllers.scheduler.move_reservations import MoveReservations

    found = MoveReservations(scheduling, onward)
    scheduling.executors = (*scheduling.executors, found)
    return found


def _queues(scheduling: SchedulingLoop, context: Context, served: Served, choice: RunChoice, kueue: Presence) -> Queues:
    from shoal.controllers.queues.admission_loop import QueueAdmission
    from shoal.store.watched.queues import WatchedQueues

    watched = WatchedQueues(context, served, scheduling.wake, choice.kueue, choice.own.namespaces.kueue)
    return QueueAdmission(context, watched, scheduling, kueue), watched
