"""Lists at one revision: the objects there are now, with everything undone that happened since.

The first page of a list says its revision and the pages behind it are asked for at that revision, so that together they
are the state of one moment. Undoing costs as much as has happened since, and nothing when nothing has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from shoal.embedded.apiserver.state.sorted_records import SortedRecords, bounds, key_of

if TYPE_CHECKING:
    from shoal.embedded.apiserver.state.event import Event
    from shoal.embedded.apiserver.state.record import Record

Place = tuple[str, str]
"""Namespace and name."""


class Page(msgspec.Struct, frozen=True):
    """Part of a list, or all of it."""

    records: list[Record]
    revision: int
    remaining: int
    """How many objects follow the last one of this page."""
    last: Place | None
    """Where the next page continues; None when there is none."""


class Cut(msgspec.Struct, frozen=True):
    """Which part of the objects is asked for."""

    namespace: str | None = None
    after: Place | None = None
    limit: int = 0


def page(live: SortedRecords, cut: Cut, revision: int, newer: Sequence[Event]) -> Page:
    """`newer` are the events of the resource after `revision`, oldest first."""
    start, end = live.span(cut.namespace, cut.after)
    if not newer:
        stop = min(end, start + cut.limit) if cut.limit else end
        keys = live.keys[start:stop]
        return _page([live.records[key] for key in keys], revision, end - stop)
    undone = _undone(newer)
    keys = [key for key in live.keys[start:end] if undone.get(key, live) is not None]
    gone = [key for key, record in undone.items() if record and key not in live.records and _is_in(key, cut)]
    if gone:
        keys = sorted(keys + gone)
    shown = keys[: cut.limit] if cut.limit else keys
    records = [undone.get(key) or live.records[key] for key in shown]
    return _page(records, revision, len(keys) - len(shown))


def _page(records: list[Record], revision: int, remaining: int) -> Page:
    last = records[-1].ref if remaining and records else None
    return Page(records, revision, remaining, (last.namespace, last.name) if last else None)


def _undone(newer: Sequence[Event]) -> dict[str, Record | None]:
    """The value of each changed key before the oldest of these events; None where nothing did."""
    undone: dict[str, Record | None] = {}
    for event in newer:
        ref = event.record.ref
        undone.setdefault(key_of(ref.namespace, ref.name), event.before)
    return undone


def _is_in(key: str, cut: Cut) -> bool:
    if cut.after and key <= key_of(*cut.after):
        return False
    if not cut.namespace:
        return True
    start, end = bounds(cut.namespace)
    return start <= key < end
