"""The tables of a state on disk, how SQLite is set for them, and how changes are folded into objects."""

from __future__ import annotations

import sqlite3

APPLICATION = 0x53484F4C
VERSION = 1
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
FOLD = (
    # Of a group with max(), SQLite takes the other columns from the row that holds the maximum.
    """INSERT OR REPLACE INTO objects
       SELECT family, plural, namespace, name, max(revision), data FROM log WHERE revision <= ?1
       GROUP BY family, plural, namespace, name""",
    "DELETE FROM objects WHERE data IS NULL AND revision <= ?1",
    "DELETE FROM log WHERE revision <= ?1",
    "UPDATE folded SET revision = max(revision, ?1)",
)


def prepare(connection: sqlite3.Connection) -> None:
    for setting in _SETTINGS:
        connection.execute(setting)
    with Transaction(connection):
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for statement in _TABLES:
            connection.execute(statement)


class Transaction:
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
