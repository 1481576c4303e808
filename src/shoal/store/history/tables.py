"""The port of a history's storage: tables of intervals with a key, and what is stored of each.

A row is found by its table and key and replaced as a whole; a row without an end is open. Writes of one `transaction`
are stored together or not at all, also when the process is killed. One process writes; others read what was committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, Protocol

Table = Literal[
    "machine",
    "holding",
    "wait",
    "gap",
    "meta",
    "device",
    "scrape",
    "raw",
    "five",
    "hour",
    "use",
    "alert",
    "created",
    "budget",
    "quota",
]
TABLES: tuple[Table, ...] = (
    "machine",
    "holding",
    "wait",
    "gap",
    "meta",
    "device",
    "scrape",
    "raw",
    "five",
    "hour",
    "use",
    "alert",
    "created",
    "budget",
    "quota",
)


class StoredRow(NamedTuple):
    key: str
    start_ms: int
    end_ms: int | None
    tenant: str
    """The namespace whose data it is."""
    data: bytes


class Tables(Protocol):
    def transaction(self) -> AbstractContextManager[None]: ...

    def put(self, table: Table, rows: Iterable[StoredRow]) -> None: ...

    def get(self, table: Table, key: str) -> StoredRow | None: ...

    def overlapping(self, table: Table, start_ms: int, end_ms: int) -> Iterator[StoredRow]:
        """Rows that have a moment of the interval, ordered by start and key."""
        ...

    def open(self, table: Table) -> list[StoredRow]:
        """Rows without an end, ordered by start and key."""
        ...

    def of_tenant(self, table: Table, tenant: str) -> list[StoredRow]: ...

    def delete(self, table: Table, keys: Iterable[str]) -> None: ...

    def delete_ended(self, table: Table, before_ms: int) -> int:
        """Rows that ended at or before this moment; how many they were."""
        ...

    def oldest(self, table: Table) -> int | None:
        """The earliest start."""
        ...

    def size_bytes(self) -> int:
        """What the rows take, without the space of those that were deleted."""
        ...

    def close(self) -> None: ...
