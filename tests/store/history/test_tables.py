"""One suite for every backend of a history: memory, and a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.store.history.file_tables import FILE, open_for_reading, open_for_writing
from shoal.store.history.memory_tables import MemoryTables
from shoal.store.history.tables import StoredRow, Tables
from shoal.units.errors import ConflictError, UserError


@pytest.fixture(params=["memory", "file"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tables]:
    made: Tables = MemoryTables() if request.param == "memory" else open_for_writing(tmp_path / "history")
    yield made
    made.close()


def _row(key: str, start: int, end: int | None, tenant: str = "", data: bytes = b"x") -> StoredRow:
    return StoredRow(key, start, end, tenant, data)


def test_a_row_is_found_by_its_key_and_replaced_as_a_whole(tables: Tables) -> None:
    tables.put("holding", [_row("a", 1, None, "n", b"1")])
    tables.put("holding", [_row("a", 1, 5, "m", b"2")])
    assert tables.get("holding", "a") == _row("a", 1, 5, "m", b"2")
    assert tables.get("holding", "b") is None
    assert tables.get("wait", "a") is None


def test_rows_that_have_a_moment_of_an_interval_are_found_in_order(tables: Tables) -> None:
    rows = [
        _row("before", 0, 10),
        _row("until", 5, 11),
        _row("inside", 12, 13),
        _row("open", 3, None),
        _row("after", 20, 30),
    ]
    tables.put("wait", reversed(rows))
    assert [row.key for row in tables.overlapping("wait", 10, 20)] == ["open", "until", "inside"]


def test_open_rows_and_rows_of_a_tenant_are_found(tables: Tables) -> None:
    tables.put("holding", [_row("a", 2, None, "n"), _row("b", 1, None, "m"), _row("c", 0, 9, "n")])
    assert [row.key for row in tables.open("holding")] == ["b", "a"]
    assert [row.key for row in tables.of_tenant("holding", "n")] == ["c", "a"]


def test_rows_are_deleted_by_key_and_by_their_end(tables: Tables) -> None:
    tables.put("raw", [_row("a", 0, 5), _row("b", 0, 6), _row("c", 0, None), _row("d", 2, 9)])
    assert tables.oldest("raw") == 0
    assert tables.delete_ended("raw", 5) == 1
    tables.delete("raw", ["b", "unknown"])
    assert [row.key for row in tables.overlapping("raw", 0, 100)] == ["c", "d"]
    assert tables.oldest("five") is None


def test_a_transaction_is_stored_as_a_whole_or_not_at_all(tables: Tables) -> None:
    tables.put("gap", [_row("kept", 0, 1)])

    def fail() -> None:
        with tables.transaction():
            tables.put("gap", [_row("new", 1, 2)])
            tables.delete("gap", ["kept"])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [row.key for row in tables.overlapping("gap", 0, 9)] == ["kept"]


def test_the_size_grows_with_the_data(tables: Tables) -> None:
    before = tables.size_bytes()
    tables.put("raw", [_row("a", 0, 1, data=os.urandom(2_000_000))])
    assert tables.size_bytes() > before + 1_000_000


def test_what_was_deleted_does_not_count_before_its_space_is_given_back(tables: Tables) -> None:
    before = tables.size_bytes()
    tables.put("raw", [_row(f"a{at}", at, at + 1, data=os.urandom(1_000_000)) for at in range(20)])
    tables.delete_ended("raw", 15)
    assert 5_000_000 <= tables.size_bytes() - before < 6_000_000


def test_a_second_writer_is_refused_until_the_first_has_closed(tmp_path: Path) -> None:
    first = open_for_writing(tmp_path)
    with pytest.raises(ConflictError):
        open_for_writing(tmp_path)
    first.close()
    open_for_writing(tmp_path).close()


def test_a_reader_sees_what_was_committed_when_it_was_opened(tmp_path: Path) -> None:
    """Samples of two metrics that are read one after the other must be of the same moments."""
    writer = open_for_writing(tmp_path)
    writer.put("gap", [_row("a", 0, 1)])
    reader = open_for_reading(tmp_path)
    with writer.transaction():
        writer.put("gap", [_row("b", 1, 2)])
        assert [row.key for row in reader.overlapping("gap", 0, 9)] == ["a"]
    assert [row.key for row in reader.overlapping("gap", 0, 9)] == ["a"]
    reader.close()
    later = open_for_reading(tmp_path)
    assert [row.key for row in later.overlapping("gap", 0, 9)] == ["a", "b"]
    later.close()
    writer.close()


def test_a_folder_without_a_history_and_a_file_that_is_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no history"):
        open_for_reading(tmp_path)
    (tmp_path / FILE).write_bytes(b"something else" * 100)
    with pytest.raises(UserError, match="cannot be used"):
        open_for_reading(tmp_path)
    with pytest.raises(UserError, match="cannot be used"):
        open_for_writing(tmp_path)


def test_a_backup_is_a_history_and_replaces_no_file(tmp_path: Path) -> None:
    writer = open_for_writing(tmp_path / "one")
    writer.put("gap", [_row("a", 0, 1)])
    (tmp_path / "two").mkdir()
    writer.back_up(tmp_path / "two" / FILE)
    assert (tmp_path / "two" / FILE).stat().st_mode & 0o077 == 0
    writer.put("gap", [_row("b", 1, 2)])
    with pytest.raises(UserError, match="already exists"):
        writer.back_up(tmp_path / "two" / FILE)
    writer.close()
    restored = open_for_writing(tmp_path / "two")
    assert [row.key for row in restored.overlapping("gap", 0, 9)] == ["a"]
    restored.close()


def test_space_of_deleted_rows_is_given_back_and_their_bytes_are_overwritten(tmp_path: Path) -> None:
    tables = open_for_writing(tmp_path)
    secret = b"tenant-secret" * 10_000
    tables.put("raw", [_row(f"a{at}", 0, 1, data=secret) for at in range(20)])
    tables.close()
    full = (tmp_path / FILE).stat().st_size
    tables = open_for_writing(tmp_path)
    tables.delete_ended("raw", 1)
    tables.close()
    assert (tmp_path / FILE).stat().st_size < full / 4
    assert b"tenant-secret" not in (tmp_path / FILE).read_bytes()


_WRITER = """
import sys
from pathlib import Path
from shoal.store.history.file_tables import open_for_writing
from shoal.store.history.tables import StoredRow
tables = open_for_writing(Path(sys.argv[1]))
number = 0
while True:
    with tables.transaction():
        tables.put("holding", [StoredRow(f"{number}-{half}", number, number + 1, "", b"x" * 5000) for half in "ab"])
    number += 1
    print(number, flush=True)
"""


def test_after_a_kill_all_committed_transactions_are_there_and_no_half_one(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    said = [int(child.stdout.readline()) for _ in range(20)]
    child.send_signal(signal.SIGKILL)
    said += [int(line) for line in child.stdout.read().split("\n")[:-1]]
    child.wait()
    child.stdout.close()
    tables = open_for_writing(tmp_path)
    keys = {row.key for row in tables.overlapping("holding", 0, 1 << 40)}
    assert keys >= {f"{number}-{half}" for number in range(said[-1]) for half in "ab"}
    assert {key.removesuffix("-a") for key in keys if key.endswith("a")} == {
        key.removesuffix("-b") for key in keys if key.endswith("b")
    }
    tables.close()
