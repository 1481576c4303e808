"""Events, and those that follow them.

A watch holds the revision it has read to and takes what came after from the history. When there is nothing left it is
*parked*; the publisher of events wakes those parked watches that the events concern. A parked watch has seen all
there is, so that one that was parked for an hour reads on from the moment it was woken, however much was forgotten of
what did not concern it.

Rejected: a queue per watch. Slow readers would each keep their own backlog, with a second limit beside the history's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.status import ApiError, expired, from_the_future

if TYPE_CHECKING:
    from shoal.embedded.apiserver.resource import Home
    from shoal.embedded.apiserver.state.history import History

_MOST = 500
"""Events handed over at once: a replay of a long history leaves room for others between two batches."""


_Scope = tuple["Home", str | None, str | None]


class IdleWatches:
    """The watches that wait, by what they wait for."""

    __slots__ = ("_waiting", "is_closed")

    def __init__(self) -> None:
        self._waiting: dict[_Scope, list[Watch]] = {}
        self.is_closed = False

    def enter(self, watch: Watch) -> None:
        self._waiting.setdefault(watch.scope, []).append(watch)

    def leave(self, watch: Watch) -> None:
        waiting = self._waiting[watch.scope]
        waiting.remove(watch)
        if not waiting:
            del self._waiting[watch.scope]

    def wake(self, events: Sequence[Event], seen: int) -> None:
        """`seen` is the newest revision before the events."""
        if not self._waiting:
            return
        touched: dict[_Scope, None] = {}
        for event in events:
            home, namespace, name = event.record.ref
            touched[home, None, None] = None
            touched[home, namespace, None] = None
            touched[home, namespace, name] = None
            touched[home, None, name] = None
        for scope in touched:
            for watch in self._waiting.pop(scope, ()):
                watch.rouse(seen)

    def end(self, home: Home) -> None:
        """Who waits for something of this resource need not wait any more: it is not served."""
        for watch in [one for scope, watches in self._waiting.items() if scope[0] == home for one in watches]:
            watch.close()

    def close(self, seen: int) -> None:
        """No watch waits ever again."""
        self.is_closed = True
        self.rouse(seen)

    def rouse(self, seen: int) -> None:
        """No watch waits any more, for now."""
        waiting, self._waiting = self._waiting, {}
        for watches in waiting.values():
            for watch in watches:
                watch.rouse(seen)


class Watch:
    """A watch of one resource, one namespace of it, or one object."""

    __slots__ = ("_cursor", "_epoch", "_history", "_is_closed", "_is_idle", "_parking", "_wakeup", "scope")

    def __init__(self, history: History, idle_watches: IdleWatches, scope: _Scope, since: int) -> None:
        self._history = history
        self._epoch = history.epoch
        self._parking = idle_watches
        self._cursor = since
        self._is_idle = False
        self._is_closed = False
        self._wakeup: asyncio.Future[None] | None = None
        self.scope = scope

    @property
    def closed(self) -> bool:
        return self._is_closed or self._parking.is_closed

    @property
    def position(self) -> int:
        """A revision up to which nothing is missing from what was handed over: what a bookmark may say."""
        return self._history.revision if self._is_idle else self._cursor

    async def next_batch(self) -> list[Event]:
        """What happened since the last call, at most some hundred events; waits until there is something.

        Empty only after `nudge` and when closed. Raises ApiError 410 when this watch was too slow for the history, or
        when the history was forgotten.
        """
        if self.closed:
            return []
        found = self._read()
        if found:
            return found
        await self._park()
        return [] if self.closed else self._read()

    def nudge(self) -> None:
        """Let a waiting `next_batch` return with nothing: for bookmarks, time limits and closed connections."""
        if self._is_idle:
            self._parking.leave(self)
            self.rouse(self._history.revision)

    def close(self) -> None:
        self._is_closed = True
        self.nudge()

    def rouse(self, seen: int) -> None:
        """Called on a watch that was taken out of the parking; it has seen everything up to `seen`."""
        self._is_idle = False
        self._cursor = seen
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    async def _park(self) -> None:
        self._wakeup = asyncio.get_running_loop().create_future()
        self._is_idle = True
        self._parking.enter(self)
        try:
            await self._wakeup
        finally:
            # Cancelled and not roused: nothing has happened that it would have missed.
            self.nudge()

    def _read(self) -> list[Event]:
        home, namespace, name = self.scope
        history = self._history
        if self._epoch != history.epoch:
            raise expired("The resourceVersion for the provided watch is too old.")
        while self._cursor < history.revision:
            compacted_revision = history.compacted_revision_of(home)
            if self._cursor < compacted_revision:
                raise too_old(self._cursor, compacted_revision)
            events = history.since(home, self._cursor, _MOST)
            self._cursor = events[-1].record.revision if len(events) == _MOST else history.revision
            if namespace is not None:
                events = [event for event in events if event.record.ref.namespace == namespace]
            if name is not None:
                events = [event for event in events if event.record.ref.name == name]
            if events:
                return events
        return []


def too_old(wanted: int, compacted_revision: int) -> ApiError:
    return expired(f"too old resource version: {wanted} ({compacted_revision})")


def open_watch(history: History, idle_watches: IdleWatches, scope: _Scope, since: int) -> Watch:
    if since > history.revision:
        raise from_the_future(since, history.revision)
    compacted_revision = history.compacted_revision_of(scope[0])
    if since < compacted_revision:
        raise too_old(since, compacted_revision)
    return Watch(history, idle_watches, scope, since)
