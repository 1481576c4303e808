"""Carries out the decisions of scheduling cycles about pods, concurrently with the cycles.

A cycle passes its plan on and continues; a later cycle gets the results. Bindings, evictions and nominations come
first, many at once; messages for users come last. No state is needed across restarts: the pods contain everything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from shoal.client.context import Context
from shoal.client.supervise import supervised
from shoal.controllers.scheduler.assumed_pod_expiry import AssumedPodExpiry
from shoal.controllers.scheduler.bindings import Bindings
from shoal.controllers.scheduler.evictions import Evictions
from shoal.controllers.scheduler.nominations import Nominations
from shoal.controllers.scheduler.outcomes import Outcomes
from shoal.controllers.scheduler.partial_gangs import PartialGangs
from shoal.controllers.scheduler.pod_conditions import UNSCHEDULABLE
from shoal.controllers.scheduler.pod_protocols import PodViews, Writer
from shoal.controllers.scheduler.refusals import Refusals
from shoal.controllers.scheduler.write_pool import WritePool
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.events import Event
from shoal.engine.plan import Evict, Intention, Move, Nominate, Place, Plan, Refuse, RefuseGroup

_log = logging.getLogger("shoal.scheduler")
_MOST_BINDINGS = 64
_MOST_OTHERS = 16


class SchedulerExecutor:
    """`PlanExecutor` for pods."""

    def __init__(
        self,
        context: Context,
        scheduling: SchedulerState,
        watched: PodViews,
        writer: Writer | None = None,
        rolled_back: Callable[[], None] = lambda: None,
        waiting_reason: str = UNSCHEDULABLE,
    ) -> None:
        """`rolled_back`: called for each partial gang that is evicted to start again. `waiting_reason`: in the
        condition of pods for which there is no node."""
        self._scheduling = scheduling
        self._clock = context.clock
        self._binders = WritePool(_MOST_BINDINGS)
        self._others = WritePool(_MOST_OTHERS)
        # Bindings come before Events.
        context.events.give_way(lambda: len(self._binders) > 0)
        self._outcomes = Outcomes(scheduling.cluster, scheduling.wake)
        self._bindings = Bindings(context, scheduling, watched, self._binders, self._outcomes, writer)
        self._endings = Evictions(context, scheduling, watched, self._others, self._outcomes, self._bindings)
        self._nominations = Nominations(context, watched, self._others)
        self._refusals = Refusals(context, scheduling, watched, waiting_reason)
        self._half_gangs = PartialGangs(context, scheduling, watched, self._endings, self._outcomes, rolled_back)
        self._forgotten = AssumedPodExpiry(context, scheduling, watched, self._bindings, self._endings, self._outcomes)

    def carry_out(self, plan: Plan) -> None:
        nominated: dict[str, str] = {}
        placed: set[str] = set()
        for intention in plan.intentions:
            if isinstance(intention, Place):
                placed.add(intention.pod)
            elif isinstance(intention, Nominate):
                nominated[intention.pod] = intention.node
            try:
                self._take(intention)
            except Exception:  # noqa: BLE001 - an error for one pod must not affect the others; it is retried
                _log.exception("cannot take on %s", intention)
        for pod in self._nominations.take(nominated, placed, is_cut=plan.is_cut):
            self._refusals.look(pod)

    def _take(self, intention: Intention) -> None:
        if isinstance(intention, Place):
            self._bindings.take(intention)
        elif isinstance(intention, Evict | Move):
            self._endings.take(intention)
        elif isinstance(intention, Refuse | RefuseGroup):
            self._refusals.take(intention)
            for pod in self._refused(intention):
                self._nominations.take_back(pod)
                self._bindings.refused(pod)

    def _refused(self, refused: Refuse | RefuseGroup) -> list[str]:
        if isinstance(refused, Refuse):
            return [refused.pod]
        gang = self._scheduling.cluster.gangs.find(refused.group)
        return [] if gang is None else list(gang.waiting)

    def outcomes(self) -> Sequence[Event]:
        return self._outcomes.take()

    async def run(self) -> None:
        # Each part is supervised by itself: an error in messages for users must not end bindings in progress.
        async with asyncio.TaskGroup() as group:
            for part in (self._binders, self._others, self._refusals, self._half_gangs, self._forgotten):
                group.create_task(supervised(self._clock, type(part).__name__, part.run))
