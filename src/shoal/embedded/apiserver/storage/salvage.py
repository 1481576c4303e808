"""Recovers the newest readable version of each object of a damaged database into a new one.

SQLite stops a query at the first page that it cannot read. So the rows are read by ranges of their number: of a range
that ends in an error, what is left is halved and each half is read by itself, until only the damaged rows are missing.
A row counts if it is what was written: an object under its own name.

An object whose newest version or whose deletion cannot be read comes back as an older version has it.

Rejected: the recovery extension of SQLite, which Python's module does not have.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import msgspec

from shoal.embedded.apiserver.resource import Home, Ref
from shoal.embedded.apiserver.storage.inspection import opened_aside
from shoal.embedded.apiserver.storage.port import StoredChange
from shoal.embedded.apiserver.storage.tables import Transaction, prepare

_MOST_QUERIES = 50_000
_LAST_ROW_UNKNOWN = 1 << 40
_log = logging.getLogger("shoal.storage")


class _Row(msgspec.Struct, array_like=True):
    family: str
    plural: str
    namespace: str
    name: str
    revision: int
    data: bytes | None


class _NamedMetadata(msgspec.Struct):
    name: str


class _Stored(msgspec.Struct):
    metadata: _NamedMetadata


_object = msgspec.json.Decoder(_Stored)


def salvage(path: Path, recorded: int) -> dict[Ref, StoredChange]:
    """The newest readable change of each object; `recorded` is a bound of the revisions, or 0."""
    newest: dict[Ref, StoredChange] = {}
    with opened_aside(path) as connection:
        # With this, SQLite reads a file that is shorter than it says, and a schema of which not all makes sense.
        connection.execute("PRAGMA writable_schema = ON")
        for table in ("objects", "log"):
            for change in _changes(connection, table, recorded):
                known = newest.get(change.ref)
                if known is None or known.revision < change.revision:
                    newest[change.ref] = change
    return newest


def write_salvaged(path: Path, found: dict[Ref, StoredChange]) -> None:
    """A whole database of these objects, without a log."""
    path.touch(mode=0o600)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        prepare(connection)
        rows = [(*one.ref.home, one.ref.namespace, one.ref.name, one.revision, one.data) for one in found.values()]
        with Transaction(connection):
            connection.executemany("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?)", rows)
    finally:
        connection.close()


def _changes(connection: sqlite3.Connection, table: str, recorded: int) -> Iterator[StoredChange]:
    for row in _rows(connection, table, recorded):
        try:
            found = msgspec.convert(row, _Row, builtin_types=(bytes,))
            is_whole = found.data is None or _object.decode(found.data).metadata.name == found.name
        except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError):
            continue
        if is_whole and found.revision > 0:
            ref = Ref(Home(found.family, found.plural), found.namespace, found.name)
            yield StoredChange(ref, found.revision, found.data)


def _rows(connection: sqlite3.Connection, table: str, recorded: int) -> Iterator[tuple[object, ...]]:
    query = f"""SELECT rowid, family, plural, namespace, name, revision, data FROM {table} NOT INDEXED
                WHERE rowid BETWEEN ? AND ? ORDER BY rowid"""  # noqa: S608 - no input in it
    ranges = deque([(1, _last_row(connection, table, recorded))])
    for _ in range(_MOST_QUERIES):
        if not ranges:
            return
        start, end = ranges.popleft()
        try:
            for number, *row in connection.execute(query, (start, end)):
                start = number + 1
                yield tuple(row)
        except sqlite3.Error:
            if start < end:
                middle = (start + end) // 2
                ranges += ((start, middle), (middle + 1, end))
    _log.warning("the table %s is damaged in very many places: objects that can be read may be left out", table)


def _last_row(connection: sqlite3.Connection, table: str, recorded: int) -> int:
    """No table has more rows than there were changes."""
    try:
        ((last,),) = connection.execute(f"SELECT max(rowid) FROM {table}")  # noqa: S608 - no input in it
    except sqlite3.Error:
        return recorded or _LAST_ROW_UNKNOWN
    return int(last or 0)
