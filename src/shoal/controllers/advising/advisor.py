"""Records advice: one Warning Event for each object and fault.

Guarantees: an object is checked shortly after it is created, so that objects applied with it exist, and again when its
spec changes. No two Events have the same message for one object, not even after a restart, because an Event's name
depends on its message. An Event that has expired is written again while the fault lasts. When a fault is resolved, its
Event becomes a Normal one within a minute, except for Pods and for faults that were resolved while no advisor ran.
Objects that another object created are skipped, because users cannot fix them. Advice never delays a request.

Rejected: warnings in the response to a write. They need a webhook for all writes, and an object is often wrong only in
combination with objects that are created later.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterator, Mapping
from functools import partial

import msgspec

from shoal.client.context import Context, Controller
from shoal.client.informer import Informer
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import EVENTS, PODS, Kind
from shoal.client.loop import Loop
from shoal.client.partial_informer import PartialInformer
from shoal.client.port import Patch
from shoal.client.refusals import AlreadyExistsError, RefusedError
from shoal.client.served import Served
from shoal.controllers.advising.advised_kinds import RESOURCES
from shoal.controllers.advising.cluster_context import ClusterContext
from shoal.policy.advice import Advice
from shoal.policy.advised_kinds import LOOKUP_KINDS, AdvisedKind, advised_kinds
from shoal.policy.object_set import is_advised

_log = logging.getLogger("shoal.advising")
COMPONENT = "shoal-advisor"
_DELAY_S = 2.0
_RECHECK_S, _REPEAT_S = 60.0, 900.0
"""Events are deleted after an hour."""
RESOLVED = "No longer so: "
_OWNED = b'"ownerReferences"'
_LONGEST_MESSAGE = 1024
_LONGEST_NAME = 230


def advisor(context: Context, served: Served) -> Controller:
    """Another part refreshes `served` at intervals."""
    return Advisor(context, served)


class Advisor:
    def __init__(self, context: Context, served: Served) -> None:
        self.name = context.name
        self._context = context
        self._cluster = ClusterContext(context, served)
        self._group: asyncio.TaskGroup | None = None
        self._loops: list[Loop] = []
        for looked_up in LOOKUP_KINDS:
            resource = RESOURCES[looked_up]
            if resource.is_optional:
                served.when_there(resource.kind, self._add_cache, *resource.versions())
            else:
                context.informers.of(resource.kind)
        for watched in advised_kinds():
            resource = RESOURCES[watched.kind]
            if resource.is_optional:
                served.when_there(resource.kind, partial(self._start_kind, watched), *resource.versions())
            else:
                self._start_kind(watched, resource.kind)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for informer in self._cluster.own.values():
                    group.create_task(informer.run())
                for loop in self._loops:
                    group.create_task(loop.run())
                await asyncio.Event().wait()
            finally:
                self._group = None

    def _add_cache(self, kind: Kind) -> None:
        self._context.informers.of(kind)

    def _follow(self, watched: AdvisedKind, kind: Kind) -> Informer:
        context = self._context
        if not watched.is_partial:
            return context.informers.of(kind)
        informer = PartialInformer(
            context.api, kind, context.clock, context.draw, watched.hints, context.informers.outage
        )
        self._cluster.own[kind] = informer
        return informer

    def _start_kind(self, watched: AdvisedKind, kind: Kind) -> None:
        informer = self._follow(watched, kind)
        kind_advisor = _KindAdvisor(self._context, self._cluster, watched, informer)
        loop = Loop(self._context, kind_advisor.reconcile, workers=1)
        if not watched.is_partial:
            loop.need(kind)

        def changed(before: Item | None, after: Item | None) -> None:
            if after is None:
                kind_advisor.forget(before)
            elif kind_advisor.is_relevant(before, after):
                loop.wake(after.key, _DELAY_S)

        informer.on_change(changed)
        self._loops.append(loop)
        if self._group is not None:
            self._group.create_task(loop.run())


class _Checked(msgspec.Struct, frozen=True):
    generation: int = -1
    at_s: float = -math.inf
    events: Mapping[str, Advice] = {}
    """By the keys in the names of their Events."""
    recorded_s: float = -math.inf
    """When all of them were recorded last."""


class _KindAdvisor:
    """Checks the objects of one kind."""

    def __init__(self, context: Context, cluster: ClusterContext, watched: AdvisedKind, informer: Informer) -> None:
        self._context = context
        self._cluster = cluster
        self._watched = watched
        self._informer = informer
        self._kind = informer.kind
        self._checked: dict[str, _Checked] = {}
        """By uid."""

    def is_relevant(self, before: Item | None, after: Item) -> bool:
        if self._kind == PODS and (before is not None or _OWNED in after.data):
            return False
        return self._watched.is_judged(after.data)

    def forget(self, item: Item | None) -> None:
        if item is not None:
            self._checked.pop(item.uid, None)

    async def reconcile(self, key: Key) -> float | None:
        item = self._informer.get(*key)
        if item is None:
            return None
        obj = {"apiVersion": self._kind.api_version, "kind": self._kind.name, **item.obj()}
        meta = obj["metadata"]
        if not is_advised(obj):
            return None
        now_s, generation = self._context.clock.seconds(), int(meta.get("generation") or 0)
        before = self._checked.get(item.uid, _Checked())
        if generation and before.generation == generation and now_s - before.at_s < _RECHECK_S - 1.0:
            # Another part of the object has changed: the time of the next check stays the same.
            return before.at_s + _RECHECK_S - now_s if self._is_rechecked(before.events) else None
        found = {advice.event_key(item.uid): advice for advice in self._advice(obj)}
        is_due = now_s - before.recorded_s >= _REPEAT_S - 1.0
        for mark, advice in found.items():
            if is_due or mark not in before.events:
                await self._create_event(obj, advice, mark)
        for mark, advice in before.events.items():
            if mark not in found:
                await self._update_event(obj, mark, "Normal", RESOLVED + advice.message())
        if (present := self._informer.get(*key)) is not None and present.uid == item.uid:
            # Only now: an Event that could not be written is written in the next attempt.
            self._checked[item.uid] = _Checked(generation, now_s, found, now_s if is_due else before.recorded_s)
        return _RECHECK_S if self._is_rechecked(found) else None

    def _is_rechecked(self, events: Mapping[str, Advice]) -> bool:
        return self._watched.is_rechecked or (bool(events) and self._kind != PODS)

    def _advice(self, obj: Obj) -> Iterator[Advice]:
        for check in self._watched.checks:
            try:
                yield from check(obj, self._cluster)
            except Exception:  # noqa: BLE001 - one rule that fails for an unusual object must not disable the others
                _log.exception("%s of %s %s", check.name, self._kind.name, obj["metadata"].get("name"))

    async def _create_event(self, obj: Obj, advice: Advice, mark: str) -> None:
        meta = obj["metadata"]
        namespace, now = meta.get("namespace") or "default", self._context.clock.text()
        about = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": meta["name"], "uid": meta["uid"]}
        if meta.get("namespace"):
            about["namespace"] = meta["namespace"]
        event: Obj = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": _event_name(obj, mark), "namespace": namespace},
            "involvedObject": about,
            "type": "Warning",
            "reason": advice.reason,
            "message": advice.message()[:_LONGEST_MESSAGE],
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
            # The fault may have been resolved and have returned.
            await self._update_event(obj, mark, "Warning", advice.message())
        except RefusedError as error:
            _log.debug("cannot create an Event: %s", error)

    async def _update_event(self, obj: Obj, mark: str, type_: str, words: str) -> None:
        body = {"type": type_, "message": words[:_LONGEST_MESSAGE]}
        namespace = obj["metadata"].get("namespace") or "default"
        try:
            await self._context.api.patch(EVENTS, namespace, _event_name(obj, mark), Patch("merge", body))
        except RefusedError as error:
            _log.debug("cannot update an Event: %s", error)


def _event_name(obj: Obj, mark: str) -> str:
    return f"{obj['metadata']['name'][:_LONGEST_NAME].rstrip('-.')}.{mark}"
