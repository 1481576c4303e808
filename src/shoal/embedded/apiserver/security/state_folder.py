"""Manages the state folder of a control plane: its owner, its format, and the process that uses it.

A folder belongs to Shoal when it was empty or absent at the first start; then it gets a marker with the number of its
form. A running server holds a lock on a file in it, which the system drops however the server ends: a folder left
behind by a crash is simply taken over, and no process id is ever trusted that does not hold the lock.

Rejected: a process id file alone. After a crash it names a process that is gone, or another one.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from shoal.embedded.apiserver.private_files import PRIVATE_FILE, make_private_folder, write_private
from shoal.units.errors import UserError, Where

FORMAT = 1
MARKER, LOCK, RUNNING, LOG, KUBECONFIG = "shoal.json", "lock", "running.json", "shoal.log", "kubeconfig"
_RESET = "choose another with --state, or start over with `shoal cluster reset`"


class Running(msgspec.Struct, frozen=True, rename="camel"):
    """What a server says of itself once it is ready."""

    pid: int
    url: str
    kubeconfig: str
    kube_version: str
    joining_fault: str = ""
    """Why no other machine can join; empty if machines can."""


class _Marker(msgspec.Struct, frozen=True):
    format: int


class FolderLock:
    """The right to be the one server of a folder, while it lasts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def announce(self, running: Running) -> None:
        write_private(self.folder / RUNNING, msgspec.json.encode(running))


def check_form(folder: Path) -> None:
    """Complain about a folder that is not, or not any more, one of ours; absent and empty ones are fine."""
    where = Where(str(folder))
    try:
        names = {entry.name for entry in folder.iterdir()}
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise UserError("this is not a folder", where=where) from None
    except PermissionError:
        raise UserError("this folder may not be read", where=where) from None
    if not names - {LOCK, LOG}:
        return
    if MARKER not in names:
        raise UserError("this folder holds other files", where=where, fix="choose an empty one with --state")
    try:
        marker = msgspec.json.decode((folder / MARKER).read_bytes(), type=_Marker)
    except msgspec.DecodeError:
        raise UserError(f"this folder is broken: {MARKER} cannot be read", where=where, fix=_RESET) from None
    if marker.format != FORMAT:
        what = f"this folder is of another version of Shoal (form {marker.format}; this version has form {FORMAT})"
        raise UserError(what, where=where, fix=_RESET)


@contextmanager
def claim(folder: Path) -> Iterator[FolderLock]:
    """Be the one server of this folder; a second one is refused."""
    check_form(folder)
    try:
        make_private_folder(folder)
        descriptor = _locked(folder)
    except OSError as error:
        what = f"this folder cannot be used: {error.strerror or error}"
        raise UserError(what, where=Where(str(folder)), fix="choose another with --state") from None
    if descriptor is None:
        found = running(folder)
        who = f" (pid {found.pid}, {found.url})" if found else ""
        raise UserError(f"a cluster is running here already{who}", where=Where(str(folder)), fix="see `shoal down`")
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        (folder / RUNNING).unlink(missing_ok=True)
        if not (folder / MARKER).exists():
            write_private(folder / MARKER, msgspec.json.encode(_Marker(FORMAT)))
        yield FolderLock(folder)
    finally:
        (folder / RUNNING).unlink(missing_ok=True)
        os.close(descriptor)


def is_claimed(folder: Path) -> bool:
    if not (folder / LOCK).exists():
        return False
    descriptor = _locked(folder)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def holder(folder: Path) -> int | None:
    """The process that is the server of this folder now, ready or not."""
    if not is_claimed(folder):
        return None
    with suppress(OSError, ValueError):
        return int((folder / LOCK).read_text())
    return None


def running(folder: Path) -> Running | None:
    """What the server of this folder says of itself, if one is ready."""
    if not is_claimed(folder):
        return None
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode((folder / RUNNING).read_bytes(), type=Running)
    return None


def _locked(folder: Path) -> int | None:
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
