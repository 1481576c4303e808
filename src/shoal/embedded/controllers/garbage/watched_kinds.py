"""Keeps a cache for each kind that can be listed, watched and deleted, and updates the list as definitions change.

Caches of built-in kinds are shared with the other controllers. A custom kind may be deleted again, and a cache that
outlives its kind would send requests forever: custom kinds have their own caches, which are stopped.

Leases are watched although they change often: the Lease of a node has the node as its owner, and no other controller
would delete it. Events are not watched: they expire by age, and there are very many.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from shoal.client.context import Context
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import DEFINITIONS, Kind
from shoal.units.errors import ShoalError

_log = logging.getLogger("shoal.controllers")
_IGNORED = {("", "events"), ("events.k8s.io", "events")}
_NEEDED = frozenset(("list", "watch", "delete"))
_REFRESH_S = 30.0
_SETTLE_S = 0.1
_SYNC_TIMEOUT_S = 30.0
"""The time after which a kind that cannot be listed is no longer waited for."""
Changed = Callable[[Kind, Item | None, Item | None], None]


class _WatchedKind(msgspec.Struct, eq=False):
    informer: Informer
    since_s: float
    task: asyncio.Task[None] | None


class WatchedKinds:
    """`run` watches; `changed` is called for each change of each object, from the first list on, and `kinds_changed`
    when the list of kinds changes."""

    def __init__(self, context: Context, changed: Changed, kinds_changed: Callable[[], None]) -> None:
        self._context = context
        self._changed = changed
        self._kinds_changed = kinds_changed
        self._following: dict[Kind, _WatchedKind] = {}
        self._served: dict[tuple[str, str], Kind] = {}
        """By group and kind."""
        self._again = asyncio.Event()
        context.informers.of(DEFINITIONS).on_change(lambda _before, _after: self._again.set())

    def kind(self, api_version: str, name: str) -> Kind | None:
        group, _, _ = api_version.rpartition("/")
        return self._served.get((group, name))

    def informer(self, kind: Kind) -> Informer | None:
        found = self._following.get(kind)
        return found.informer if found is not None else None

    def item(self, kind: Kind, namespace: str, name: str, uid: str) -> Item | None:
        informer = self.informer(kind)
        item = informer.get(namespace, name) if informer is not None else None
        return item if item is not None and item.uid == uid else None

    def is_ready(self) -> bool:
        """Whether all caches are synced; kinds that cannot be listed are waited for only a limited time."""
        late_s = self._context.clock.seconds() - _SYNC_TIMEOUT_S
        return bool(self._served) and all(
            one.informer.is_synced or one.since_s < late_s for one in self._following.values()
        )

    async def run(self) -> None:
        clock = self._context.clock
        await self._context.informers.of(DEFINITIONS).synced()
        async with asyncio.TaskGroup() as group:
            self._resume(group)
            while True:
                self._again.clear()
                try:
                    await self._refresh(group)
                except ShoalError as error:
                    _log.warning("%s: what is served is not known: %s", self._context.name, error)
                timer = clock.call_later(_REFRESH_S if self._served else 1.0, self._again.set)
                await self._again.wait()
                timer.cancel()
                await clock.sleep(_SETTLE_S)

    def _resume(self, group: asyncio.TaskGroup) -> None:
        """Restarts the tasks of the caches after a failed run; their contents are still valid."""
        for one in self._following.values():
            if one.task is not None and one.task.done():
                one.task = group.create_task(one.informer.run())

    async def _refresh(self, group: asyncio.TaskGroup) -> None:
        served = [one.kind for one in await self._context.api.served() if one.verbs >= _NEEDED]
        wanted = {kind for kind in served if (kind.group, kind.plural) not in _IGNORED}
        custom = self._custom()
        before, self._served = self._served, {(kind.group, kind.name): kind for kind in served}
        for kind in sorted(self._following.keys() - wanted):
            self._leave(kind)
        for kind in sorted(wanted - self._following.keys()):
            self._follow(kind, (kind.group, kind.plural) in custom, group)
        if self._served != before:
            self._kinds_changed()

    def _follow(self, kind: Kind, is_custom: bool, group: asyncio.TaskGroup) -> None:
        context = self._context
        if is_custom:
            informer = Informer(context.api, kind, context.clock, context.draw, outage=context.informers.outage)
            task = group.create_task(informer.run())
        else:
            informer, task = context.informers.of(kind), None
        self._following[kind] = _WatchedKind(informer, context.clock.seconds(), task)
        informer.on_change(lambda before, after: self._report(kind, before, after))

    def _report(self, kind: Kind, before: Item | None, after: Item | None) -> None:
        if kind in self._following:
            self._changed(kind, before, after)

    def _leave(self, kind: Kind) -> None:
        left = self._following[kind]
        if left.task is None:
            # The cache is shared and its kind built in: the kind is missing only for a moment.
            return
        left.task.cancel()
        del self._following[kind]
        for item in left.informer:
            self._changed(kind, item, None)

    def _custom(self) -> set[tuple[str, str]]:
        found = set()
        for item in self._context.informers.of(DEFINITIONS):
            plural, _, group = item.name.partition(".")
            found.add((group, plural))
        return found
