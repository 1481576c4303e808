"""A state with damage is refused in one line that names it; an accepted loss starts from what can be read."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from build.cluster_states import change, pod
from shoal.embedded.apiserver.storage.acknowledged import FILE as RECORD
from shoal.embedded.apiserver.storage.sqlite import FILE, SqliteStorage
from shoal.units.errors import UserError

PODS = 600
NEWEST = PODS + 1
PAGE = 8192
GAP = 1_000_000_000


def damage_a_page_in_the_middle(folder: Path) -> None:
    overwrite(folder, (folder / FILE).stat().st_size // PAGE // 2, 1)


def damage_all_but_the_first_pages(folder: Path) -> None:
    overwrite(folder, 8, (folder / FILE).stat().st_size // PAGE - 8)


def damage_the_first_page(folder: Path) -> None:
    overwrite(folder, 0, 1)


def cut_the_file(folder: Path) -> None:
    os.truncate(folder / FILE, (folder / FILE).stat().st_size // 2)


def damage_the_record(folder: Path) -> None:
    (folder / RECORD).write_bytes(b"\x00" * 30)


STRUCTURAL = [damage_a_page_in_the_middle, damage_all_but_the_first_pages, damage_the_first_page, cut_the_file]
DAMAGES = [*STRUCTURAL, damage_the_record]


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damage_is_named_with_both_ways_out_and_nothing_is_changed(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    folder = await stored(tmp_path)
    damage(folder)
    before = content(folder)
    with pytest.raises(UserError, match="damaged") as refused:
        SqliteStorage(folder)
    assert "shoal cluster reset" in refused.value.fix
    assert "--accept-data-loss" in refused.value.fix
    assert "\n" not in str(refused.value)
    assert content(folder) == before


@pytest.mark.parametrize(
    ("damage", "at_least", "at_most"),
    [
        (damage_a_page_in_the_middle, PODS - 40, PODS - 1),
        (damage_all_but_the_first_pages, 1, PODS // 2),
        (damage_the_first_page, 0, 0),
        (cut_the_file, 1, PODS - 1),
        (damage_the_record, PODS, PODS),
    ],
)
async def test_an_accepted_loss_starts_from_what_can_be_read_and_keeps_the_damaged_files(
    tmp_path: Path, damage: Callable[[Path], None], at_least: int, at_most: int
) -> None:
    folder = await stored(tmp_path)
    damage(folder)
    before = content(folder)
    storage = SqliteStorage(folder, accept_loss=True)
    loaded = storage.load()
    found = list(loaded.objects)
    assert at_least <= len(found) <= at_most
    assert [one for one in found if json.loads(one.data or b"")["metadata"]["name"] != one.ref.name] == []
    assert (loaded.compacted_revision, list(loaded.history)) == (loaded.revision, [])
    assert content(folder / "damaged-1") == before
    await storage.commit([change(pod("new"), loaded.revision + 1)])
    await storage.close()
    again = SqliteStorage(folder)
    assert again.load().revision == loaded.revision + 1
    await again.close()


@pytest.mark.parametrize("damage", STRUCTURAL)
async def test_revisions_go_on_above_the_highest_acknowledged_one(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    folder = await stored(tmp_path)
    damage(folder)
    storage = SqliteStorage(folder, accept_loss=True)
    assert storage.load().revision == NEWEST
    await storage.close()


@pytest.mark.parametrize("damage", [damage_a_page_in_the_middle, None])
async def test_without_a_record_revisions_go_on_far_above_all_that_were_found(
    tmp_path: Path, damage: Callable[[Path], None] | None
) -> None:
    folder = await stored(tmp_path)
    damage_the_record(folder)
    if damage:
        damage(folder)
    storage = SqliteStorage(folder, accept_loss=True)
    assert GAP < storage.load().revision <= GAP + NEWEST
    await storage.close()


async def test_changes_that_are_only_in_the_log_outlive_damage_of_the_database(tmp_path: Path) -> None:
    folder = await stored(tmp_path, also_in_the_log=5)
    damage_a_page_in_the_middle(folder)
    storage = SqliteStorage(folder, accept_loss=True)
    loaded = storage.load()
    newest = {one.ref.name: one.revision for one in loaded.objects}
    assert [newest.get(f"p{at}") for at in range(4)] == [NEWEST + 1 + at for at in range(4)]
    assert "p4" not in newest, "it was deleted"
    assert loaded.revision == NEWEST + 5
    await storage.close()


async def test_a_file_that_was_never_ours_is_not_replaced_by_an_accepted_loss(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"these are my notes, do not touch " * 100)
    with pytest.raises(UserError, match="not a state of Shoal") as refused:
        SqliteStorage(tmp_path, accept_loss=True)
    assert "--accept-data-loss" not in refused.value.fix
    assert (tmp_path / FILE).read_bytes().startswith(b"these are my notes")


async def test_a_state_that_was_killed_in_a_transaction_with_a_journal_is_read_as_it_was_before_it(
    tmp_path: Path,
) -> None:
    folder = await stored(tmp_path)
    left_with_a_journal(folder)
    storage = SqliteStorage(folder)
    loaded = storage.load()
    assert (loaded.revision, len(list(loaded.objects))) == (NEWEST, PODS)
    await storage.close()


async def test_looking_at_a_state_with_a_journal_changes_neither_of_its_files(tmp_path: Path) -> None:
    folder = await stored(tmp_path)
    left_with_a_journal(folder)
    damage_the_record(folder)
    before = content(folder)
    assert f"{FILE}-journal" in before
    with pytest.raises(UserError, match="damaged"):
        SqliteStorage(folder)
    assert content(folder) == before


async def test_a_process_that_opens_the_state_does_not_disturb_another_that_looks_at_it(tmp_path: Path) -> None:
    folder = await stored(tmp_path)
    (folder / ".check-other").mkdir()
    other = os.open(folder, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(UserError, match="another shoal is using this state"):
        SqliteStorage(folder)
    assert (folder / ".check-other").exists()
    os.close(other)
    await SqliteStorage(folder).close()
    assert not (folder / ".check-other").exists(), "it was left by a process that is gone"


async def stored(tmp_path: Path, also_in_the_log: int = 0) -> Path:
    """A state of PODS objects, folded into the database; a few newer changes are only in the write-ahead log."""
    storage = SqliteStorage(tmp_path / "alive")
    for start in range(0, PODS, 50):
        await storage.commit([change(pod(f"p{at}"), at + 2, data(f"p{at}")) for at in range(start, start + 50)])
    await storage.compact(NEWEST)
    for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):  # no page is unused
        storage._file._connection.execute(statement).fetchall()
    for at in range(also_in_the_log):
        is_last = at == also_in_the_log - 1
        await storage.commit([change(pod(f"p{at}"), NEWEST + 1 + at, None if is_last else data(f"p{at}"))])
    shutil.copytree(tmp_path / "alive", tmp_path / "killed")
    await storage.close()
    return tmp_path / "killed"


def data(name: str) -> bytes:
    return json.dumps({"metadata": {"name": name}, "filling": "x" * 300}).encode()


def overwrite(folder: Path, first: int, pages: int) -> None:
    with (folder / FILE).open("r+b") as file:
        file.seek(first * PAGE)
        file.write(random.Random(first).randbytes(pages * PAGE))


def left_with_a_journal(folder: Path) -> None:
    """As a kill leaves the files while SQLite turns from its rollback journal to the write-ahead log."""
    work = folder.with_name("work")
    shutil.copytree(folder, work)
    connection = sqlite3.connect(work / FILE, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN")
    connection.execute("UPDATE objects SET revision = revision + 5000, data = zeroblob(400)")
    connection.execute("UPDATE folded SET revision = 9000")
    for name in (FILE, f"{FILE}-journal"):
        shutil.copy2(work / name, folder / name)
    (folder / f"{FILE}-wal").unlink(missing_ok=True)
    connection.execute("ROLLBACK")
    connection.close()


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
