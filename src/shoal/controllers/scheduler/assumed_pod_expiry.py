"""Expires assumed decisions that no write carries out: a pod that has a node and is not being bound, and a victim that
is not being evicted.

The facts count a decision from the moment it is made. An error between a scheduling cycle and its writes leaves the
capacity assumed for a pod that will not be bound. Whatever the error was, a pod that is found twice without a write in
progress is read from the server, and the decision is undone where the pod is still unbound, or still runs.

Guarantees: no capacity stays assumed for a pod that is not being bound; no decision is undone whose write may still
happen or has happened.

Rejected: only guarding the places in the code where an error is expected.
"""

from __future__ import annotations

import logging

from shoal.client.context import Context
from shoal.controllers.scheduler.bindings import Bindings
from shoal.controllers.scheduler.evictions import Evictions
from shoal.controllers.scheduler.outcomes import Outcomes
from shoal.controllers.scheduler.pod_protocols import PodViews
from shoal.controllers.scheduler.pod_state import ServerPodState, state_of
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.events import PodBound, PodRejected, PodStays
from shoal.engine.pods import PodAllocation
from shoal.store.watched.pod_views import PodView

_log = logging.getLogger("shoal.scheduler")
POLL_S = 10.0


class AssumedPodExpiry:
    def __init__(
        self,
        context: Context,
        scheduling: SchedulerState,
        watched: PodViews,
        bindings: Bindings,
        endings: Evictions,
        outcomes: Outcomes,
    ) -> None:
        self._context = context
        self._scheduling = scheduling
        self._watched = watched
        self._bindings = bindings
        self._endings = endings
        self._outcomes = outcomes
        self._doubtful: dict[str, PodAllocation] = {}
        """The pods without a write in progress at the last check."""

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await self._context.clock.sleep(POLL_S)
            await self.look()

    async def look(self) -> None:
        pods = self._scheduling.cluster.pods
        found = {key: allocation for key, allocation in pods.items() if self._is_abandoned(key, allocation)}
        again = [key for key, allocation in found.items() if self._doubtful.get(key) is allocation]
        self._doubtful = found
        for key in again:
            view = self._watched.view(key)
            # A pod that is not in the caches is a reservation for a later pod; a terminating pod needs its grace
            # period.
            if view is not None and not (isinstance(view.event, PodBound) and view.event.terminating):
                await self._ask(key, found[key], view)

    def _is_abandoned(self, key: str, allocation: PodAllocation) -> bool:
        if allocation.is_bound:
            return allocation.is_terminating and not self._endings.is_under_way(key)
        return not allocation.is_nominated and not self._bindings.is_under_way(key)

    async def _ask(self, key: str, allocation: PodAllocation, view: PodView) -> None:
        state = await state_of(self._context, view)
        if self._scheduling.cluster.pods.get(key) is not allocation or not self._is_abandoned(key, allocation):
            return
        if state is ServerPodState.PENDING and not allocation.is_bound:
            _log.warning("pod %s was assumed on a node and not being bound; it is queued again", key)
            self._outcomes.say(PodRejected(key))
        elif state is ServerPodState.BOUND and allocation.is_bound:
            _log.warning("pod %s was a victim and not being evicted; it stays", key)
            self._outcomes.say(PodStays(key))
