"""Faults of objects, kept until they are reported to users.

A fault is reported once, and again when its message changes or when the object was valid in between.

Rejected: raising an exception. One invalid object must not prevent the reading of the others.
"""

from __future__ import annotations

import msgspec

from shoal.client.kind import Kind
from shoal.units.errors import UserError, one_line

UNREADABLE = "Unreadable"
INVALID_ANNOTATION = "InvalidAnnotation"
"""A fault of an object that is used nevertheless."""


class ObjectFault(msgspec.Struct, frozen=True):
    """A fault to be reported on the object itself."""

    kind: Kind
    key: str
    """namespace/name, or the name alone."""
    uid: str
    reason: str
    message: str


class ObjectFaults:
    def __init__(self) -> None:
        self._now: dict[tuple[Kind, str], ObjectFault] = {}
        self._fresh: dict[tuple[Kind, str], None] = {}

    def put(self, trouble: ObjectFault) -> None:
        at = trouble.kind, trouble.key
        if self._now.get(at) != trouble:
            self._now[at] = trouble
            self._fresh[at] = None

    @property
    def has_any(self) -> bool:
        return bool(self._now)

    def find(self, kind: Kind, key: str) -> ObjectFault | None:
        """The fault of that object."""
        return self._now.get((kind, key))

    def settle(self, kind: Kind, key: str) -> None:
        """Remove the fault: the object is valid, or deleted."""
        if self._now and self._now.pop((kind, key), None) is not None:
            self._fresh.pop((kind, key), None)

    def take(self) -> list[ObjectFault]:
        """The new faults since the last call."""
        fresh, self._fresh = self._fresh, {}
        return [self._now[at] for at in fresh]


def message_of(error: UserError) -> str:
    """The field, the fault and the correction; the object is named where it is reported."""
    place = f"{error.where.path}: " if error.where.path else ""
    fix = f"; {error.fix}" if error.fix else ""
    return one_line(f"{place}{error.what}{fix}")
