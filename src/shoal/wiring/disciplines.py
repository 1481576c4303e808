"""Adds the admission disciplines to a scheduling loop: one for the queues of each project. The first discipline that
holds a pod back decides about it.

Move reservations come first: no other discipline decides about replacements of moved pods. Volcano's and KAI's come
before Kueue's: a pod that they release may still wait for a Workload. Then the guard of cost budgets holds back pods of
teams that have spent theirs. Kueue's is the last, because its pods replace
their placeholders in the facts, where no discipline may hold them back any more.

In a scheduling cycle the steps of Volcano's queues come first, then those of KAI's, then those of the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shoal.client import presence
from shoal.client.presence import Presence
from shoal.controllers.scheduling_loop.disciplines import Disciplines, Onward
from shoal.wiring.run_choice import KAI, QUEUES, SCHEDULER, SCHEDULER_OF, VOLCANO, RunChoice

if TYPE_CHECKING:
    from shoal.api.kueue import Workload
    from shoal.client.context import Context
    from shoal.client.served import Served
    from shoal.controllers.queues.admission_loop import QueueAdmission
    from shoal.controllers.scheduler.move_reservations import MoveReservations
    from shoal.controllers.scheduling_loop.budget_guard import BudgetGuard
    from shoal.controllers.scheduling_loop.protocols import AdmissionDiscipline
    from shoal.controllers.scheduling_loop.scheduling_loop import SchedulingLoop
    from shoal.engine.events import Event
    from shoal.store.watched.cost_budgets import WatchedCostBudgets
    from shoal.store.watched.queues import WatchedQueues

    Queues = tuple[QueueAdmission, WatchedQueues]

_PATIENCE_S = 10.0
ContextOf = Callable[[str], "Context"]
"""The context of the controller of that name."""


def add_disciplines(
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
        disciplines.add(lambda onward: _move_reservations(scheduling, onward))
    if volcano is not None:
        from shoal.controllers.volcano.admission import VolcanoAdmission

        context, namespace = context_of(VOLCANO), choice.own.namespaces.volcano

        def volcano_admission(onward: Onward) -> VolcanoAdmission:
            places = SCHEDULER in choice.controllers
            made = VolcanoAdmission(context, served, scheduling, volcano, onward, namespace, places=places)
            scheduling.queue_steps.add(made)
            return made

        _add(disciplines, scheduling, VOLCANO, volcano, volcano_admission)
    if KAI in choice.controllers:
        from shoal.controllers.kai.admission import KaiAdmission

        own = context_of(KAI)
        beside = Presence(own, presence.KAI, choice.own.namespaces.kai)

        def kai_admission(onward: Onward) -> KaiAdmission:
            made = KaiAdmission(own, served, scheduling, onward, beside, _fetched)
            scheduling.queue_steps.add(made)
            return made

        _add(disciplines, scheduling, KAI, beside, kai_admission)
    budgets = _cost_budgets(context_of, choice)
    if QUEUES in choice.controllers:
        queues = _queues(scheduling, context_of(QUEUES), served, choice, (kueue, budgets))
    if budgets is not None:
        disciplines.add(lambda onward: _budget_guard(scheduling, budgets, onward, queues))
    if queues is not None:
        admission = queues[0]
        disciplines.add(lambda _: admission)
    if moves or budgets is not None or {VOLCANO, KAI, QUEUES} & {*choice.controllers}:
        scheduling.discipline = disciplines
    return queues


async def _fetched(address: str) -> str:
    """Few questions are asked, each in a session of its own."""
    import aiohttp

    from shoal.client.fetched_text import fetched_text

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_PATIENCE_S)) as session:
        return await fetched_text(session, address)


def _add(
    disciplines: Disciplines,
    scheduling: SchedulingLoop,
    part: str,
    presence: Presence,
    make: Callable[[Onward], AdmissionDiscipline],
) -> None:
    """Adds the discipline of a project behind a guard, which leaves the pods of the project's scheduler to the project
    while it runs. Pods that the discipline releases when the project starts are left to it as well."""
    from shoal.controllers.scheduling_loop.foreign_scheduler import ForeignSchedulerGuard

    guards: list[ForeignSchedulerGuard] = []

    def make_guard(onward: Onward) -> ForeignSchedulerGuard:
        guards.append(ForeignSchedulerGuard(scheduling, SCHEDULER_OF[part], lambda: presence.is_there, onward))
        return guards[0]

    def make_discipline(onward: Onward) -> AdmissionDiscipline:
        def release(event: Event) -> None:
            if not guards[0].hear(event):
                onward(event)

        return make(release)

    disciplines.add(make_guard)
    disciplines.add(make_discipline)


def _move_reservations(scheduling: SchedulingLoop, onward: Callable[[Event], None]) -> MoveReservations:
    from shoal.controllers.scheduler.move_reservations import MoveReservations

    found = MoveReservations(scheduling, onward)
    scheduling.executors = (*scheduling.executors, found)
    return found


def _cost_budgets(context_of: ContextOf, choice: RunChoice) -> WatchedCostBudgets | None:
    """What budgets have spent, read with the permissions of the part that decides by them."""
    part = next((one for one in (SCHEDULER, QUEUES) if one in choice.controllers), None)
    if part is None:
        return None
    from shoal.store.watched.cost_budgets import WatchedCostBudgets

    return WatchedCostBudgets(context_of(part), choice.own.leader_election.resource_namespace)


def _budget_guard(
    scheduling: SchedulingLoop, budgets: WatchedCostBudgets, onward: Callable[[Event], None], queues: Queues | None
) -> BudgetGuard:
    from shoal.controllers.scheduling_loop.budget_guard import BudgetGuard

    def workload(key: str) -> Workload | None:
        """The current one of an elastic job."""
        return None if queues is None else queues[1].workload(queues[0].arrivals.replacement(key))

    clock, places = scheduling.clock, scheduling.settings.places
    return BudgetGuard(scheduling, budgets, onward, clock.seconds, places=places, workload=workload)


def _queues(
    scheduling: SchedulingLoop,
    context: Context,
    served: Served,
    choice: RunChoice,
    by: tuple[Presence, WatchedCostBudgets | None],
) -> Queues:
    from shoal.controllers.queues.admission_loop import QueueAdmission
    from shoal.store.watched.queues import WatchedQueues

    kueue, budgets = by
    watched = WatchedQueues(context, served, scheduling.wake, choice.kueue, choice.own.namespaces.kueue, budgets)
    return QueueAdmission(context, watched, scheduling, kueue), watched
