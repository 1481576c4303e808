"""A state that has lost acknowledged writes is refused, and its files stay as they were found."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from build.cluster_states import change, pod
from shoal.embedded.apiserver.storage.acknowledged import FILE as RECORD
from shoal.embedded.apiserver.storage.acknowledged import Acknowledged, read_acknowledged
from shoal.embedded.apiserver.storage.sqlite import FILE, SqliteStorage
from shoal.units.errors import UserError

NEWEST = 301
LOG = f"{FILE}-wal"


def flip_the_first_frame(folder: Path) -> None:
    with (folder / LOG).open("r+b") as log:
        log.seek(60)
        log.write(b"\xff\xff\xff\xff")


def damage_the_header(folder: Path) -> None:
    with (folder / LOG).open("r+b") as log:
        log.write(b"\x00" * 32)


def remove_the_log(folder: Path) -> None:
    (folder / LOG).unlink()


def empty_the_log(folder: Path) -> None:
    (folder / LOG).write_bytes(b"")


def cut_the_log(folder: Path) -> None:
    content = (folder / LOG).read_bytes()
    (folder / LOG).write_bytes(content[: len(content) - 30_001])


def fill_the_log_with_noise(folder: Path) -> None:
    (folder / LOG).write_bytes(random.Random(7).randbytes(100_000))


def remove_the_database(folder: Path) -> None:
    (folder / FILE).unlink()


def empty_the_database(folder: Path) -> None:
    (folder / FILE).write_bytes(b"")


def fill_the_database_with_noise(folder: Path) -> None:
    """From its second page on; the first one says what the file is."""
    (folder / LOG).unlink()
    with (folder / FILE).open("r+b") as file:
        file.seek(8192)
        file.write(random.Random(8).randbytes((folder / FILE).stat().st_size - 8192))


LOSSES = [
    flip_the_first_frame,
    damage_the_header,
    remove_the_log,
    empty_the_log,
    cut_the_log,
    fill_the_log_with_noise,
    remove_the_database,
    empty_the_database,
]


@pytest.mark.parametrize("lose", LOSSES)
async def test_a_state_that_ends_too_early_is_refused_and_left_as_it_is(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    folder = await killed(tmp_path)
    lose(folder)
    before = content(folder)
    for _ in range(2):
        with pytest.raises(UserError, match=f"revision {NEWEST} was acknowledged") as refused:
            SqliteStorage(folder)
        assert "shoal cluster reset" in refused.value.fix
        assert "--accept-data-loss" in refused.value.fix
    assert content(folder) == before


@pytest.mark.parametrize("lose", [*LOSSES, fill_the_database_with_noise])
async def test_no_damage_goes_unnoticed_and_none_is_worsened(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    folder = await killed(tmp_path, folded_through=200)
    lose(folder)
    before = content(folder)
    with pytest.raises(UserError):
        SqliteStorage(folder)
    assert content(folder) == before


@pytest.mark.parametrize("lose", LOSSES)
async def test_an_accepted_loss_goes_on_above_all_revisions_and_keeps_the_damaged_files(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    folder = await killed(tmp_path)
    lose(folder)
    before = content(folder)
    storage = SqliteStorage(folder, accept_loss=True)
    loaded = storage.load()
    # Nobody is led on from a revision of before: what happened since then is not known.
    assert (loaded.revision, loaded.compacted_revision, list(loaded.history)) == (NEWEST, NEWEST, [])
    assert {one.revision for one in loaded.objects} <= set(range(2, NEWEST))
    assert content(folder / "damaged-1") == before
    await storage.commit([change(pod("new"), NEWEST + 1)])
    await storage.close()
    again = SqliteStorage(folder)
    assert again.load().revision == NEWEST + 1
    await again.close()


async def test_a_kill_between_the_batch_and_its_record_leaves_a_state_that_is_whole(tmp_path: Path) -> None:
    folder = await killed(tmp_path)
    Acknowledged(folder / RECORD, NEWEST - 10).close()
    storage = SqliteStorage(folder)
    assert storage.load().revision == NEWEST
    assert read_acknowledged(folder / RECORD) == NEWEST
    await storage.close()


async def test_a_state_without_a_record_is_one_of_an_earlier_version_and_gets_one(tmp_path: Path) -> None:
    folder = await killed(tmp_path)
    (folder / RECORD).unlink()
    storage = SqliteStorage(folder)
    assert read_acknowledged(folder / RECORD) == NEWEST
    await storage.close()


@pytest.mark.parametrize("line", [b"", b"00000000000000000007 ffffffff\n", b"7\n", b"\x00" * 30])
async def test_a_record_that_cannot_be_read_is_refused(tmp_path: Path, line: bytes) -> None:
    folder = await killed(tmp_path)
    (folder / RECORD).write_bytes(line)
    with pytest.raises(UserError, match="record of the highest acknowledged revision is damaged"):
        SqliteStorage(folder)


async def test_a_state_that_was_closed_is_whole_without_a_log(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path)
    await storage.commit([change(pod("a"), 2)])
    await storage.close()
    assert not (tmp_path / LOG).exists()
    again = SqliteStorage(tmp_path)
    assert again.load().revision == 2
    await again.close()


def test_the_record_is_synced_once_a_second_and_at_the_end(tmp_path: Path) -> None:
    now = [0.0]
    record = Acknowledged(tmp_path / RECORD, 1, lambda: now[0])
    for revision in range(2, 12):
        now[0] += 0.25
        record.advance(revision)
        record.sync_when_due()
        assert read_acknowledged(tmp_path / RECORD) == revision
        assert record._synced_s == now[0] - now[0] % 1.0
    record.close()


_OPEN_WITHOUT_ROOM = """
import resource, sys
from pathlib import Path
from shoal.embedded.apiserver.storage.sqlite import SqliteStorage
from shoal.units.errors import UserError
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    SqliteStorage(Path(sys.argv[1]))
except UserError as error:
    print(error)
"""


async def test_a_disk_that_takes_nothing_more_is_named_as_such(tmp_path: Path) -> None:
    folder = await killed(tmp_path)
    said = opened_without_room(folder)
    assert "the state cannot be written: File too large" in said
    assert "make room there" in said
    storage = SqliteStorage(folder)
    assert storage.load().revision == NEWEST
    await storage.close()


def opened_without_room(folder: Path) -> str:
    source = str(Path(__file__).parents[4] / "src")
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r})\n{_OPEN_WITHOUT_ROOM}", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


async def killed(tmp_path: Path, folded_through: int = 0) -> Path:
    """The folder as a killed server leaves it: 300 changes in the log, the last with revision NEWEST."""
    storage = SqliteStorage(tmp_path / "alive")
    for start in range(2, NEWEST + 1, 20):
        await storage.commit([change(pod(f"p{at}"), at, b"x" * 400) for at in range(start, start + 20)])
        if folded_through and start == 262:
            await storage.compact(folded_through)
            storage._file._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    shutil.copytree(tmp_path / "alive", tmp_path / "killed")
    await storage.close()
    return tmp_path / "killed"


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
