"""Reads keys from the terminal while a program draws on it, and gives the terminal back as it was.

Keys are read one by one and not echoed (cbreak mode); Ctrl-C and Ctrl-Z still send their signals. The old mode comes
back when the `with` block ends, by an exception too, and while the process is suspended.

The terminal is read in a daemon thread. Rejected: the event loop's own reader. uvloop makes what it reads
non-blocking, and standard output shares that setting, so that a slow terminal would lose frames.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Callable
from threading import Thread
from types import TracebackType
from typing import Self

_CHUNK = 1024


class TerminalInput:
    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._saved: list[object] | None = None
        self._wake: int | None = None

    def __enter__(self) -> Self:
        self._saved = list(termios.tcgetattr(self._fd))
        self.resume()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._wake is not None:
            os.close(self._wake)
            self._wake = None
        self.pause()

    def resume(self) -> None:
        """Keys one by one."""
        tty.setcbreak(self._fd, termios.TCSANOW)

    def pause(self) -> None:
        """The mode that the terminal had before."""
        if self._saved is not None:
            termios.tcsetattr(self._fd, termios.TCSANOW, self._saved)  # type: ignore[arg-type]

    def read_into(self, take: Callable[[bytes], None]) -> None:
        """`take` is called in another thread, until the `with` block ends or the terminal is gone."""
        ended, self._wake = os.pipe()
        Thread(target=_read, args=(self._fd, ended, take), name="terminal input", daemon=True).start()


def terminal_input() -> TerminalInput | None:
    """The terminal on standard input, if this process may read from it: not in the background or in a pipe."""
    fd = sys.stdin.fileno() if sys.stdin is not None and not sys.stdin.closed else -1
    try:
        is_usable = fd >= 0 and os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return None
    return TerminalInput(fd) if is_usable else None


def _read(fd: int, ended: int, take: Callable[[bytes], None]) -> None:
    try:
        while True:
            ready, _, _ = select.select([fd, ended], [], [])
            if ended in ready:
                return
            data = os.read(fd, _CHUNK)
            if not data:
                return
            take(data)
    except OSError:
        return
    finally:
        os.close(ended)
