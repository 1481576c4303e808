"""Stores all objects and their recent history, serializes writes, and notifies watchers.

Everything runs in one event loop, so that between two awaits a reader sees one moment. A write becomes visible to
reads, lists and watches in one step, after the storage has said that it is durable; until then it is not visible, and
if the storage fails it never is. Each write gets a revision of its own from one counter, and events are seen in its
order.

What this does not know: kinds, versions, validation. Objects come in their stored version, as `rest/` built them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from sys import intern

import msgspec

from shoal.embedded.apiserver.resource import Home, Ref
from shoal.embedded.apiserver.state.commits import Commits, Ticket
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.history import Limits
from shoal.embedded.apiserver.state.interning import Interned
from shoal.embedded.apiserver.state.listing import Cut, Page, Place, page
from shoal.embedded.apiserver.state.locks import Hold, Locks
from shoal.embedded.apiserver.state.reader import StateReader
from shoal.embedded.apiserver.state.record import Describe, Record, Write
from shoal.embedded.apiserver.state.resume import ResumedState, resume
from shoal.embedded.apiserver.state.sorted_records import SortedRecords
from shoal.embedded.apiserver.state.watch import IdleWatches, Watch, open_watch
from shoal.embedded.apiserver.status import already_exists, conflict, expired, from_the_future, unavailable
from shoal.embedded.apiserver.storage.port import Storage, StoredChange
from shoal.units.errors import BugError

Events = list[Event]
Records = list[Record]
Hook = Callable[[Events], None]
_FOLD_EVERY = 100
"""Revisions between two requests to the storage to fold old changes."""
_EMPTY = SortedRecords(Home("", ""))
_encode = msgspec.json.Encoder().encode


class State:
    """All objects of the API server."""

    def __init__(self, storage: Storage, found: ResumedState, clock: Callable[[], float]) -> None:
        self._storage = storage
        self._clock = clock
        self._records = found.shelves
        self._history = found.history
        self._assigned = found.history.revision
        self._folded = found.folded
        self._pending: set[Ref] = set()
        self._locks = Locks()
        self._parking = IdleWatches()
        self._hooks: list[Hook] = []
        self._interned = Interned()
        self._commits = Commits(storage, self._publish)
        self._is_closed = False
        self.reader = StateReader(found.shelves)

    @classmethod
    async def open(
        cls,
        storage: Storage,
        *,
        describe: Describe,
        clock: Callable[[], float],
        history_count: int = 100_000,
        history_age_s: float = 300.0,
        history_bytes: int = 64 << 20,
    ) -> State:
        """The state that `storage` holds. `clock` counts seconds from anywhere; history is forgotten by it."""
        limits = Limits(history_count, history_age_s, history_bytes)
        return cls(storage, resume(storage.load(), describe, limits, clock()), clock)

    @property
    def revision(self) -> int:
        """The newest that is visible."""
        return self._history.revision

    @property
    def oldest(self) -> int:
        """Watches and lists from this revision on are served, whatever the resource."""
        return self._history.compacted_revision

    def health(self) -> str:
        """Why nothing is kept; empty while all is well. A call makes the storage try again, since there may be no
        other write.
        """
        if not self._is_closed:
            self._commits.try_again()
        return self._commits.fault

    def progress(self) -> int:
        """Up to where a watch that waits has seen everything. Of one that is behind, `Watch.position` says it."""
        return self._history.revision

    def get(self, ref: Ref) -> Record | None:
        records = self._records.get(ref.home)
        return records.get(ref) if records else None

    def homes(self) -> Iterable[Home]:
        """Every resource of which there is or was an object."""
        return tuple(self._records)

    def count(self, home: Home) -> int:
        records = self._records.get(home)
        return len(records.keys) if records else 0

    def list(
        self,
        home: Home,
        namespace: str | None = None,
        *,
        at: int | None = None,
        after: Place | None = None,
        limit: int = 0,
    ) -> Page:
        """Objects in the order of namespace and name; `limit` 0 is all. Raises ApiError when `at` is not known."""
        cut = Cut(namespace, after, limit)
        history = self._history
        records = self._records.get(home, _EMPTY)
        if at is None or at == history.revision:
            return page(records, cut, history.revision, ())
        if at > history.revision:
            raise from_the_future(at, history.revision)
        if at < history.compacted_revision_of(home):
            raise expired("The resourceVersion for the provided list is too old.")
        return page(records, cut, at, history.since(home, at))

    def watch(self, home: Home, namespace: str | None, since: int, *, name: str | None = None) -> Watch:
        """Everything after `since`. Raises ApiError when that is forgotten or has not happened yet."""
        return open_watch(self._history, self._parking, (home, namespace or None, name), since)

    def lock(self, *refs: Ref) -> Hold:
        """`async with state.lock(ref):` what is read inside stays as it is until the commit inside."""
        return self._locks.hold(*refs)

    def is_locked(self, ref: Ref) -> bool:
        return self._locks.is_held(ref)

    def on_commit(self, hook: Hook) -> None:
        """Called with every batch of events once it is visible and before its writers are answered."""
        self._hooks.append(hook)

    async def settled(self) -> None:
        """Returns when what was being written is visible, or never will be."""
        await self._commits.passed()

    def check(self, writes: Sequence[Write]) -> None:
        """Raises ApiError when they were decided by what is no longer so; holders of the locks never get it."""
        for write in writes:
            group, plural = write.ref.home
            if self.get(write.ref) is not write.before or write.ref in self._pending:
                if write.before is None:
                    raise already_exists(plural, group, write.ref.name)
                raise conflict(plural, group, write.ref.name)

    async def commit(self, writes: Sequence[Write]) -> Records:
        """All or none. Returns when durable and visible: the new records, in order; of deletions the last state."""
        if self._is_closed:
            raise unavailable("the server is shutting down")
        if not writes:
            return []
        if len({write.ref for write in writes}) != len(writes):
            raise BugError("one commit writes an object twice", story=tuple(str(write.ref) for write in writes))
        self.check(writes)
        events = [self._event(write) for write in writes]
        changes = [
            StoredChange(
                event.record.ref, event.record.revision, None if event.kind == "DELETED" else event.record.data
            )
            for event in events
        ]
        self._pending.update(change.ref for change in changes)
        await self._commits.settled(Ticket(changes, events))
        return [event.record for event in events]

    def forget(self) -> None:
        """Drop history that is too old by now; every commit does so too."""
        self._history.trim(self._clock())

    def expire(self) -> None:
        """Forget all history: each open watch ends with 410, and so does each watch from an earlier revision."""
        self._history.forget_all()
        self._parking.rouse(self._history.revision)

    def end_watches(self, home: Home) -> None:
        """Of a resource that is gone with its definition."""
        self._parking.end(home)

    async def close(self) -> None:
        """Ends all watches, waits for what is being written, then closes the storage."""
        self._is_closed = True
        self._parking.close(self._history.revision)
        await self._commits.drain()
        await self._storage.close()

    def _event(self, write: Write) -> Event:
        self._assigned += 1
        revision, before = self._assigned, write.before
        if write.obj is None:
            if before is None:
                raise BugError("a commit deletes what is not there", story=(str(write.ref),))
            return Event("DELETED", before.at(revision), before)
        write.obj["metadata"]["resourceVersion"] = str(revision)
        share = self._interned.share
        record = Record(
            before.ref if before is not None else self._own(write.ref),
            write.uid,
            revision,
            _encode(write.obj),
            share(write.labels),
            share(write.fields),
        )
        return Event("ADDED" if before is None else "MODIFIED", record, before)

    def _own(self, ref: Ref) -> Ref:
        """The same address made of words that other records hold already."""
        return Ref(self._shelf(ref.home).home, intern(ref.namespace), ref.name)

    def _shelf(self, home: Home) -> SortedRecords:
        records = self._records.get(home)
        if records is None:
            records = self._records[home] = SortedRecords(home)
        return records

    def _publish(self, tickets: Sequence[Ticket], is_durable: bool) -> int:
        events = [event for ticket in tickets for event in ticket.events]
        self._pending.difference_update(event.record.ref for event in events)
        if not is_durable or not events:
            return 0
        for event in events:
            records = self._shelf(event.record.ref.home)
            if event.kind == "DELETED":
                records.drop(event.record.ref, event.record.revision)
            else:
                records.put(event.record)
        now_s, history = self._clock(), self._history
        seen = history.revision
        history.append(events, now_s)
        history.trim(now_s)
        self._call_hooks(events)
        self._parking.wake(events, seen)
        return self._foldable()

    def _foldable(self) -> int:
        """In small steps: the commit behind it waits."""
        if self._history.compacted_revision - self._folded < _FOLD_EVERY:
            return 0
        self._folded = min(self._history.compacted_revision, self._folded + 2 * _FOLD_EVERY)
        return self._folded

    def _call_hooks(self, events: Events) -> None:
        for hook in self._hooks:
            try:
                hook(events)
            except Exception as error:  # noqa: BLE001 - what is durable must be told to its writers, whatever a hook did
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "a hook failed after a commit", "exception": error}
                )
