"""Measures what the files of a folder take on their disk, as `du` does: blocks, and each file with several names once.

Links are not followed, and other file systems that are mounted in the folder are left out. Programs may change the
folder meanwhile; what cannot be read counts as nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_BLOCK_BYTES = 512


def disk_use(folder: Path) -> int:
    try:
        top = folder.lstat()
    except OSError:
        return 0
    total, linked, folders = top.st_blocks, set[int](), [os.fspath(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    total += _blocks(entry, top.st_dev, linked, folders)
        except OSError:
            continue
    return total * _BLOCK_BYTES


def _blocks(entry: os.DirEntry[str], device: int, linked: set[int], folders: list[str]) -> int:
    try:
        found = entry.stat(follow_symlinks=False)
        if found.st_dev != device or found.st_ino in linked:
            return 0
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.path)
        elif found.st_nlink > 1:
            linked.add(found.st_ino)
    except OSError:
        return 0
    return found.st_blocks


def files_use(files: Iterable[Path]) -> int:
    total = 0
    for file in files:
        try:
            total += file.lstat().st_blocks
        except OSError:
            continue
    return total * _BLOCK_BYTES
