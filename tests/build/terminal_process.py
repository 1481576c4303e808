"""A command on a terminal of its own, as a job of a shell: it can be suspended, continued, resized and typed at."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

_PATIENCE_S = 60.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SHELL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
told, asked = int(sys.argv[1]), int(sys.argv[2])
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[3], sys.argv[3:])
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        os.write(told, b"ended %d;" % os.waitstatus_to_exitcode(status))
        break
    os.tcsetpgrp(0, os.getpid())
    os.write(told, b"stopped;")
    os.read(asked, 1)
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
"""
"""What a shell does with a job, without its prompt."""


class TerminalProcess:
    def __init__(self, command: Sequence[str], size: tuple[int, int], **environment: str) -> None:
        self._terminal, inner = os.openpty()
        self._told, told = os.pipe()
        asked, self._asked = os.pipe()
        self.resize(*size)
        self.first_mode = self.mode()
        shell = [sys.executable, "-c", _SHELL, str(told), str(asked), *command]
        self._shell = subprocess.Popen(
            shell,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            pass_fds=(told, asked),
            env={**os.environ, "TERM": "xterm-256color", **environment},
        )
        for fd in (inner, told, asked):
            os.close(fd)
        self._written = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._shell.poll() is None:
            # The job may have ended on its own by now.
            with suppress(ProcessLookupError):
                self.send(signal.SIGKILL)
            self._shell.kill()
        self._shell.wait()
        for fd in (self._terminal, self._told, self._asked):
            os.close(fd)

    def mode(self) -> tuple[bool, bool]:
        """Whether the terminal edits lines, and whether it echoes."""
        flags = termios.tcgetattr(self._terminal)[3]
        return bool(flags & termios.ICANON), bool(flags & termios.ECHO)

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def send(self, name: signal.Signals) -> None:
        """To the job in the foreground."""
        job = os.tcgetpgrp(self._terminal)
        # Zero, where the session has ended meanwhile, would be the group of the tests themselves.
        if job <= 0:
            raise ProcessLookupError
        os.killpg(job, name)

    def continue_(self) -> None:
        os.write(self._asked, b"c")

    def shows(self, text: str) -> str:
        """Waits until the text has been written since the last call, and returns all of that."""
        while text not in self._plain():
            self._written += self._read(self._terminal)
        found, self._written = self._plain(), ""
        return found

    def writes(self, raw: str) -> None:
        """Waits for these bytes, escape sequences included."""
        while raw not in self._written:
            self._written += self._read(self._terminal)

    def told(self) -> str:
        """What has become of the job: `stopped` or `ended CODE`."""
        found = ""
        while not found.endswith(";"):
            ready, _, _ = select.select([self._told, self._terminal], [], [], _PATIENCE_S)
            assert ready, "nothing became of the job"
            if self._told in ready:
                found += os.read(self._told, 1).decode()
            else:
                # A job whose output nobody reads would wait for the terminal.
                self._written += self._read(self._terminal)
        return found.removesuffix(";")

    def _plain(self) -> str:
        return _ESCAPES.sub("", self._written)

    def _read(self, fd: int) -> str:
        ready, _, _ = select.select([fd], [], [], _PATIENCE_S)
        assert ready, f"nothing more was written after {self._written[-300:]!r}"
        try:
            return os.read(fd, 65_536).decode(errors="replace")
        except OSError:
            raise AssertionError(f"the terminal was left after {self._written[-300:]!r}") from None
