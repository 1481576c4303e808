"""Runs clients of the embedded server as child processes of the server, which end with it.

Each child holds the other end of a pipe. When the process of the server ends, for whatever cause, the pipe is closed
and the child ends by itself: two fleets for one set of nodes would run every pod twice.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence

_log = logging.getLogger("shoal")
_SOONEST_S, _LATEST_S = 1.0, 30.0
_PATIENCE_S = 10.0


class ChildProcess:
    """One `shoal cluster ...`, started again whenever it ends. It prints `ready` to its standard output."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._process: asyncio.subprocess.Process | None = None
        self.is_ready = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled; then the child is terminated and awaited."""
        delay_s = _SOONEST_S
        try:
            while True:
                process = self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "shoal", *self._arguments, "--notify-fd", "1"),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    # Ctrl-C goes to the server only, which ends its children in order.
                    start_new_session=True,
                )
                if process.stdout is not None and await process.stdout.readline():
                    self.is_ready.set()
                    delay_s = _SOONEST_S
                code = await process.wait()
                _log.error("shoal %s ended with %d; again in %.0f s", " ".join(self._arguments[:2]), code, delay_s)
                await asyncio.sleep(delay_s)
                delay_s = min(delay_s * 2, _LATEST_S)
        finally:
            await self._end()

    async def _end(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _PATIENCE_S)
        except TimeoutError:
            process.kill()
            await process.wait()
