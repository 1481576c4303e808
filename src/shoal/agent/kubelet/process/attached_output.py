"""Follows the output of a process from now on, by its log file."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from pathlib import Path
from typing import BinaryIO

_EVERY_S = 0.1
_STREAMS = {b"stdout": 1, b"stderr": 2}


class AttachedOutput:
    """Implements Command. There is no input: a process has none."""

    def __init__(self, log: Path, end: Path) -> None:
        """`end`: the file that exists once the process has ended and its log is complete."""
        self._log, self._end = log, end
        self._file: BinaryIO | None = None
        self._rest = b""
        self._found: deque[tuple[int, bytes]] = deque()
        if log.exists():
            self._file = log.open("rb")
            self._file.seek(0, os.SEEK_END)

    async def read(self) -> tuple[int, bytes] | None:
        while not self._found:
            # The end is looked for before the last lines are.
            has_ended = self._end.exists()
            if self._more():
                continue
            if has_ended:
                return None
            await asyncio.sleep(_EVERY_S)
        return self._found.popleft()

    async def write(self, data: bytes) -> None:
        """The process has no input."""

    def end_input(self) -> None:
        """The process has no input."""

    def resize(self, columns: int, rows: int) -> None:
        """There is no terminal."""

    async def code(self) -> int:
        return 0

    def kill(self) -> None:
        """The process goes on."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _more(self) -> bool:
        """Whether there was something new to read."""
        if self._file is None:
            if not self._log.exists():
                return False
            self._file = self._log.open("rb")
        data = self._file.read()
        if data:
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._found.extend(found for line in lines if (found := _printed(line)) is not None)
            return True
        if self._is_replaced(self._file):
            self._file.close()
            self._file = self._log.open("rb")
            return True
        return False

    def _is_replaced(self, file: BinaryIO) -> bool:
        try:
            return self._log.stat().st_ino != os.fstat(file.fileno()).st_ino
        except FileNotFoundError:
            return False


def _printed(line: bytes) -> tuple[int, bytes] | None:
    words = line.split(b" ", 3)
    if len(words) < 4 or words[1] not in _STREAMS:
        return None
    return _STREAMS[words[1]], words[3] + (b"" if words[2] == b"P" else b"\n")
