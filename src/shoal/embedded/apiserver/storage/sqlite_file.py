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
import fcntl
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from sys import intern

from shoal.embedded.apiserver.resource import Home, Ref
from shoal.embedded.apiserver.storage.acknowledged import FILE as RECORD
from shoal.embedded.apiserver.storage.acknowledged import Acknowledged, DamagedRecordError, read_acknowledged
from shoal.embedded.apiserver.storage.inspection import (
    WAL,
    InspectionResult,
    aside,
    copy_aside,
    files_of,
    inspect,
    is_damage,
    remove_leftovers,
)
from shoal.embedded.apiserver.storage.port import Loaded, StorageFault, StoredChange
from shoal.embedded.apiserver.storage.salvage import salvage, write_salvaged
from shoal.embedded.apiserver.storage.tables import APPLICATION, FOLD, VERSION, Transaction, prepare
from shoal.units.errors import UserError, Where

_ROWS_AT_ONCE = 500
_TRIAL = "UPDATE folded SET revision = revision"
"""Changes nothing, and has to reach the disk all the same."""
_TRIAL_BYTES = 1 << 20
_RESTORE = "restore the folder from a backup, start over with `shoal cluster reset`"
_ACCEPT = "or start with what can be read with `shoal up --accept-data-loss`"
_GAP = 1_000_000_000
"""How far revisions advance if the highest acknowledged one is unknown."""
_ROOM = "make room there, or choose another folder with --state; what was acknowledged is kept"


class SqliteFile:
    """A database that this process alone has open. Called by one thread at a time."""

    def __init__(self, connection: sqlite3.Connection, acknowledged: Acknowledged) -> None:
        self._connection = connection
        self._acknowledged = acknowledged

    @classmethod
    def open(cls, path: Path, *, accept_loss: bool = False) -> SqliteFile:
        """Raises UserError when the file is in use, something else or damaged, lost writes, or cannot be written.

        `accept_loss` goes on without writes that are lost, and from what can be read of a damaged file: the files are
        copied aside first, and the next revision is higher than any that was acknowledged.
        """
        where = Where(file=str(path))
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _alone(path.parent, where):
                return cls._opened(path, where, accept_loss)
        except (sqlite3.Error, OSError) as error:
            raise _refusal(error, where) from error

    @classmethod
    def _opened(cls, path: Path, where: Where, accept_loss: bool) -> SqliteFile:
        record = path.with_name(RECORD)
        recorded, damage = _recorded(record)
        remove_leftovers(path)
        found = inspect(path)
        _check(found, where, has_record=record.exists())
        damage = _damage(path, found, recorded) or damage
        if damage is not None and not accept_loss:
            raise damage
        reached = found.revision
        if damage is not None:
            copy_aside(path, record)
        if found.fault:
            reached = _replace_by_what_can_be_read(path, recorded)
        path.touch(mode=0o600)
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            prepare(connection)
            if damage is not None:
                reached = max(reached, recorded) if recorded else reached + _GAP
                _go_on_above(connection, reached)
            acknowledged = Acknowledged(record, reached)
        except BaseException:
            connection.close()
            raise
        return cls(connection, acknowledged)

    def load(self) -> Loaded:
        run = self._connection.execute
        ((compacted_revision,),) = run("SELECT revision FROM folded")
        ((newest,),) = run("SELECT max(revision) FROM log")
        columns = "family, plural, namespace, name, revision, data"
        objects = _changes(run(f"SELECT {columns} FROM objects"))  # noqa: S608 - no input in it
        history = _changes(run(f"SELECT {columns} FROM log ORDER BY revision"))  # noqa: S608 - no input in it
        return Loaded(max(compacted_revision, newest or 0), compacted_revision, objects, history)

    def append(self, batch: Sequence[StoredChange]) -> None:
        """All of it or nothing, on disk when this returns. Raises StorageFault."""
        try:
            if not batch:
                self._connection.execute(_TRIAL)
                return
            if len(batch) <= _ROWS_AT_ONCE:
                self._insert(batch)
            else:
                with Transaction(self._connection):
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
            with Transaction(self._connection):
                for statement in FOLD:
                    self._connection.execute(statement, (through,))
        except sqlite3.Error as error:
            raise StorageFault(str(error)) from error

    def close(self) -> None:
        self._acknowledged.close()
        self._connection.close()

    def _insert(self, batch: Sequence[StoredChange]) -> None:
        values: list[int | str | bytes | None] = []
        for change in batch:
            (group, plural), namespace, name = change.ref
            values += (change.revision, group, plural, namespace, name, change.data)
        self._connection.execute(_insertion(len(batch)), values)


@lru_cache(maxsize=256)
def _insertion(rows: int) -> str:
    values = ",".join(["(?,?,?,?,?,?)"] * rows)
    return f"INSERT INTO log VALUES {values}"  # noqa: S608 - nothing but question marks


@contextmanager
def _alone(folder: Path, where: Where) -> Iterator[None]:
    """No other process looks at the files meanwhile. Once the database is open, its own lock says that it is in use."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # A filesystem that cannot lock a folder.
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _in_use(where) from None
        yield
    finally:
        os.close(descriptor)


def _recorded(record: Path) -> tuple[int, UserError | None]:
    """The highest acknowledged revision, or 0 and what is wrong with the record of it."""
    try:
        return read_acknowledged(record) or 0, None
    except DamagedRecordError as error:
        return 0, UserError(error.what, where=error.where, fix=f"nothing was changed; {_RESTORE}, {_ACCEPT}")


def _check(found: InspectionResult, where: Where, *, has_record: bool) -> None:
    """Whether this is a state of Shoal, damaged or not."""
    if found.has_tables and found.application != APPLICATION:
        raise UserError("this database is not a state of Shoal", where=where)
    if found.version > VERSION:
        raise UserError("the state was written by a newer Shoal", where=where)
    if found.fault and found.application != APPLICATION and not has_record:
        raise UserError(f"the state is damaged or not a state of Shoal ({found.fault})", where=where, fix=_RESTORE)


def _damage(path: Path, found: InspectionResult, recorded: int) -> UserError | None:
    if found.fault:
        fix = f"nothing was changed; {_RESTORE}, {_ACCEPT}"
        return UserError(f"the state is damaged ({found.fault})", where=Where(file=str(path)), fix=fix)
    return _incomplete(path, found.revision, recorded) if found.revision < recorded else None


def _replace_by_what_can_be_read(path: Path, recorded: int) -> int:
    """The highest revision found. The damaged files have been copied aside."""
    found = salvage(path, recorded)
    with aside(path) as folder:
        write_salvaged(folder / path.name, found)
        _, *logs = files_of(path)
        for log in logs:
            log.unlink(missing_ok=True)
        (folder / path.name).replace(path)
    return max((change.revision for change in found.values()), default=0)


def _incomplete(path: Path, found: int, recorded: int) -> UserError:
    log = path.with_name(path.name + WAL)
    if not path.exists():
        why = f"{path.name} is missing"
    elif not log.exists():
        why = f"{log.name} is missing"
    else:
        why = f"{log.name} was cut or damaged"
    what = f"writes are lost: the state ends at revision {found}, and revision {recorded} was acknowledged; {why}"
    fix = f"nothing was changed; {_RESTORE}, {_ACCEPT}"
    return UserError(what, where=Where(file=str(path)), fix=fix)


def _go_on_above(connection: sqlite3.Connection, revision: int) -> None:
    """Compact all history: a watch that continues from an older revision gets 410 and must list again."""
    with Transaction(connection):
        for statement in FOLD:
            connection.execute(statement, (revision,))


def _refusal(error: sqlite3.Error | OSError, where: Where) -> UserError:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF == sqlite3.SQLITE_BUSY:
        return _in_use(where)
    if is_damage(error):
        return UserError(f"the state is damaged or not a state of Shoal ({error})", where=where, fix=_RESTORE)
    why = _words(error) if isinstance(error, OSError) else why_not_written(Path(where.file).parent)
    if why:
        return UserError(f"the state cannot be written: {why}", where=where, fix=_ROOM)
    return UserError(f"the state cannot be used: {error}", where=where)


def _in_use(where: Where) -> UserError:
    fix = "stop it with `shoal down`, or give --state another folder"
    return UserError("another shoal is using this state", where=where, fix=fix)


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


def _changes(rows: Iterator[tuple[str, str, str, str, int, bytes | None]]) -> Iterator[StoredChange]:
    homes: dict[tuple[str, str], Home] = {}
    for group, plural, namespace, name, revision, data in rows:
        home = homes.get((group, plural))
        if home is None:
            home = homes[group, plural] = Home(intern(group), intern(plural))
        yield StoredChange(Ref(home, intern(namespace), name), revision, data)
