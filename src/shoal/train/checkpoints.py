"""Checkpoints in a folder: each is there whole or not at all, and the oldest go.

A checkpoint is a folder `step-000000001200` with whatever the script wrote, and a list of its files with their sizes,
written last. It is made under another name and renamed once everything is on the disk, so that a process killed at any
moment leaves the older ones as they were. On file systems where a rename may be seen before the data (some network
ones) the sizes tell.

With several ranks each writes a part of its own; the first rank waits for the others' and renames. No rank removes
files that another may be reading: the newest complete checkpoint always stays.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NAME = re.compile(r"step-(\d{12})")
_UNFINISHED = (".step-", ".old-step-")
"""How folders are called that have no name yet, the newer first."""
_LIST = "whole.json"
_PART = re.compile(r"rank-(\d{5})\.json")
_MOST_STEP = 10**12 - 1
Write = Callable[[Path], object]
"""Writes what is to be kept into a folder."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    step: int
    folder: Path


class Checkpoints:
    """One folder of them. `ranks` processes save together, each with `rank` counted from 0."""

    def __init__(self, folder: str | os.PathLike[str], *, keep: int = 3, rank: int = 0, ranks: int = 1) -> None:
        if keep < 1:
            raise ValueError(f"keep must be at least 1, got {keep}")
        if not 0 <= rank < ranks:
            raise ValueError(f"rank must be from 0 to {ranks - 1}, got {rank}")
        self.folder = Path(folder)
        self._keep = keep
        self._rank = rank
        self._ranks = ranks
        self.folder.mkdir(parents=True, exist_ok=True)

    def all(self) -> list[Checkpoint]:
        """Those that are whole, the newest first."""
        return [one for one in self.named() if self.is_whole(one)]

    def named(self) -> list[Checkpoint]:
        """Those that were whole when they got their name, the newest first: every rank sees the same ones."""
        found = []
        for entry in self.folder.iterdir():
            match = _NAME.fullmatch(entry.name)
            if match is not None:
                found.append(Checkpoint(int(match[1]), entry))
        return sorted(found, key=lambda one: -one.step)

    def is_whole(self, checkpoint: Checkpoint) -> bool:
        return _is_whole(checkpoint.folder)

    def newest(self) -> Checkpoint | None:
        return next(iter(self.all()), None)

    def save(self, step: int, write: Write, *, wait: Callable[[Callable[[], bool]], bool] | None = None) -> Checkpoint:
        """Have `write` fill a folder, and keep it as the checkpoint of this step.

        `wait` returns whether what it is given came true in time; with one rank there is none to wait for. Raises
        OSError where the disk refuses; what was there before is there still.
        """
        if not 0 <= step <= _MOST_STEP:
            raise ValueError(f"step must be from 0 to {_MOST_STEP}, got {step}")
        made = self.folder / f".step-{step:012d}"
        whole = self.folder / f"step-{step:012d}"
        self._write_part(made, write)
        if self._rank == 0:
            if self._ranks > 1 and (wait is None or not wait(lambda: self._parts(made) == self._ranks)):
                raise TimeoutError(f"only {self._parts(made)} of {self._ranks} ranks have saved step {step}")
            self._finish(made, whole)
            self._thin_out()
        elif wait is not None and not wait(lambda: _is_whole(whole)):
            raise TimeoutError(f"rank 0 has not finished step {step}")
        return Checkpoint(step, whole)

    def clear(self) -> None:
        """Forget what tries that failed have left. For the first rank, before any rank saves: a mark left by an earlier
        run would be taken for one of this. A whole checkpoint that only lacks its name gets it: who died while one
        replaced another left both without."""
        for start in _UNFINISHED:
            for entry in sorted(self.folder.glob(f"{start}*")):
                named = self.folder / f"step-{entry.name.removeprefix(start)}"
                if _NAME.fullmatch(named.name) and not named.exists() and _is_whole(entry):
                    entry.rename(named)
                else:
                    _remove(entry)

    def _write_part(self, made: Path, write: Write) -> None:
        if self._ranks == 1:
            _remove(made)
        mark = made / f"rank-{self._rank:05d}.json"
        with suppress(FileNotFoundError):
            # Left by an earlier try at this step.
            mark.unlink()
        made.mkdir(exist_ok=True)
        write(made)
        if self._ranks > 1:
            _put(mark, b"{}")

    def _parts(self, made: Path) -> int:
        with suppress(OSError):
            return sum(_PART.fullmatch(entry.name) is not None for entry in made.iterdir())
        return 0

    def _finish(self, made: Path, whole: Path) -> None:
        for mark in [entry for entry in made.iterdir() if _PART.fullmatch(entry.name)]:
            mark.unlink()
        files = {str(file.relative_to(made)): file for file in _files(made)}
        for file in files.values():
            _flush(file)
        sizes = {name: file.stat().st_size for name, file in sorted(files.items())}
        _put(made / _LIST, json.dumps({"files": sizes}).encode())
        _flush(made)
        if whole.exists():
            # The same step was saved before, by a run that went back: what is newer replaces it.
            old = self.folder / f".old-{whole.name}"
            _remove(old)
            whole.rename(old)
            made.rename(whole)
            _remove(old)
        else:
            made.rename(whole)
        _flush(self.folder)

    def _thin_out(self) -> None:
        """The oldest beyond the number that is kept, and what tries that failed have left."""
        whole = self.all()
        for checkpoint in whole[self._keep :]:
            _remove(checkpoint.folder)
        newest = whole[0].step if whole else -1
        for entry in self.folder.iterdir():
            match = _NAME.fullmatch(entry.name.removeprefix(".old-").removeprefix("."))
            if entry.name.startswith(".") and match is not None and int(match[1]) <= newest:
                _remove(entry)


def _is_whole(folder: Path) -> bool:
    """Whether every file of its list is there in its size."""
    try:
        sizes = json.loads((folder / _LIST).read_bytes())["files"]
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _files(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.rglob("*")):
        if entry.is_file() and entry.name != _LIST:
            yield entry


def _put(file: Path, data: bytes) -> None:
    with file.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _flush(path: Path) -> None:
    """On the disk when this returns. Some network file systems cannot say so of folders."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
