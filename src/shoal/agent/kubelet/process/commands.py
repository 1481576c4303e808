"""Runs commands beside the process of a container: in its folder, with its environment and its limits."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import resource
import signal
import struct
import sys
import termios
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from shoal.agent.kubelet.process import supervisor
from shoal.agent.kubelet.runtime import Launch

_CHUNK = 32 * 1024
_JOIN = 'for group in $SHOAL_GROUPS; do echo 0 > "$group/cgroup.procs" || exit 126; done; unset SHOAL_GROUPS; exec "$@"'


async def run_command(
    launch: Launch, groups: Sequence[str], command: Sequence[str], processes: int, *, tty: bool
) -> ProcessCommand:
    """`processes`: the limit where no cgroup has one; 0: without. Raises OSError if it cannot be started."""
    words = [*command]
    # A command that forks without limit must not take all processes of the user. The call after the fork is one of C
    # that needs no lock, because other threads of this process may hold any.
    limit = partial(resource.setrlimit, resource.RLIMIT_NPROC, _limits(processes)) if processes else None
    if tty:
        words = [sys.executable, "-I", "-S", supervisor.__file__, "tty", *command]
    environment: Mapping[str, str] = launch.environment
    if groups:
        environment = {**launch.environment, "SHOAL_GROUPS": " ".join(groups)}
        words = ["/bin/sh", "-c", _JOIN, "sh", *words]
    if not tty:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=launch.folder,
            env=environment,
            start_new_session=True,
            preexec_fn=limit,
        )
        return ProcessCommand(process, None)
    own, theirs = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=theirs,
            stdout=DEVNULL,
            stderr=DEVNULL,
            cwd=launch.folder,
            env=environment,
            preexec_fn=limit,
        )
    finally:
        os.close(theirs)
    return ProcessCommand(process, own)


def _limits(processes: int) -> tuple[int, int]:
    """Soft and hard, not above the present hard one."""
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    most = processes if hard == resource.RLIM_INFINITY else min(processes, hard)
    return most, most


class ProcessCommand:
    def __init__(self, process: Process, terminal: int | None) -> None:
        self._process = process
        self._terminal = terminal
        self._output: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue(16)
        self._readers: list[asyncio.Task[None]] = []
        if terminal is not None:
            self._readers.append(asyncio.ensure_future(self._read_terminal(terminal)))
        else:
            for number, pipe in ((1, process.stdout), (2, process.stderr)):
                if pipe is not None:
                    self._readers.append(asyncio.ensure_future(self._read_pipe(number, pipe)))
        self._end = asyncio.ensure_future(self._ended())

    async def read(self) -> tuple[int, bytes] | None:
        return await self._output.get()

    async def write(self, data: bytes) -> None:
        with suppress(OSError):
            if self._terminal is not None:
                await asyncio.to_thread(os.write, self._terminal, data)
            elif self._process.stdin is not None:
                self._process.stdin.write(data)
                await self._process.stdin.drain()

    def end_input(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    def resize(self, columns: int, rows: int) -> None:
        if self._terminal is not None:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def code(self) -> int:
        code = await self._process.wait()
        return code if code >= 0 else 128 - code

    def kill(self) -> None:
        for task in (*self._readers, self._end):
            task.cancel()
        if self._process.returncode is None:
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None

    async def _read_pipe(self, number: int, pipe: asyncio.StreamReader) -> None:
        while data := await pipe.read(_CHUNK):
            await self._output.put((number, data))

    async def _read_terminal(self, terminal: int) -> None:
        with suppress(OSError):
            while data := await asyncio.to_thread(os.read, terminal, _CHUNK):
                await self._output.put((1, data))

    async def _ended(self) -> None:
        await asyncio.gather(*self._readers)
        await self._output.put(None)
