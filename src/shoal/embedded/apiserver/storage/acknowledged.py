"""Stores the highest revision that was acknowledged to writers, in a small file beside the database.

SQLite ends its write-ahead log at the first frame that does not check out, and says nothing: a log that is missing,
cut or damaged reads as a shorter one. This record says how long it has to be. It is written after a batch is on the
disk and before its writers are answered, so it is never ahead of the database, and a process that is killed between the
two leaves a state that is whole.

The record is one short line that is overwritten in place: no batch waits for a sync of it. It is synced at most once a
second, by the storage's thread, between two batches. Killing the process loses nothing of it; after a power failure it
may be as old as the last sync, which never refuses a whole state.

Rejected: a record in the database itself, which is lost together with the log; a bound written ahead of the batches,
which says how long the log may be, and not how long it has to be.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from shoal.embedded.apiserver.private_files import write_private
from shoal.units.errors import UserError, Where

FILE = "state.acknowledged"
_DIGITS = 20
_SYNC_EVERY_S = 1.0


class DamagedRecordError(UserError):
    """The record does not say up to which revision the state has to reach."""


def read_acknowledged(path: Path) -> int | None:
    """None without a record, as in folders of earlier versions. Raises DamagedRecordError."""
    try:
        line = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"the record cannot be read: {error.strerror}", where=Where(str(path))) from None
    digits = line[:_DIGITS]
    if not digits.isdigit() or line != _line(int(digits)):
        raise DamagedRecordError("the record of the highest acknowledged revision is damaged", where=Where(str(path)))
    return int(digits)


class Acknowledged:
    """The record of a state that is open. Called by one thread at a time."""

    def __init__(self, path: Path, revision: int, seconds: Callable[[], float] = monotonic) -> None:
        write_private(path, _line(revision))
        _sync_folder(path.parent)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self._seconds = seconds
        self._synced_s = seconds()
        self._is_synced = True

    def advance(self, revision: int) -> None:
        """Never raises: the batch is on the disk, and a record that stays behind is still true."""
        try:
            os.pwrite(self._descriptor, _line(revision), 0)
        except OSError:
            return
        self._is_synced = False

    def sync_when_due(self) -> None:
        if not self._is_synced and self._seconds() - self._synced_s >= _SYNC_EVERY_S:
            self._sync()

    def close(self) -> None:
        if not self._is_synced:
            self._sync()
        os.close(self._descriptor)

    def _sync(self) -> None:
        self._synced_s = self._seconds()
        try:
            os.fdatasync(self._descriptor)
        except OSError:
            return
        self._is_synced = True


def _line(revision: int) -> bytes:
    digits = f"{revision:0{_DIGITS}d}".encode()
    return b"%b %08x\n" % (digits, zlib.crc32(digits))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
