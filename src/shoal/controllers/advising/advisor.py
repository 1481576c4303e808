"""Says what an object does that its writer cannot have meant: one Warning Event for each object and fault.

Promises: an object is looked at a moment after it came, so that what was applied with it is there, and again when its
spec changes; no two Events say the same of one object, not even after a restart, because an Event's name is made of
what it says, and one that has expired is written again while the fault lasts; objects that another object made are not
looked at, for nobody can mend them; advice never holds anything up.

Rejected: warnings in the answer to the write. They need a webhook in everybody's way, and an object is often wrong only
beside others that come later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from functools import partial

from shoal.controllers.advising.advice import Advice
from shoal.controllers.advising.in_part import InPart
from shoal.controllers.advising.rules import LOOKED_UP, LOOKED_UP_IF_THERE, TABLE, Watched
from shoal.controllers.advising.surroundings import Surroundings
from shoal.store.live.context import Context, Controller
from shoal.store.live.informer import Informer
from shoal.store.live.item import Item, Key, Obj
from shoal.store.live.kind import EVENTS, PODS, Kind
from shoal.store.live.loop import Loop
from shoal.store.live.refusals import AlreadyExistsError, RefusedError
from shoal.store.live.served import Served

_log = logging.getLogger("shoal.advising")
COMPONENT = "shoal-advisor"
_SETTLED_S = 2.0
_OFTEN_S, _SELDOM_S = 60.0, 900.0
"""Events are kept for an hour."""
_OWNED = b'"ownerReferences"'
_LONGEST_MESSAGE = 1024
_LONGEST_NAME = 230


def advisor(context: Context, served: Served) -> Controller:
    """`served` is asked by somebody else now and then."""
    return Advisor(context, served)


class Advisor:
    def __init__(self, context: Context, served: Served) -> None:
        self.name = context.name
        self._context = context
        self._surroundings = Surroundings(context, served)
        self._group: asyncio.TaskGroup | None = None
        self._waiting: list[Loop] = []
        for kind in LOOKED_UP:
            context.informers.of(kind)
        for kind in LOOKED_UP_IF_THERE:
            served.when_there(kind, self._look_up)
        for watched in TABLE:
            if watched.is_optional:
                older = (watched.kind._replace(version=version) for version in watched.older)
                served.when_there(watched.kind, partial(self._begin, watched), *older)
            else:
                self._begin(watched, watched.kind)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for informer in self._surroundings.own.values():
                    group.create_task(informer.run())
                for loop in self._waiting:
                    group.create_task(loop.run())
                await asyncio.Event().wait()
            finally:
                self._group = None

    def _look_up(self, kind: Kind) -> None:
        self._context.informers.of(kind)

    def _follow(self, watched: Watched, kind: Kind) -> Informer:
        context = self._context
        if not watched.in_part:
            return context.informers.of(kind)
        informer = InPart(context.api, kind, context.clock, context.draw, watched.hints)
        self._surroundings.own[kind] = informer
        return informer

    def _begin(self, watched: Watched, kind: Kind) -> None:
        informer = self._follow(watched, kind)
        desk = _Desk(self._context, self._surroundings, watched, informer)
        loop = Loop(self._context, desk.reconcile, workers=1)
        if not watched.in_part:
            loop.need(kind)

        def changed(before: Item | None, after: Item | None) -> None:
            if after is None:
                desk.forget(before)
            elif desk.concerns(before, after):
                loop.wake(after.key, _SETTLED_S)

        informer.on_change(changed)
        self._waiting.append(loop)
        if self._group is not None:
            self._group.create_task(loop.run())


class _Desk:
    """One kind."""

    def __init__(self, context: Context, surroundings: Surroundings, watched: Watched, informer: Informer) -> None:
        self._context = context
        self._surroundings = surroundings
        self._watched = watched
        self._informer = informer
        self._kind = informer.kind
        self._looked: dict[str, tuple[int, float]] = {}
        """By uid: the generation that was looked at, and when."""

    def concerns(self, before: Item | None, after: Item) -> bool:
        if self._kind == PODS and (before is not None or _OWNED in after.data):
            return False
        hints = self._watched.hints
        return not hints or any(word in after.data for word in hints)

    def forget(self, item: Item | None) -> None:
        if item is not None:
            self._looked.pop(item.uid, None)

    async def reconcile(self, key: Key) -> float | None:
        item = self._informer.get(*key)
        if item is None:
            return None
        obj = {"apiVersion": self._kind.api_version, "kind": self._kind.name, **item.obj()}
        meta = obj["metadata"]
        if meta.get("deletionTimestamp") or any(one.get("controller") for one in meta.get("ownerReferences") or ()):
            return None
        every_s = _OFTEN_S if self._watched.again else _SELDOM_S
        now_s, generation = self._context.clock.seconds(), int(meta.get("generation") or 0)
        before, at_s = self._looked.get(item.uid, (-1, 0.0))
        if generation and before == generation and now_s - at_s < every_s - 1.0:
            return None
        self._looked[item.uid] = generation, now_s
        found = list(self._advice(obj))
        for advice in found:
            await self._say(obj, advice, advice.mark(item.uid))
        return every_s if self._watched.again or (found and self._kind != PODS) else None

    def _advice(self, obj: Obj) -> Iterator[Advice]:
        for rule in self._watched.rules:
            try:
                yield from rule(obj, self._surroundings)
            except Exception:  # noqa: BLE001 - one rule that an odd object breaks must not silence the others
                _log.exception("%s of %s %s", rule.__name__, self._kind.name, obj["metadata"].get("name"))

    async def _say(self, obj: Obj, advice: Advice, mark: str) -> None:
        meta = obj["metadata"]
        namespace, now = meta.get("namespace") or "default", self._context.clock.text()
        about = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": meta["name"], "uid": meta["uid"]}
        if meta.get("namespace"):
            about["namespace"] = meta["namespace"]
        event: Obj = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{meta['name'][:_LONGEST_NAME].rstrip('-.')}.{mark}", "namespace": namespace},
            "involvedObject": about,
            "type": "Warning",
            "reason": advice.reason,
            "message": advice.told()[:_LONGEST_MESSAGE],
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": "",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self._context.api.create(EVENTS, event)
        except AlreadyExistsError:
            return
        except RefusedError as error:
            _log.debug("an event was not written: %s", error)
