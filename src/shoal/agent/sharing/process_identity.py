"""Identifies a process beyond its number, which the kernel gives to another process after its end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec

_STATE, _STARTED = 0, 19
"""Positions after the name of the program."""


class ProcessIdentity(msgspec.Struct, frozen=True):
    pid: int
    started: int
    """In ticks since the start of the machine."""


def identity_of(pid: int) -> ProcessIdentity | None:
    """None: there is no such process, or it has ended and its parent has not noticed yet."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[_STATE] in "ZX" else ProcessIdentity(pid, int(fields[_STARTED]))


def has_variable(process: ProcessIdentity, name: str, value: str) -> bool:
    """Whether it was started with this environment variable; False if that cannot be read."""
    try:
        variables = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"{name}={value}".encode() in variables and is_running(process)


def is_running(process: ProcessIdentity) -> bool:
    return identity_of(process.pid) == process


def kill(process: ProcessIdentity) -> None:
    """End it at once, if it is still the same process."""
    if is_running(process):
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
