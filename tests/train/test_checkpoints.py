"""Checkpoints: whole or not there, whatever moment a process dies at."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.train import Checkpoints


class KilledError(Exception):
    """The process ends here."""


def writing(text: str, *, files: int = 2) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for index in range(files):
            (folder / f"part-{index}").write_text(text)

    return write


def written(folder: Path) -> str:
    return (folder / "part-0").read_text()


def test_the_newest_whole_checkpoint_is_found(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for step in (5, 20, 10):
        checkpoints.save(step, writing(f"at {step}"))
    newest = checkpoints.newest()
    assert newest is not None
    assert (newest.step, written(newest.folder)) == (20, "at 20")


def test_only_the_last_ones_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    for step in range(1, 6):
        checkpoints.save(step, writing("x"))
    assert [one.step for one in checkpoints.all()] == [5, 4]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["step-000000000004", "step-000000000005"]


def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, writing("good"))

    def fail(folder: Path) -> None:
        (folder / "part-0").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        checkpoints.save(2, fail)
    newest = checkpoints.newest()
    assert newest is not None
    assert newest.step == 1
    checkpoints.save(2, writing("good"))
    assert [one.step for one in checkpoints.all()] == [2, 1]


@pytest.mark.parametrize("harm", ["shorter", "missing", "no list", "a list of nonsense"])
def test_a_checkpoint_that_was_harmed_is_passed_over(tmp_path: Path, harm: str) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, writing("good"))
    broken = checkpoints.save(2, writing("good")).folder
    match harm:
        case "shorter":
            (broken / "part-1").write_text("g")
        case "missing":
            (broken / "part-1").unlink()
        case "no list":
            (broken / "whole.json").unlink()
        case _:
            (broken / "whole.json").write_text('["?"]')
    assert [one.step for one in checkpoints.all()] == [1]


def test_saving_a_step_again_replaces_it(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(3, writing("first", files=3))
    newest = checkpoints.save(3, writing("second", files=1))
    assert written(newest.folder) == "second"
    assert not (newest.folder / "part-2").exists()


def test_ranks_save_together_and_the_first_one_finishes(tmp_path: Path) -> None:
    first, second = (Checkpoints(tmp_path, rank=rank, ranks=2) for rank in (0, 1))

    def own(rank: int) -> Callable[[Path], object]:
        return lambda folder: (folder / f"shard-{rank}").write_text(str(rank))

    def wait(is_so: Callable[[], bool]) -> bool:
        """While the first rank waits, the second one saves."""
        with pytest.raises(TimeoutError, match="rank 0"):
            second.save(7, own(1), wait=lambda _: False)
        return is_so()

    saved = first.save(7, own(0), wait=wait)
    assert sorted(entry.name for entry in saved.folder.iterdir()) == ["shard-0", "shard-1", "whole.json"]


def test_a_rank_that_does_not_come_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    first = Checkpoints(tmp_path, rank=0, ranks=2)
    with pytest.raises(TimeoutError, match="only 1 of 2 ranks"):
        first.save(7, writing("x"), wait=lambda is_so: is_so())
    assert first.newest() is None


class Deadly:
    """Lets so many calls that change the disk pass, then kills."""

    def __init__(self, lives: int) -> None:
        self.lives = lives

    def __call__(self) -> None:
        if self.lives == 0:
            raise KilledError
        self.lives -= 1


def dying(deadly: Deadly, door: Callable[..., None]) -> Callable[..., None]:
    def through(*words: object) -> None:
        deadly()
        door(*words)

    return through


@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lives=st.integers(0, 25), saves=st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_killed_at_any_moment_what_was_saved_last_or_what_is_being_saved_is_there_whole(
    tmp_path_factory: pytest.TempPathFactory, lives: int, saves: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    deadly = Deadly(lives)
    # The disk's own doors die, not code of ours: os.rename and os.fsync are what a save consists of.
    saved: list[tuple[int, str]] = []
    trying: tuple[int, str] | None = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "rename", dying(deadly, os.rename))
        patch.setattr(os, "fsync", dying(deadly, os.fsync))
        try:
            for number, step in enumerate(saves):
                trying = step, f"save {number}"
                Checkpoints(folder, keep=2).save(step, writing(trying[1]))
                saved.append(trying)
        except KilledError:
            pass
    # As the next run begins.
    Checkpoints(folder, keep=2).clear()
    there = {one.step: written(one.folder) for one in Checkpoints(folder).all()}
    allowed = [*saved, *([trying] if trying is not None else [])]
    assert all((step, text) in allowed for step, text in there.items())
    if saved:
        assert saved[-1][0] in there or len([step for step, _ in saved if step > saved[-1][0]]) >= 2


def test_who_dies_while_a_step_is_saved_again_keeps_what_was_saved_before(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=1)
    checkpoints.save(5, writing("first"))
    (tmp_path / "step-000000000005").rename(tmp_path / ".old-step-000000000005")
    (tmp_path / ".step-000000000005").mkdir()
    assert checkpoints.newest() is None
    checkpoints.clear()
    newest = checkpoints.newest()
    assert newest is not None
    assert (newest.step, written(newest.folder)) == (5, "first")
    assert len(list(tmp_path.iterdir())) == 1
