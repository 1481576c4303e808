"""Says what an object does that its writer cannot have meant: one Warning Event for each object and fault.

Promises: an object is looked at a moment after it came, so that what was applied with it is there, and again when its
spec changes; no two Events say the same of one object, not even after a restart, because an Event's name is made of
what it says, and one that has expired is written again while the fault lasts; what was said and is so no longer becomes
a Normal Event that says so within a minute, but for Pods, and for what was mended while nobody looked; objects that
another object made are not looked at, for nobody can mend them; advice never holds anything up.

Rejected: warnings in the answer to the write. They need a webhook in everybody's way, and an object is often wrong only
beside others that come later.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterator, Mapping
from functools import partial

import msgspec

from shoal.controllers.advising.advice import Advice
from shoal.controllers.advising.in_part import InPart
from shoal.controllers.advising.rules import LOOKED_UP, LOOKED_UP_IF_THERE, TABLE, Watched
from shoal.controllers.advising.surroundings import Surroundings
from shoal.store.live.context import Context, Controller
from shoal.store.live.informer import Informer
from shoal.store.live.item import Item, Key, Obj
from shoal.store.live.kind import EVENTS, PODS, Kind
from shoal.store.live.loop import Loop
from shoal.store.live.port import Patch
from shoal.store.live.refusals import AlreadyExistsError, RefusedError
from shoal.store.live.served import Served

_log = logging.getLogger("shoal.advising")
COMPONENT = "shoal-advisor"
_SETTLED_S = 2.0
_OFTEN_S, _SELDOM_S = 60.0, 900.0
"""Events are kept for an hour."""
MENDED = "No longer so: "
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
            served.when_there(kind, self._look_up, kind._replace(version="v1beta1"))
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


class _Looked(msgspec.Struct, frozen=True):
    generation: int = -1
    at_s: float = -math.inf
    said: Mapping[str, Advice] = {}
    """By what their Events are called."""
    said_s: float = -math.inf
    """When all of it was said last."""


class _Desk:
    """One kind."""

    def __init__(self, context: Context, surroundings: Surroundings, watched: Watched, informer: Informer) -> None:
        self._context = context
        self._surroundings = surroundings
        self._watched = watched
        self._informer = informer
        self._kind = informer.kind
        self._looked: dict[str, _Looked] = {}
        """By uid."""

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
        now_s, generation = self._context.clock.seconds(), int(meta.get("generation") or 0)
        before = self._looked.get(item.uid, _Looked())
        if generation and before.generation == generation and now_s - before.at_s < _OFTEN_S - 1.0:
            # Something else of it has changed: the next look stays due when it was.
            return before.at_s + _OFTEN_S - now_s if self._is_looked_at_again(before.said) else None
        found = {advice.mark(item.uid): advice for advice in self._advice(obj)}
        is_due = now_s - before.said_s >= _SELDOM_S - 1.0
        for mark, advice in found.items():
            if is_due or mark not in before.said:
                await self._say(obj, advice, mark)
        for mark, advice in before.said.items():
            if mark not in found:
                await self._write_on(obj, mark, "Normal", MENDED + advice.told())
        if (present := self._informer.get(*key)) is not None and present.uid == item.uid:
            # Not before: what could not be said is said in the next try.
            self._looked[item.uid] = _Looked(generation, now_s, found, now_s if is_due else before.said_s)
        return _OFTEN_S if self._is_looked_at_again(found) else None

    def _is_looked_at_again(self, said: Mapping[str, Advice]) -> bool:
        return self._watched.again or (bool(said) and self._kind != PODS)

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
            "metadata": {"name": _called(obj, mark), "namespace": namespace},
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
            # It may have been so no longer, and be so again.
            await self._write_on(obj, mark, "Warning", advice.told())
        except RefusedError as error:
            _log.debug("an event was not written: %s", error)

    async def _write_on(self, obj: Obj, mark: str, type_: str, words: str) -> None:
        body = {"type": type_, "message": words[:_LONGEST_MESSAGE]}
        namespace = obj["metadata"].get("namespace") or "default"
        try:
            await self._context.api.patch(EVENTS, namespace, _called(obj, mark), Patch("merge", body))
        except RefusedError as error:
            _log.debug("an event was not changed: %s", error)


def _called(obj: Obj, mark: str) -> str:
    return f"{obj['metadata']['name'][:_LONGEST_NAME].rstrip('-.')}.{mark}"
