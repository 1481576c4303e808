"""Keeps a cache of one kind in step with the server: lists, then watches, and lists again when the watch fails.

Guarantees: once `synced`, the cache equals the server at one moment and then follows it in order; an object is never
replaced by an older version of itself; a write through `write_through.WriteThroughApi` is in the cache at once, so that
a controller does not decide twice because a watch is slow. Handlers are called for every change, also for those that a
list after a gap finds.

Rejected: expectations (counters of writes that were not seen yet). Every controller must maintain them, and errors in
that cause timeouts.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import aclosing

from shoal.client.clock import Clock
from shoal.client.index import Index, Values
from shoal.client.item import Item, Key, WatchEvent
from shoal.client.kind import Kind
from shoal.client.outage import Outage
from shoal.client.port import EVERYTHING, Api, Select
from shoal.client.refusals import ExpiredError, ForbiddenError
from shoal.units.errors import ShoalError, TemporaryError

_log = logging.getLogger("shoal.store")
_RELOADS = "storage is (re)initializing"
"""The message of kube-apiserver for a kind that it is loading."""
Handler = Callable[[Item | None, Item | None], None]
"""Called with the object before and after; one of them is None when an object is created or deleted."""
_SHORTEST_S, _LONGEST_S, _LASTED_S = 0.2, 30.0, 10.0
_MOST_TOMBSTONES, _AT_ONCE = 10_000, 200
_TOLD_AGAIN_S = 3600.0


class Informer:
    def __init__(
        self,
        api: Api,
        kind: Kind,
        clock: Clock,
        draw: random.Random,
        select: Select = EVERYTHING,
        namespace: str = "",
        outage: Outage | None = None,
    ) -> None:
        """`outage`: shared between the informers of one server."""
        self.kind = kind
        self._api = api
        self._clock = clock
        self._draw = draw
        self._select = select
        self._namespace = namespace
        self._items: dict[Key, Item] = {}
        self._gone: dict[str, None] = {}
        """Uids of deleted objects: later changes of them from a slow watch are outdated."""
        self._indexes: dict[str, Index] = {}
        self._handlers: list[Handler] = []
        self._synced = asyncio.Event()
        self._since = 0
        """The version up to which all changes are known."""
        self._lacks = True
        """Whether changes after that version are no longer available, so that a list is needed first."""
        self._delay_s = 0.0
        self._outage = outage or Outage()
        self._reported, self._reported_s = "", 0.0
        """The last logged error, and its time."""

    # -- queries ----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(tuple(self._items.values()))

    def get(self, namespace: str, name: str) -> Item | None:
        return self._items.get((namespace, name))

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    async def synced(self) -> None:
        await self._synced.wait()

    def index(self, name: str, values: Values) -> Index:
        """The index of that name, created at the first call; all calls must pass the same function for a name."""
        found = self._indexes.get(name)
        if found is None:
            found = self._indexes[name] = Index(values)
            for item in self._items.values():
                found.put(item)
        return found

    def on_change(self, handler: Handler) -> None:
        """`handler` is called for every change from now on, and for the existing objects."""
        self._handlers.append(handler)
        for item in tuple(self._items.values()):
            _call(handler, None, item)

    # -- updates by writes
    # ---------------------------------------------------------------------------------------------------

    def learn(self, item: Item) -> None:
        """Store an object from an answer of the server, unless a newer version is known.

        A version that the watch has passed is outdated even if the cache has no such object: then its deletion was seen
        before the answer arrived.
        """
        if item.version > self._since:
            self._learn(item)

    def _learn(self, item: Item) -> None:
        before = self._items.get(item.key)
        if item.uid in self._gone or (before is not None and before.version >= item.version):
            return
        if before is not None and before.uid != item.uid:
            self._drop(before)
            before = None
        self._items[item.key] = item
        for index in self._indexes.values():
            index.put(item)
        self._report(before, item)

    def learn_gone(self, key: Key, uid: str) -> None:
        """Remove a deleted object; an empty uid means any object of that name."""
        present = self._items.get(key)
        uid = uid or (present.uid if present is not None else "")
        if uid:
            self._gone[uid] = None
        while len(self._gone) > _MOST_TOMBSTONES:
            del self._gone[next(iter(self._gone))]
        if present is not None and present.uid == uid:
            self._drop(present)

    def _drop(self, item: Item) -> None:
        del self._items[item.key]
        for index in self._indexes.values():
            index.drop(item.key)
        self._report(item, None)

    def _report(self, before: Item | None, after: Item | None) -> None:
        for handler in self._handlers:
            _call(handler, before, after)

    # -- following --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Runs until cancelled. After failures it waits with increasing, randomized delays."""
        while True:
            try:
                if self._lacks:
                    await self._relist()
                if not await self._follow():
                    # A server that ends every watch at once must not be called continuously.
                    await self._clock.sleep(self._next_wait_s())
            except ExpiredError:
                self._lacks = True
                await self._clock.sleep(self._next_wait_s())
            except ShoalError as error:
                # Any error, even a wrong certificate: the caches of other kinds must not end with this one.
                self._lacks |= not isinstance(error, TemporaryError)
                wait_s = max(self._next_wait_s(), error.delay_s if isinstance(error, TemporaryError) else 0.0)
                self._say(error, wait_s)
                await self._clock.sleep(wait_s)

    def _say(self, error: ShoalError, wait_s: float) -> None:
        """Log a new error at once and then every hour, because it repeats at each retry until it is corrected."""
        words, now_s = str(error), self._clock.seconds()
        if isinstance(error, ForbiddenError) and error.is_reported:
            return
        is_known = words == self._reported and now_s < self._reported_s + _TOLD_AGAIN_S
        if self._outage.takes(self, error, now_s) or is_known:
            return
        self._reported, self._reported_s = words, now_s
        if _RELOADS in words:
            # The server answers so at its start and for a kind whose definition has changed. It is not a fault, and
            # ends soon.
            plural = self.kind.plural
            _log.info("the API server is loading %s: they are asked for again in %.1f s", plural, wait_s)
            return
        _log.warning("%s cannot be followed: %s; again in %.1f s", self.kind.plural, words, wait_s)

    def _next_wait_s(self) -> float:
        self._delay_s = min(max(self._delay_s * 2, _SHORTEST_S), _LONGEST_S)
        return self._delay_s * self._draw.uniform(0.5, 1.0)

    async def _relist(self) -> None:
        listed = await self._api.list(self.kind, self._namespace, self._select)
        self._outage.ends(self)
        # A server with lower versions was reset: all known state of it is invalid.
        is_another = listed.version < self._since
        present = {item.key: item.uid for item in listed.items}
        for item in tuple(self._items.values()):
            # Objects that were stored after the list was made are newer than the list.
            if is_another or (present.get(item.key) != item.uid and item.version <= listed.version):
                self._drop(item)
        for at, item in enumerate(listed.items):
            self._learn(item)
            # Tens of thousands of first handler calls would block the event loop. Later lists must not be interrupted.
            if at % _AT_ONCE == 0 and not self.is_synced:
                await asyncio.sleep(0)
        self._since, self._lacks = listed.version, False
        self._synced.set()

    async def _follow(self) -> bool:
        """Returns whether the watch was useful: it had changes, or lasted for its time."""
        began_s, heard = self._clock.seconds(), False
        batches = self._api.watch(self.kind, self._since, self._namespace, self._select)
        async with aclosing(batches):
            async for changes in batches:
                for change in changes:
                    self._take(change)
                    self._since = change.version
                if not heard:
                    self._outage.ends(self)
                heard, self._delay_s, self._reported = True, 0.0, ""
        return heard or self._clock.seconds() - began_s >= _LASTED_S

    def _take(self, change: WatchEvent) -> None:
        item = change.item
        if item is not None and change.kind != "DELETED":
            self._learn(item)
        elif item is not None:
            self._gone.pop(item.uid, None)
            present = self._items.get(item.key)
            if present is not None and present.uid == item.uid and present.version <= item.version:
                self._drop(present)


def _call(handler: Handler, before: Item | None, after: Item | None) -> None:
    try:
        handler(before, after)
    except Exception:  # noqa: BLE001 - an error in one handler must not stop the others or the cache
        known = after or before
        _log.exception("a handler failed on %s", "/".join(known.key) if known is not None else "nothing")
