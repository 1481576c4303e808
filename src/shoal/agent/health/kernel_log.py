"""Reads the Xid errors of this machine's kernel log.

The driver reports Xids to programs only while they run, so the log is the only source of earlier ones. Guarantees: the
amount that is read is bounded; lines that are not of the driver are left out.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

KERNEL_LOG = Path("/dev/kmsg")
_MOST_BYTES = 4 * 2**20
_RECORD_BYTES = 8192
_MOST_XIDS = 1000
_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-9])?\): ([0-9]{1,4})\b")


class LoggedXid(msgspec.Struct, frozen=True):
    pci: str
    """`0000:53:00`: domain, bus and device."""
    xid: int
    line: str


def logged_xids(path: Path = KERNEL_LOG) -> tuple[LoggedXid, ...]:
    """Of a log file or of the kernel's device, the oldest first. Raises `OSError` if it cannot be read."""
    return tuple(_found(_lines(path)))[-_MOST_XIDS:]


def of_address(pci: str, xids: Iterable[LoggedXid]) -> tuple[LoggedXid, ...]:
    """Those of the GPU at an address such as `00000000:53:00.0`."""
    wanted = _short(pci)
    return tuple(one for one in xids if _short(one.pci) == wanted)


def _found(lines: Iterable[str]) -> Iterator[LoggedXid]:
    for line in lines:
        match = _XID.search(line)
        if match is not None:
            yield LoggedXid(match[1].lower(), int(match[2]), line[match.start() :].strip()[:200])


def _lines(path: Path) -> Iterator[str]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode):
            start = max(found.st_size - _MOST_BYTES, 0)
            os.lseek(descriptor, start, os.SEEK_SET)
            yield from os.read(descriptor, _MOST_BYTES).decode(errors="replace").splitlines()
            return
        for _ in range(_MOST_BYTES // _RECORD_BYTES * 64):
            try:
                record = os.read(descriptor, _RECORD_BYTES)
            except BlockingIOError:
                return
            except BrokenPipeError:
                # The kernel has overwritten the next record; the following read continues behind it.
                continue
            if not record:
                return
            yield record.decode(errors="replace").partition("\n")[0]
    finally:
        os.close(descriptor)


def _short(pci: str) -> str:
    domain, _, rest = pci.lower().partition(":")
    return f"{domain[-4:]}:{rest.partition('.')[0]}"
