"""The state as it was when the process ended: objects first, then what happened since, as events again.

Watchers from before the restart read on. Nothing is decoded here: that would take most of the time of a start, and
labels are read at the first selection.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from shoal.embedded.apiserver.resource import Home, Ref
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.history import History, Limits
from shoal.embedded.apiserver.state.record import Describe, Record, unread
from shoal.embedded.apiserver.state.sorted_records import SortedRecords

if TYPE_CHECKING:
    from shoal.embedded.apiserver.storage.port import Loaded, StoredChange

_FIRST = 1
"""The revision of an empty state: 0 means "any" to clients."""
_TOGETHER = 256


class ResumedState(msgspec.Struct, frozen=True):
    """What is there, and what happened lately."""

    shelves: dict[Home, SortedRecords]
    history: History
    folded: int
    """Up to which revision the storage has folded its changes."""


def resume(loaded: Loaded, describe: Describe, limits: Limits, now_s: float) -> ResumedState:
    shelves: dict[Home, SortedRecords] = {}
    for change in loaded.objects:
        _put(shelves, change, describe)
    history = History(limits, max(loaded.compacted_revision, _FIRST))
    for events in _batches(shelves, loaded.history, describe):
        history.append(events, now_s)
    history.trim(now_s)
    history.revision = max(history.revision, loaded.revision)
    return ResumedState(shelves, history, loaded.compacted_revision)


def _batches(
    shelves: dict[Home, SortedRecords], changes: Iterable[StoredChange], describe: Describe
) -> Iterable[list[Event]]:
    events: list[Event] = []
    for change in changes:
        event = _event(shelves, change, describe)
        if event is not None:
            events.append(event)
        if len(events) == _TOGETHER:
            yield events
            events = []
    if events:
        yield events


def _event(shelves: dict[Home, SortedRecords], change: StoredChange, describe: Describe) -> Event | None:
    if change.data is not None:
        record, before = _put(shelves, change, describe)
        return Event("ADDED" if before is None else "MODIFIED", record, before)
    shelf = shelves.get(change.ref.home)
    before = shelf.drop(change.ref, change.revision) if shelf else None
    return Event("DELETED", before.at(change.revision), before) if before is not None else None


def _put(shelves: dict[Home, SortedRecords], change: StoredChange, describe: Describe) -> tuple[Record, Record | None]:
    home, namespace, name = change.ref
    shelf = shelves.get(home)
    if shelf is None:
        shelf = shelves[home] = SortedRecords(home)
    known = shelf.get(change.ref)
    ref = known.ref if known is not None else Ref(shelf.home, namespace, name)
    record = unread(ref, change.revision, change.data or b"", describe)
    return record, shelf.put(record)
