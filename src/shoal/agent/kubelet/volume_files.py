"""Writes the files of a volume so that programs see all of them change at once, as Kubernetes does.

The files are in a folder of their own, and `..data` is a link to it. What programs open are links through `..data`, so
that one rename replaces all files together. A file that was opened, or mounted by `subPath`, stays as it was.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from typing import NamedTuple

_DATA, _NEW, _OWN = "..data", "..data_new", ".."
_FOLDER_MODE, _GROUP_FOLDER_MODE = 0o755, 0o2775


class VolumeFile(NamedTuple):
    path: str
    content: bytes
    mode: int


class _Written(NamedTuple):
    content: bytes
    mode: int
    group: int | None
    """None: that of this user, which is not compared."""


def replace_files(folder: Path, files: Iterable[VolumeFile], group: int | None = None) -> None:
    """Give a volume exactly these files. Nothing is written if it has them. Raises OSError; the former files remain
    then. `group`: of all files, which may read and write what their owner may."""
    wanted = {PurePosixPath(one.path): _Written(one.content, _mode(one.mode, group), group) for one in files}
    if _present(folder / _DATA, group) != wanted:
        _replace(folder, wanted, group)
    names = {path.parts[0] for path in wanted}
    for name in names:
        _link(folder / name, f"{_DATA}/{name}")
    for entry in folder.iterdir():
        if entry.is_symlink() and entry.name not in names and str(entry.readlink()).startswith(f"{_DATA}/"):
            entry.unlink()


def _mode(mode: int, group: int | None) -> int:
    return mode if group is None else mode | (mode & 0o600) >> 3


def _present(data: Path, group: int | None) -> Mapping[PurePosixPath, _Written] | None:
    """What the volume has; None if it was never written."""
    try:
        found = {}
        for path in data.resolve(strict=True).rglob("*"):
            if not path.is_dir():
                status = path.stat()
                name = PurePosixPath(path.relative_to(data.resolve()))
                owner = None if group is None else status.st_gid
                found[name] = _Written(path.read_bytes(), status.st_mode & 0o7777, owner)
    except OSError:
        return None
    return found


def _replace(folder: Path, wanted: Mapping[PurePosixPath, _Written], group: int | None) -> None:
    made = Path(mkdtemp(prefix=_OWN, dir=folder))
    try:
        for path, file in wanted.items():
            target = made / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(file.mode)
        for each in (folder, made, *made.rglob("*")):
            if group is not None:
                os.chown(each, -1, group)
            if each.is_dir():
                each.chmod(_FOLDER_MODE if group is None else _GROUP_FOLDER_MODE)
        new = folder / _NEW
        new.unlink(missing_ok=True)
        new.symlink_to(made.name)
        new.replace(folder / _DATA)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    for entry in folder.iterdir():
        # Former ones, also of a process that was killed between two steps.
        if entry.name.startswith(_OWN) and entry.name not in (_DATA, made.name):
            shutil.rmtree(entry, ignore_errors=True)


def _link(path: Path, target: str) -> None:
    with suppress(OSError):
        if str(path.readlink()) == target:
            return
    beside = path.with_name(f"{_OWN}{path.name}_new")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    beside.replace(path)
