"""Decisions that stand in the facts and that nobody carries out, taken back: a pod that has a place and is not being
bound, a pod that is to end and is not being ended.

The facts count a decision from the moment it is made, so whatever breaks between a round and the write (a desk, a plan
half handed out, a piece of work that ended without a word) leaves a place held for nobody. What broke does not matter
here: a pod that was seen twice with nobody at it is asked for at the server, and its decision taken back where it still
waits, or stays.

Promises: no place stays held for a pod that nobody binds; nothing is taken back that may still be written, or has been.

Rejected: guards alone. Each covers a place in the code that somebody thought of.
"""

from __future__ import annotations

import logging

from shoal.client.context import Context
from shoal.controllers.scheduler.bindings import Bindings
from shoal.controllers.scheduler.endings import Endings
from shoal.controllers.scheduler.known import Mind, Sights
from shoal.controllers.scheduler.looking import State, state_of
from shoal.controllers.scheduler.outcomes import Outcomes
from shoal.engine.events import PodBound, PodRejected, PodStays
from shoal.engine.pods import Holding
from shoal.store.watched.sights import PodSight

_log = logging.getLogger("shoal.scheduler")
LOOK_S = 10.0


class Forgotten:
    def __init__(
        self, context: Context, mind: Mind, world: Sights, bindings: Bindings, endings: Endings, outcomes: Outcomes
    ) -> None:
        self._context = context
        self._mind = mind
        self._world = world
        self._bindings = bindings
        self._endings = endings
        self._outcomes = outcomes
        self._doubtful: dict[str, Holding] = {}
        """As they were looked at last."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._context.clock.sleep(LOOK_S)
            await self.look()

    async def look(self) -> None:
        pods = self._mind.cluster.pods
        found = {key: holding for key, holding in pods.items() if self._is_nobodys(key, holding)}
        again = [key for key, holding in found.items() if self._doubtful.get(key) is holding]
        self._doubtful = found
        for key in again:
            sight = self._world.sight(key)
            # A pod that nobody has created keeps the place of one that is to come; one that goes needs time for it.
            if sight is not None and not (isinstance(sight.event, PodBound) and sight.event.leaving):
                await self._ask(key, found[key], sight)

    def _is_nobodys(self, key: str, holding: Holding) -> bool:
        if holding.bound:
            return holding.leaving and not self._endings.is_under_way(key)
        return not holding.promised and not self._bindings.is_under_way(key)

    async def _ask(self, key: str, holding: Holding, sight: PodSight) -> None:
        state = await state_of(self._context, sight)
        if self._mind.cluster.pods.get(key) is not holding or not self._is_nobodys(key, holding):
            return
        if state is State.WAITS and not holding.bound:
            _log.warning("pod %s had a place and was not being bound: it waits again", key)
            self._outcomes.say(PodRejected(key))
        elif state is State.STANDS and holding.bound:
            _log.warning("pod %s was to end and was not being ended: it stays", key)
            self._outcomes.say(PodStays(key))
