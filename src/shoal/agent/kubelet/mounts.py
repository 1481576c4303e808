"""Mounts file systems and folders for the volumes of pods, and unmounts them."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")
_CAPABILITIES, _MOUNTING = re.compile(r"^CapEff:\t([0-9a-f]{1,16})$", re.MULTILINE), 1 << 21
_NO_SUID_NO_DEVICES, _BIND, _DETACH = 2 | 4, 4096, 2


def no_mounts(status: Path = Path("/proc/self/status")) -> str:
    """Why this process cannot mount file systems; empty if it can. `status`: the kernel's description of it."""
    found = None
    with suppress(OSError):
        found = _CAPABILITIES.search(status.read_text())
    if found is not None and int(found[1], 16) & _MOUNTING:
        return ""
    if os.geteuid() == 0:
        return "needs the capability CAP_SYS_ADMIN, which Shoal does not have"
    return "needs root: the user who started Shoal may not mount file systems"


def mounted_below(folder: Path, mounts: Path = _MOUNTS) -> Sequence[Path]:
    """In the order in which they were mounted."""
    below, found = f"{folder}/", []
    with suppress(OSError):
        for line in mounts.read_text().splitlines():
            path = _ESCAPED.sub(lambda met: chr(int(met[1], 8)), line.split()[4])
            if path.startswith(below):
                found.append(Path(path))
    return found


def unmount_below(folder: Path) -> None:
    for path in reversed(mounted_below(folder)):
        unmount(path)


def unmount(path: Path) -> None:
    ctypes.CDLL(None).umount2(os.fsencode(path), _DETACH)


def mount_memory(path: Path, options: str) -> None:
    """Raises OSError."""
    _mount(b"tmpfs", path, b"tmpfs", _NO_SUID_NO_DEVICES, options)


def bind(source: Path, path: Path) -> None:
    """Show a file or folder at another path. Raises OSError."""
    _mount(os.fsencode(source), path, None, _BIND, "")


def _mount(source: bytes, path: Path, type_: bytes | None, flags: int, options: str) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(source, os.fsencode(path), type_, ctypes.c_ulong(flags), options.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))
