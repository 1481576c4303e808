"""Gives the terminal back while the process is suspended (Ctrl-Z), and takes it again when it continues.

A process that stops while its picture covers the terminal would leave the shell on the alternate screen, without echo.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.live import Live

    from shoal.cli.terminal_input import TerminalInput


class Suspension:
    def __init__(
        self,
        keys: TerminalInput,
        live: Live,
        redraw: Callable[[], None],
        run: Callable[[Callable[[], None]], Awaitable[None]],
    ) -> None:
        """`run`: where calls that write to the terminal are made."""
        self._keys, self._live, self._redraw, self._run = keys, live, redraw, run
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        # Only the main thread of a process may handle signals; elsewhere Ctrl-Z does what it does without this.
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
            loop.add_signal_handler(signal.SIGTSTP, self._begin)
            loop.add_signal_handler(signal.SIGCONT, self._continued)
        try:
            yield
        finally:
            for name in (signal.SIGTSTP, signal.SIGCONT):
                with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
                    loop.remove_signal_handler(name)

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._suspend())

    async def _suspend(self) -> None:
        await self._run(self._live.stop)
        self._keys.pause()
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGTSTP)
        # The process stops here, as if it had no handler, so that the shell sees why; it goes on from here after `fg`.
        os.kill(os.getpid(), signal.SIGTSTP)
        loop.add_signal_handler(signal.SIGTSTP, self._begin)
        self._keys.resume()
        await self._run(self._live.start)
        self._redraw()

    def _continued(self) -> None:
        """After a stop that could not be handled (SIGSTOP) the shell may have changed the mode."""
        if self._task is None or self._task.done():
            self._keys.resume()
            self._redraw()
