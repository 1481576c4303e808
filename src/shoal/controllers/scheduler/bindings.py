"""Places carried out: whatever the pod needs is made ready on its node, then it is bound, in one write.

A write that fails is tried again at the same place for some seconds, because the place is kept in the facts meanwhile
and the pod may be one of a gang. Only then, or when the server says no, is the place given back. When nobody knows what
became of a write the server is asked, and until it answers the room stays taken.

Promises: no room is given back while a binding to it may still be done; what is said of a pod that was recreated under
its name, or placed anew meanwhile, is said of nobody.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from functools import partial

from shoal.controllers.scheduler.known import Mind, Sights, Writer
from shoal.controllers.scheduler.looking import State, state_of
from shoal.controllers.scheduler.outcomes import Outcomes
from shoal.controllers.scheduler.pool import Pool
from shoal.controllers.scheduler.rendezvous import Rendezvous
from shoal.controllers.scheduler.telling import Teller
from shoal.engine.events import PodRejected
from shoal.engine.plan import Place
from shoal.store.live.context import Context
from shoal.store.live.item import Obj
from shoal.store.live.kind import PODS
from shoal.store.watched.sights import PodSight
from shoal.units.errors import ShoalError, TemporaryError

_MOUNTS = (b'"persistentVolumeClaim"', b'"ephemeral"')
_TRIES = 6
_SHORTEST_S, _LONGEST_S = 0.1, 3.0


class _Try:
    """One place being carried out."""

    __slots__ = ("is_off", "over", "place", "sight")

    def __init__(self, place: Place, sight: PodSight) -> None:
        self.place = place
        self.sight = sight
        self.is_off = False
        self.over: asyncio.Event | None = None
        """Made by whoever waits for it."""


class Bindings:
    def __init__(
        self, context: Context, mind: Mind, world: Sights, pool: Pool, outcomes: Outcomes, writer: Writer | None
    ) -> None:
        self._context = context
        self._mind = mind
        self._world = world
        self._pool = pool
        self._outcomes = outcomes
        self._writer = writer
        self._pods = context.informers.of(PODS)
        self._teller = Teller(context)
        self._rendezvous = Rendezvous(context, mind)
        self._under_way: dict[str, _Try] = {}
        """The latest try for each pod."""

    def take(self, place: Place) -> None:
        sight = self._world.sight(place.pod)
        if sight is None:
            # The pod went while it was decided about; the world says so in the next round.
            return
        one = self._under_way[place.pod] = _Try(place, sight)
        self._pool.add(partial(self._bind, one))

    async def called_off(self, key: str) -> None:
        """Returns when nothing more will be written to bind the pod."""
        one = self._under_way.get(key)
        if one is not None:
            one.is_off = True
            one.over = one.over or asyncio.Event()
            await one.over.wait()

    async def _bind(self, one: _Try) -> None:
        try:
            await self._try(one.place, one.sight, one)
        finally:
            if self._under_way.get(one.place.pod) is one:
                del self._under_way[one.place.pod]
            if one.over is not None:
                one.over.set()

    async def _try(self, place: Place, sight: PodSight, one: _Try) -> None:
        tries = 0
        while self._is_wanted(one):
            tries += 1
            try:
                await self._write(place, sight)
            except ShoalError as error:
                if await state_of(self._context, sight) is not State.WAITS:
                    return
                if not isinstance(error, TemporaryError) or tries == _TRIES:
                    await self._give_back(one, error)
                    return
                wait_s = max(error.delay_s, min(_SHORTEST_S * (1 << (tries - 1)), _LONGEST_S))
                with self._pool.aside():
                    await self._context.clock.sleep(wait_s)
            else:
                self._outcomes.forget(place.pod)
                self._teller.bound(sight, place.node)
                return

    def _is_wanted(self, one: _Try) -> bool:
        """Whether the facts still have the pod there by our plan, and by this one."""
        cluster, place = self._mind.cluster, one.place
        holding = cluster.pods.get(place.pod)
        if holding is None or holding.bound or holding.promised or cluster.names[holding.row] != place.node:
            return False
        return self._under_way.get(place.pod) is one and not one.is_off

    async def _write(self, place: Place, sight: PodSight) -> None:
        annotations: dict[str, str] = {}
        if self._writer is not None:
            with self._pool.aside() if self._may_wait(place, sight) else nullcontext():
                annotations |= await self._writer.prepare(sight, place)
        annotations |= self._rendezvous.facts(place, sight)
        meta: Obj = {"name": sight.name, "namespace": sight.namespace, "uid": sight.uid}
        if annotations:
            meta["annotations"] = annotations
        target = {"kind": "Node", "name": place.node}
        body: Obj = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        await self._context.api.post(PODS, sight.namespace, sight.name, "binding", body)

    def _may_wait(self, place: Place, sight: PodSight) -> bool:
        """Whether there are claims or volumes to be made ready: most pods have none."""
        if place.grant is not None and place.grant.claims:
            return True
        item = self._pods.get(sight.namespace, sight.name)
        return item is not None and any(word in item.data for word in _MOUNTS)

    async def _give_back(self, one: _Try, error: ShoalError) -> None:
        """The pod waits again; one that fails again and again keeps its room for a while, or rounds would not end."""
        key, sight = one.place.pod, one.sight
        wait_s = self._outcomes.delay_s(key)
        if wait_s:
            await self._teller.failed(sight, error)
            with self._pool.aside():
                await self._context.clock.sleep(wait_s)
        current = self._world.sight(key)
        if self._is_wanted(one) and current is not None and current.uid == sight.uid:
            self._outcomes.say(PodRejected(key))
