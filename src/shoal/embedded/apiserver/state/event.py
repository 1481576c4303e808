"""One visible change of an object, and the line that watches send for it."""

from __future__ import annotations

from typing import Literal

import msgspec

from shoal.embedded.apiserver.state.record import Record

EventKind = Literal["ADDED", "MODIFIED", "DELETED"]


_OPENINGS: dict[str, bytes] = {
    kind: b'{"type":"%s","object":' % kind.encode() for kind in ("ADDED", "MODIFIED", "DELETED")
}


class Event(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One visible change."""

    kind: EventKind
    record: Record
    """As it became; of a deleted object the last state, with the revision of its deletion."""
    before: Record | None

    @property
    def line(self) -> bytes:
        """As watchers of the stored version get it. Built when asked: joining costs less than keeping it."""
        return wire(self.kind, self.record)

    @property
    def kept_bytes(self) -> int:
        """What the event alone keeps alive."""
        kept = len(self.before.data) if self.before is not None else 0
        return kept + len(self.record.data) if self.kind == "DELETED" else kept

    def departed(self) -> Record:
        """The object before the change with the revision of the change: for a watch whose selector it left."""
        if self.before is None or self.kind == "DELETED":
            return self.record
        return self.before.at(self.record.revision)


def wire(kind: EventKind, record: Record) -> bytes:
    return b"".join((_OPENINGS[kind], record.data, b"}\n"))
