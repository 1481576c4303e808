"""Stores recent changes by resource, in order: watches continue from a revision, lists read an older one.

Watchers have no queues. A watcher has a revision and reads on from it, so that twenty watchers of ten thousand events
have twenty numbers; a watcher whose revision is no longer in the history gets 410, as in Kubernetes. What an event
keeps alive is the object it replaced; that is what the byte budget counts.

The limits forget from the oldest on, over all resources together, but each resource remembers how far *it* was
forgotten: a watcher of a resource that never changes is not sent away because another one is busy.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from shoal.embedded.apiserver.resource import Home
    from shoal.embedded.apiserver.state.event import Event

_REVISION = attrgetter("record.revision")
_EVENT_BYTES = 200
"""What an event holds beside the bytes of the object."""


class Limits(msgspec.Struct, frozen=True):
    """How much is remembered. What is beyond any of them is forgotten."""

    count: int = 100_000
    age_s: float = 300.0
    size_bytes: int = 64 << 20


class _Mark(msgspec.Struct, gc=False):
    """One batch of events that became visible together."""

    last: int
    at_s: float
    count: int
    size_bytes: int


class _Line:
    """The events of one resource."""

    __slots__ = ("compacted_revision", "events")

    def __init__(self, compacted_revision: int) -> None:
        self.events: list[Event] = []
        self.compacted_revision = compacted_revision
        """The newest revision that was forgotten."""


class History:
    """The newest events of everything."""

    def __init__(self, limits: Limits, revision: int) -> None:
        self._limits = limits
        self._lines: dict[Home, _Line] = {}
        self._marks: deque[_Mark] = deque()
        self._count = 0
        self._size_bytes = 0
        self._start = revision
        self.revision = revision
        """The newest that is visible."""
        self.compacted_revision = revision
        """The newest that was forgotten of all."""
        self.epoch = 0
        """Grows when everything is forgotten at once: watchers since before have lost their revision."""

    def append(self, events: Sequence[Event], now_s: float) -> None:
        size_bytes = 0
        for event in events:
            home = event.record.ref.home
            line = self._lines.get(home)
            if line is None:
                line = self._lines[home] = _Line(self._start)
            line.events.append(event)
            size_bytes += event.kept_bytes + _EVENT_BYTES
        self.revision = events[-1].record.revision
        self._marks.append(_Mark(self.revision, now_s, len(events), size_bytes))
        self._count += len(events)
        self._size_bytes += size_bytes

    def compacted_revision_of(self, home: Home) -> int:
        line = self._lines.get(home)
        return self._start if line is None else line.compacted_revision

    def since(self, home: Home, revision: int, most: int = 0) -> list[Event]:
        """The events of a resource after a revision that is not below its floor, oldest first."""
        line = self._lines.get(home)
        if line is None:
            return []
        events = line.events
        if not events or events[-1].record.revision <= revision:
            return []
        start = bisect_right(events, revision, key=_REVISION)
        return events[start : start + most] if most else events[start:]

    def trim(self, now_s: float) -> None:
        """Forget what is beyond the limits; never the newest batch, which watchers had no time to read."""
        limits, marks = self._limits, self._marks
        compacted_revision = self.compacted_revision
        while len(marks) > 1 and (
            self._count > limits.count or self._size_bytes > limits.size_bytes or now_s - marks[0].at_s > limits.age_s
        ):
            mark = marks.popleft()
            self._count -= mark.count
            self._size_bytes -= mark.size_bytes
            compacted_revision = mark.last
        if compacted_revision != self.compacted_revision:
            self.compacted_revision = compacted_revision
            self._cut(compacted_revision)

    def forget_all(self) -> None:
        """As if all of it had happened too long ago."""
        self._lines.clear()
        self._marks.clear()
        self._count = self._size_bytes = 0
        self._start = self.compacted_revision = self.revision
        self.epoch += 1

    def _cut(self, compacted_revision: int) -> None:
        for line in self._lines.values():
            events = line.events
            if events and events[0].record.revision <= compacted_revision:
                gone = bisect_right(events, compacted_revision, key=_REVISION)
                line.compacted_revision = events[gone - 1].record.revision
                del events[:gone]
