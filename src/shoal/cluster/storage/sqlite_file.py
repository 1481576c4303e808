"""The file behind `sqlite.SqliteStorage`: one table for the log, one for what it was folded into.

A batch is one INSERT of many rows, which SQLite runs as one transaction: the interpreter's lock is given up once, and
the event loop goes on while the disk works. Objects are not updated by a commit. They are folded from the log later,
some hundred changes at a time, when only the newest of each object is left to write. Folds and checkpoints are small
because commits wait for them.

A state that ends below the highest acknowledged revision has lost writes: it is refused before anything is written to
it, and its files stay as they are found. The same holds for a file whose structure is damaged.

The file is opened exclusively, so that the lock is the operating system's, ends with the process however that ends, and
no second server can come in between. It is readable by its owner alone: Secrets are in it.

Rejected: a row per object that every commit replaces. That writes each object twice, into pages all over the file, and
the history would need the log all the same.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from sys import intern

from shoal.cluster.resource import Home, Ref
from shoal.cluster.storage.acknowledged import FILE as RECORD
from shoal.cluster.storage.acknowledged import Acknowledged, read_acknowledged
from shoal.cluster.storage.inspection import WAL, Found, copy_aside, inspect, remove_leftovers
from shoal.cluster.storage.port import Change, Loaded, StorageFault
from shoal.units.errors import UserError, Where

_APPLICATION = 0x53484F4C
_VERSION = 1
_ROWS_AT_ONCE = 500
_SETTINGS = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA page_size = 8192",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA wal_autocheckpoint = 500",
    "PRAGMA journal_size_limit = 67108864",
)
_TABLES = (
    """CREATE TABLE IF NOT EXISTS log (
        revision INTEGER PRIMARY KEY, family TEXT NOT NULL, plural TEXT NOT NULL, namespace TEXT NOT NULL,
        name TEXT NOT NULL, data BLOB)""",
    """CREATE TABLE IF NOT EXISTS objects (
        family TEXT NOT NULL, plural TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
        revision INTEGER NOT NULL, data BLOB, PRIMARY KEY (family, plural, namespace, name))""",
    "CREATE INDEX IF NOT EXISTS gone ON objects (revision) WHERE data IS NULL",
    "CREATE TABLE IF NOT EXISTS folded (only INTEGER PRIMARY KEY CHECK (only = 1), revision INTEGER NOT NULL)",
    "INSERT OR IGNORE INTO folded VALUES (1, 0)",
)
_FOLD = (
    # Of a group with max(), SQLite takes the other columns from the row that holds the maximum.
    """INSERT OR REPLACE INTO objects
       SELECT family, plural, namespace, name, max(revision), data FROM log WHERE revision <= ?1
       GROUP BY family, plural, namespace, name""",
    "DELETE FROM objects WHERE data IS NULL AND revision <= ?1",
    "DELETE FROM log WHERE revision <= ?1",
    "UPDATE folded SET revision = max(revision, ?1)",
)
_TRIAL = "UPDATE folded SET revision = revision"
"""Changes nothing, and has to reach the disk all the same."""
_TRIAL_BYTES = 1 << 20
_RESTORE = "restore the folder from a backup, start over with `shoal cluster reset`"
_ROOM = "make room there, or choose another folder with --state; what was acknowledged is kept"


class SqliteFile:
    """A database that this process alone has open. Called by one thread at a time."""

    def __init__(self, connection: sqlite3.Connection, acknowledged: Acknowledged) -> None:
        self._connection = connection
        self._acknowledged = acknowledged

    @classmethod
    def open(cls, path: Path, *, accept_loss: bool = False) -> SqliteFile:
        """Raises UserError when the file is in use, is something else, has lost writes, or cannot be written.

        `accept_loss` goes on without writes that are lost: the files are copied aside first, and the next revision
        is higher than any that was acknowledged.
        """
        where = Where(file=str(path))
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            recorded = read_acknowledged(path.with_name(RECORD)) or 0
            remove_leftovers(path)
            found = inspect(path)
            _check(found, where)
            is_lost = found.revision < recorded
            if is_lost and not accept_loss:
                raise _incomplete(path, found.revision, recorded)
            if is_lost:
                copy_aside(path, path.with_name(RECORD))
            path.touch(mode=0o600)
        except (sqlite3.Error, OSError) as error:
            raise _refusal(error, where) from error
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection)
            if is_lost:
                _go_on_above(connection, recorded)
            acknowledged = Acknowledged(path.with_name(RECORD), max(found.revision, recorded))
        except (sqlite3.Error, OSError) as error:
            connection.close()
            raise _refusal(error, where) from error
        return cls(connection, acknowledged)

    def load(self) -> Loaded:
        run = self._connection.execute
        ((floor,),) = run("SELECT revision FROM folded")
        ((newest,),) = run("SELECT max(revision) FROM log")
        columns = "family, plural, namespace, name, revision, data"
        objects = _changes(run(f"SELECT {columns} FROM objects"))  # noqa: S608 - no input in it
        history = _changes(run(f"SELECT {columns} FROM log ORDER BY revision"))  # noqa: S608 - no input in it
        return Loaded(max(floor, newest or 0), floor, objects, history)

    def append(self, batch: Sequence[Change]) -> None:
        """All of it or nothing, on disk when this returns. Raises StorageFault."""
        try:
            if not batch:
                self._connection.execute(_TRIAL)
                return
            if len(batch) <= _ROWS_AT_ONCE:
                self._insert(batch)
            else:
                with _Transaction(self._connection):
                    for start in range(0, len(batch), _ROWS_AT_ONCE):
                        self._insert(batch[start : start + _ROWS_AT_ONCE])
        except sqlite3.Error as error:
            raise StorageFault(str(error)) from error
        self._acknowledged.advance(batch[-1].revision)

    def between_batches(self) -> None:
        self._acknowledged.sync_when_due()

    def fold(self, through: int) -> None:
        """Objects as of this revision; the changes up to it are forgotten. Raises StorageFault."""
        try:
            with _Transaction(self._connection):
                for statement in _FOLD:
                    self._connection.execute(statement, (through,))
        except sqlite3.Error as error:
            raise StorageFault(str(error)) from error

    def close(self) -> None:
        self._acknowledged.close()
        self._connection.close()

    def _insert(self, batch: Sequence[Change]) -> None:
        values: list[int | str | bytes | None] = []
        for change in batch:
            (group, plural), namespace, name = change.ref
            values += (change.revision, group, plural, namespace, name, change.data)
        self._connection.execute(_insertion(len(batch)), values)


class _Transaction:
    """Several statements that count together; a failure of any undoes all."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            # SQLite ends the transaction itself on some errors and leaves it open on others.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


@lru_cache(maxsize=256)
def _insertion(rows: int) -> str:
    values = ",".join(["(?,?,?,?,?,?)"] * rows)
    return f"INSERT INTO log VALUES {values}"  # noqa: S608 - nothing but question marks


def _check(found: Found, where: Where) -> None:
    if found.has_tables and found.application != _APPLICATION:
        raise UserError("this database is not a state of Shoal", where=where)
    if found.version > _VERSION:
        raise UserError("the state was written by a newer Shoal", where=where)
    if found.fault:
        raise UserError(f"the state is damaged ({found.fault})", where=where, fix=_RESTORE)


def _incomplete(path: Path, found: int, recorded: int) -> UserError:
    log = path.with_name(path.name + WAL)
    if not path.exists():
        why = f"{path.name} is missing"
    elif not log.exists():
        why = f"{log.name} is missing"
    else:
        why = f"{log.name} was cut or damaged"
    what = f"writes are lost: the state ends at revision {found}, and revision {recorded} was acknowledged; {why}"
    fix = f"nothing was changed; {_RESTORE}, or go on without them with `shoal up --accept-data-loss`"
    return UserError(what, where=Where(file=str(path)), fix=fix)


def _prepare(connection: sqlite3.Connection) -> None:
    for setting in _SETTINGS:
        connection.execute(setting)
    with _Transaction(connection):
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        for statement in _TABLES:
            connection.execute(statement)


def _go_on_above(connection: sqlite3.Connection, revision: int) -> None:
    """All history is folded: a watch that goes on from a revision of before is told to list again."""
    with _Transaction(connection):
        for statement in _FOLD:
            connection.execute(statement, (revision,))


def _refusal(error: sqlite3.Error | OSError, where: Where) -> UserError:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF == sqlite3.SQLITE_BUSY:
        fix = "stop it with `shoal down`, or give --state another folder"
        return UserError("another shoal is using this state", where=where, fix=fix)
    if code is not None and code & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return UserError(f"the state is damaged or not a state of Shoal ({error})", where=where, fix=_RESTORE)
    why = _words(error) if isinstance(error, OSError) else why_not_written(Path(where.file).parent)
    if why:
        return UserError(f"the state cannot be written: {why}", where=where, fix=_ROOM)
    return UserError(f"the state cannot be used: {error}", where=where)


def why_not_written(folder: Path) -> str:
    """The system's own words; SQLite calls a full disk an I/O error. Empty where a file can be written."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_TRIAL_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return _words(error)
    return ""


def _words(error: OSError) -> str:
    return "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror or str(error)


def _changes(rows: Iterator[tuple[str, str, str, str, int, bytes | None]]) -> Iterator[Change]:
    homes: dict[tuple[str, str], Home] = {}
    for group, plural, namespace, name, revision, data in rows:
        home = homes.get((group, plural))
        if home is None:
            home = homes[group, plural] = Home(intern(group), intern(plural))
        yield Change(Ref(home, intern(namespace), name), revision, data)
