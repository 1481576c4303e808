"""Tables of a history in one SQLite file: `open_for_writing` for the one process that records, `open_for_reading` for
others.

Guarantees: after a kill the file has all committed transactions and nothing else; a second writer is refused; readers
never block the writer; deleted data is overwritten. Rejected: DuckDB, which compresses columns well, but lets no other
process read while one writes, and takes several times the memory (see the page on dependencies).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shoal.store.history.tables import TABLES, StoredRow, Table
from shoal.units.errors import ConflictError, UserError, Where

FILE = "history.db"
_LOCK = "history.lock"
_PAGES_PER_STEP = 2000
_COLUMNS = "key, start_ms, end_ms, tenant, data"


def open_for_writing(folder: Path) -> FileTables:
    """Raises ConflictError while another process writes, and UserError if the folder cannot be used."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unusable(folder, error.strerror or str(error)) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise ConflictError("another process writes the history", where=Where(file=str(folder))) from None
    try:
        database = _connected(f"file:{_quoted(folder / FILE)}?mode=rwc")
        (folder / FILE).chmod(0o600)
        _prepare(database)
    except (sqlite3.Error, OSError) as error:
        os.close(lock)
        raise _unusable(folder, str(error)) from error
    return FileTables(database, folder / FILE, lock)


def open_for_reading(folder: Path) -> FileTables:
    """What was committed until now; it is closed soon, as the file cannot shrink meanwhile. Raises UserError where
    there is no history."""
    path = folder / FILE
    if not path.is_file():
        fix = "start shoal up or shoal run with a history, or name its folder with --history"
        raise UserError("has no history", where=Where(file=str(folder)), fix=fix)
    try:
        database = _connected(f"file:{_quoted(path)}?mode=ro")
        # One transaction for all that is read: what is written meanwhile would not fit what was read before.
        database.execute("begin")
        database.execute("select 1 from machine limit 1")
    except sqlite3.Error as error:
        raise _unusable(folder, str(error)) from error
    return FileTables(database, path, None)


class FileTables:
    def __init__(self, database: sqlite3.Connection, path: Path, lock: int | None) -> None:
        self._database = database
        self._path = path
        self._lock = lock
        self._depth = 0
        names = database.execute("select name from sqlite_master where type = 'table'")
        self._there = {name for (name,) in names}
        """An earlier version may have written the file, which knew fewer tables."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._depth:
            yield
            return
        self._database.execute("begin immediate")
        self._depth += 1
        try:
            yield
        except BaseException:
            self._database.execute("rollback")
            raise
        else:
            self._database.execute("commit")
        finally:
            self._depth -= 1

    def put(self, table: Table, rows: Iterable[StoredRow]) -> None:
        with self.transaction():
            self._database.executemany(f"insert or replace into {table} ({_COLUMNS}) values (?, ?, ?, ?, ?)", rows)  # noqa: S608 - a name of TABLES

    def get(self, table: Table, key: str) -> StoredRow | None:
        found = self._rows(table, "where key = ?", (key,))
        return next(found, None)

    def overlapping(self, table: Table, start_ms: int, end_ms: int) -> Iterator[StoredRow]:
        return self._rows(
            table,
            "where (end_ms > ? or end_ms is null) and start_ms < ? order by start_ms, key",
            (start_ms, end_ms),
        )

    def open(self, table: Table) -> list[StoredRow]:
        return list(self._rows(table, "where end_ms is null order by start_ms, key", ()))

    def of_tenant(self, table: Table, tenant: str) -> list[StoredRow]:
        return list(self._rows(table, "where tenant = ? order by start_ms, key", (tenant,)))

    def delete(self, table: Table, keys: Iterable[str]) -> None:
        with self.transaction():
            self._database.executemany(f"delete from {table} where key = ?", ((key,) for key in keys))  # noqa: S608 - a name of TABLES

    def delete_ended(self, table: Table, before_ms: int) -> int:
        with self.transaction():
            found = self._database.execute(f"delete from {table} where end_ms <= ?", (before_ms,))  # noqa: S608 - a name of TABLES
        if not self._depth:
            # A script steps through all pages; a statement ends after the first.
            self._database.executescript(f"pragma incremental_vacuum({_PAGES_PER_STEP})")
        return found.rowcount

    def oldest(self, table: Table) -> int | None:
        found: int | None = self._database.execute(f"select min(start_ms) from {table}").fetchone()[0]  # noqa: S608 - a name of TABLES
        return found

    def size_bytes(self) -> int:
        # Free pages are used again, or given back to the file system a few at a time.
        pages, free, size = (
            self._database.execute(f"pragma {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        used: int = (pages - free) * size
        return used

    def back_up(self, path: Path) -> None:
        """A copy of what is committed, in a new file, while the history is written."""
        try:
            # Never readable by others, also while it is written.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            raise UserError("already exists", where=Where(file=str(path)), fix="name a new file") from None
        except OSError as error:
            raise UserError(f"cannot be written: {error.strerror}", where=Where(file=str(path))) from error
        copy = sqlite3.connect(path)
        try:
            self._database.backup(copy)
        except sqlite3.Error as error:
            raise UserError(f"cannot be written: {error}", where=Where(file=str(path))) from error
        finally:
            copy.close()

    def close(self) -> None:
        self._database.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _rows(self, table: Table, where: str, values: tuple[Any, ...]) -> Iterator[StoredRow]:
        if table not in self._there:
            return iter(())
        found = self._database.execute(f"select {_COLUMNS} from {table} {where}", values)  # noqa: S608 - a name of TABLES
        return (StoredRow(*row) for row in found)


def _connected(address: str) -> sqlite3.Connection:
    database = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
    database.execute("pragma cache_size = -8000")
    return database


def _prepare(database: sqlite3.Connection) -> None:
    database.execute("pragma auto_vacuum = incremental")
    database.execute("pragma journal_mode = wal")
    database.execute("pragma synchronous = normal")
    database.execute("pragma secure_delete = on")
    database.execute("pragma journal_size_limit = 16777216")
    for table in TABLES:
        database.execute(
            f"create table if not exists {table} (key text primary key, start_ms integer not null, end_ms integer, "
            "tenant text not null, data blob not null) without rowid"
        )
        database.execute(f"create index if not exists {table}_end on {table} (end_ms, start_ms)")
        if table in ("holding", "wait", "alert"):
            database.execute(f"create index if not exists {table}_tenant on {table} (tenant)")


def _quoted(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _unusable(folder: Path, why: str) -> UserError:
    return UserError(f"the history cannot be used: {why}", where=Where(file=str(folder)))
