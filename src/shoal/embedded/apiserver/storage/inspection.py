"""Inspects a database without changing any of its files.

SQLite cannot look at a write-ahead log and leave it: closing the last connection moves the log into the database and
deletes it. So the files are opened under other names, hard links in a folder beside them. Before the connection is
closed the link to the database is removed; SQLite finds that the database is no longer where it was opened, and neither
moves nor deletes the log. Damaged files are not changed, so that they can be repaired.

A rollback journal beside the database is what a kill leaves before the state has its write-ahead log. SQLite would
write it back into the database, so such a database is looked at as a copy.

Rejected: SQLite's read-only modes. One of them ignores the log, the other deletes it all the same.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from shoal.embedded.apiserver.storage.tables import APPLICATION

WAL = "-wal"
JOURNAL = "-journal"
_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
_TABLES = {"log", "folded", "objects"}


class InspectionResult(msgspec.Struct, frozen=True):
    revision: int = 0
    """The highest one in the log or folded into the objects."""
    application: int = 0
    version: int = 0
    has_tables: bool = False
    fault: str = ""
    """What is wrong with the structure of the file; empty while it is sound."""


def inspect(path: Path) -> InspectionResult:
    """Raises sqlite3.Error where SQLite cannot use the file, OSError where it cannot be linked or copied."""
    if not path.exists() or not path.stat().st_size:
        return InspectionResult()
    with opened_aside(path) as connection:
        try:
            return _found(connection)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            return InspectionResult(application=_application(connection), fault=str(error))


@contextmanager
def opened_aside(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that leaves the files as they are."""
    with aside(path) as folder:
        bring = _copy if path.with_name(path.name + JOURNAL).exists() else _link
        for name in (path.name, path.name + WAL, path.name + JOURNAL):
            bring(path.with_name(name), folder / name)
        connection = sqlite3.connect(folder / path.name, timeout=0, isolation_level=None)
        try:
            yield connection
        finally:
            (folder / path.name).unlink()
            connection.close()


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """A folder beside the files, for as long as it is used."""
    folder = Path(tempfile.mkdtemp(prefix=".check-", dir=path.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_damage(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _DAMAGED


def files_of(path: Path) -> tuple[Path, ...]:
    return (path, path.with_name(path.name + WAL), path.with_name(path.name + JOURNAL))


def remove_leftovers(path: Path) -> None:
    """Folders of inspections that were killed. The caller has the folder's lock."""
    for folder in path.parent.glob(".check-*"):
        shutil.rmtree(folder, ignore_errors=True)


def copy_aside(path: Path, also: Path) -> Path:
    """The files as they are, in a new folder beside them, before anything is written over them."""
    number = 1
    while (folder := path.with_name(f"damaged-{number}")).exists():
        number += 1
    folder.mkdir(mode=0o700)
    for file in (*files_of(path), also):
        if file.exists():
            shutil.copy2(file, folder / file.name)
    return folder


def _copy(file: Path, to: Path) -> None:
    if file.exists():
        shutil.copy2(file, to)


def _link(file: Path, to: Path) -> None:
    try:
        os.link(file, to)
    except FileNotFoundError:
        return
    except OSError:
        # A filesystem without hard links.
        shutil.copy2(file, to)


def _application(connection: sqlite3.Connection) -> int:
    try:
        ((application,),) = connection.execute("PRAGMA application_id")
    except sqlite3.DatabaseError:
        return 0
    return int(application)


def _found(connection: sqlite3.Connection) -> InspectionResult:
    run = connection.execute
    ((application,),) = run("PRAGMA application_id")
    ((version,),) = run("PRAGMA user_version")
    tables = {name for (name,) in run("SELECT name FROM sqlite_master WHERE type = 'table'")}
    fault = run("PRAGMA quick_check(1)").fetchone()[0]
    missing = sorted(_TABLES - tables) if application == APPLICATION and tables else []
    if fault == "ok" and missing:
        fault = f"the table {missing[0]} is missing"
    revision = 0
    if fault == "ok" and tables >= _TABLES:
        ((compacted_revision,),) = run("SELECT max(revision) FROM folded")
        ((newest,),) = run("SELECT max(revision) FROM log")
        revision = max(compacted_revision or 0, newest or 0)
    return InspectionResult(revision, application, version, bool(tables), "" if fault == "ok" else fault)
