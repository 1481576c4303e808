"""Tables of a history in memory, for tests and for clusters that end with their process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from shoal.store.history.tables import TABLES, StoredRow, Table


class MemoryTables:
    def __init__(self) -> None:
        self._tables: dict[Table, dict[str, StoredRow]] = {name: {} for name in TABLES}

    @contextmanager
    def transaction(self) -> Iterator[None]:
        before = {name: dict(rows) for name, rows in self._tables.items()}
        try:
            yield
        except BaseException:
            self._tables = before
            raise

    def put(self, table: Table, rows: Iterable[StoredRow]) -> None:
        self._tables[table].update((row.key, row) for row in rows)

    def get(self, table: Table, key: str) -> StoredRow | None:
        return self._tables[table].get(key)

    def overlapping(self, table: Table, start_ms: int, end_ms: int) -> Iterator[StoredRow]:
        found = [
            row
            for row in self._tables[table].values()
            if row.start_ms < end_ms and (row.end_ms is None or row.end_ms > start_ms)
        ]
        yield from sorted(found, key=_order)

    def open(self, table: Table) -> list[StoredRow]:
        return sorted((row for row in self._tables[table].values() if row.end_ms is None), key=_order)

    def of_tenant(self, table: Table, tenant: str) -> list[StoredRow]:
        return sorted((row for row in self._tables[table].values() if row.tenant == tenant), key=_order)

    def delete(self, table: Table, keys: Iterable[str]) -> None:
        for key in keys:
            self._tables[table].pop(key, None)

    def delete_ended(self, table: Table, before_ms: int) -> int:
        gone = [row.key for row in self._tables[table].values() if row.end_ms is not None and row.end_ms <= before_ms]
        self.delete(table, gone)
        return len(gone)

    def oldest(self, table: Table) -> int | None:
        return min((row.start_ms for row in self._tables[table].values()), default=None)

    def size_bytes(self) -> int:
        return sum(len(row.data) + len(row.key) for rows in self._tables.values() for row in rows.values())

    def close(self) -> None:
        pass


def _order(row: StoredRow) -> tuple[int, str]:
    return row.start_ms, row.key
