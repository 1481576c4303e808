"""The port between the state and its persistent storage.

A storage is a log: every change of an object is appended with its revision, and older changes are folded into the
objects they led to when the state no longer needs them one by one. `commit` returns when the changes would survive a
crash, or raises `StorageFault` and has kept none of them. The state hands over one batch at a time and in the order of
revisions, so that no adapter has to think about concurrency.

Rejected: a key-value port with transactions. The state decides alone what may be written, in memory; a second place
that compares versions would be a second truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from shoal.embedded.apiserver.resource import Ref


class StoredChange(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One object as it became at one revision."""

    ref: Ref
    revision: int
    data: bytes | None
    """The object as JSON in its stored version, resourceVersion inside; None when it was deleted."""


class Loaded(msgspec.Struct, frozen=True):
    """What was found at the start. `objects` is read to its end before `history`."""

    revision: int
    """The highest revision ever kept; 0 in a new storage."""
    compacted_revision: int
    """The highest revision whose changes are folded into `objects`."""
    objects: Iterable[StoredChange]
    """Objects as they were at `compacted_revision`."""
    history: Iterable[StoredChange]
    """Every change since, in order."""


class StorageFault(Exception):  # noqa: N818 - one word with the contract of the port
    """A batch was not kept. The text is one line and says why."""


class Storage(Protocol):
    def load(self) -> Loaded:
        """Called once, before anything else."""

    async def commit(self, batch: Sequence[StoredChange]) -> None:
        """Keep all or nothing; durable on return. Never called again before it returned.

        An empty batch keeps nothing and finds out whether anything could be kept.
        """

    async def compact(self, through: int) -> None:
        """Changes up to this revision are no longer needed one by one. May be put off, never loses an object."""

    async def close(self) -> None:
        """Everything kept stays; nothing else is called afterwards."""
