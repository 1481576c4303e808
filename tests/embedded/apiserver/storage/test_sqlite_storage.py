"""The storage on disk: one server per folder, nothing half kept when the disk is full."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from build.cluster_states import change, pod
from shoal.embedded.apiserver.storage.port import StorageFault
from shoal.embedded.apiserver.storage.sqlite import FILE, SqliteStorage
from shoal.units.errors import UserError


async def test_a_second_server_on_the_same_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    first = SqliteStorage(tmp_path)
    with pytest.raises(UserError) as refused:
        SqliteStorage(tmp_path)
    assert "another shoal is using this state" in str(refused.value)
    assert "shoal down" in str(refused.value)
    await first.close()
    await SqliteStorage(tmp_path).close()


async def test_the_folder_and_the_files_are_the_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "state"
    storage = SqliteStorage(folder)
    await storage.commit([change(pod("a"), 2)])
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.stat().st_mode & 0o077 for file in folder.iterdir()] == [0] * len(list(folder.iterdir()))
    await storage.close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"these are my notes, do not touch " * 100)
    with pytest.raises(UserError, match="not a state of Shoal"):
        SqliteStorage(tmp_path)
    assert (tmp_path / FILE).read_bytes().startswith(b"these are my notes")


def test_another_programs_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("CREATE TABLE mine (x)")
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(UserError, match="not a state of Shoal"):
        SqliteStorage(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


async def test_a_state_of_a_newer_shoal_is_refused(tmp_path: Path) -> None:
    await SqliteStorage(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as newer:
        newer.execute("PRAGMA user_version = 99")
    with pytest.raises(UserError, match="newer Shoal"):
        SqliteStorage(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"):
        SqliteStorage(tmp_path / "file" / "state")


@pytest.mark.parametrize("rows", [1, 40, 1_200])
async def test_a_full_disk_keeps_nothing_of_a_batch_and_goes_on_when_there_is_room_again(
    tmp_path: Path, rows: int
) -> None:
    storage = SqliteStorage(tmp_path)
    await storage.commit([change(pod("first"), 2)])
    limit(storage, 300)  # room for the first of several statements
    batch = [change(pod(f"p{i}"), i + 3, b"x" * (4_000_000 // rows)) for i in range(rows)]
    with pytest.raises(StorageFault, match="full"):
        await storage.commit(batch)
    limit(storage, 1_000_000)
    await storage.commit([change(pod("last"), 5_000)])
    await storage.close()
    found = [one.ref.name for one in SqliteStorage(tmp_path).load().history]
    assert found == ["first", "last"]


async def test_a_bug_in_a_batch_reaches_its_writer_and_the_thread_goes_on(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path)
    with pytest.raises(OverflowError):
        await storage.commit([change(pod("a"), 2**70)])
    await storage.commit([change(pod("b"), 2)])
    await storage.close()


async def test_a_fold_that_meets_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path)
    await storage.commit([change(pod(f"p{i}"), i + 2, b"x" * 20_000) for i in range(30)])
    ((pages,),) = storage._file._connection.execute("PRAGMA page_count")
    limit(storage, pages)
    with pytest.raises(StorageFault, match="full"):
        await storage.compact(31)
    limit(storage, 1_000_000)
    await storage.close()
    loaded = SqliteStorage(tmp_path).load()
    assert (loaded.compacted_revision, len(list(loaded.objects)), len(list(loaded.history))) == (0, 0, 30)


def limit(storage: SqliteStorage, pages: int) -> None:
    """SQLite's own words for a disk without room come from this limit as well."""
    storage._file._connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()


async def test_an_empty_batch_finds_out_that_nothing_could_be_kept(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path)
    await storage.commit([])
    storage._file._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StorageFault, match="readonly"):
        await storage.commit([])
    storage._file._connection.execute("PRAGMA query_only = OFF")
    await storage.commit([])
    await storage.close()
