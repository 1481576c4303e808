"""What a database holds, found out without changing any of its files.

SQLite cannot look at a write-ahead log and leave it: closing the last connection moves the log into the database and
deletes it. So the files are opened under other names, hard links in a folder beside them. Before the connection is
closed the link to the database is removed; SQLite finds that the database is no longer where it was opened, and neither
moves nor deletes the log. What was found damaged stays as it is, for whom repairs it.

Rejected: SQLite's read-only modes. One of them ignores the log, the other deletes it all the same.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import msgspec

WAL = "-wal"


class Found(msgspec.Struct, frozen=True):
    revision: int = 0
    """The highest one in the log or folded into the objects."""
    application: int = 0
    version: int = 0
    has_tables: bool = False
    fault: str = ""
    """What is wrong with the structure of the file; empty while it is sound."""


def inspect(path: Path) -> Found:
    """Raises sqlite3.Error where SQLite cannot read the file, OSError where it cannot be linked or copied."""
    if not path.exists() or not path.stat().st_size:
        return Found()
    folder = Path(tempfile.mkdtemp(prefix=".check-", dir=path.parent))
    try:
        for name in (path.name, path.name + WAL):
            _link(path.with_name(name), folder / name)
        connection = sqlite3.connect(folder / path.name, timeout=0, isolation_level=None)
        try:
            return _found(connection)
        finally:
            (folder / path.name).unlink()
            connection.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(path: Path) -> None:
    """Folders of inspections that were killed."""
    for folder in path.parent.glob(".check-*"):
        shutil.rmtree(folder, ignore_errors=True)


def copy_aside(path: Path, also: Path) -> Path:
    """The files as they are, in a new folder beside them, before anything is written over them."""
    number = 1
    while (folder := path.with_name(f"damaged-{number}")).exists():
        number += 1
    folder.mkdir(mode=0o700)
    for file in (path, path.with_name(path.name + WAL), also):
        if file.exists():
            shutil.copy2(file, folder / file.name)
    return folder


def _link(file: Path, to: Path) -> None:
    try:
        os.link(file, to)
    except FileNotFoundError:
        return
    except OSError:
        # A filesystem without hard links.
        shutil.copy2(file, to)


def _found(connection: sqlite3.Connection) -> Found:
    run = connection.execute
    ((application,),) = run("PRAGMA application_id")
    ((version,),) = run("PRAGMA user_version")
    tables = {name for (name,) in run("SELECT name FROM sqlite_master WHERE type = 'table'")}
    fault = run("PRAGMA quick_check(1)").fetchone()[0]
    revision = 0
    if fault == "ok" and {"log", "folded"} <= tables:
        ((floor,),) = run("SELECT revision FROM folded")
        ((newest,),) = run("SELECT max(revision) FROM log")
        revision = max(floor, newest or 0)
    return Found(revision, application, version, bool(tables), "" if fault == "ok" else fault)
