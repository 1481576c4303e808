"""Retries the server's own background work until it succeeds, for example after a full disk.

One task of a name runs at a time. A request meanwhile runs it once more, since the running one may have read before the
change that caused the request. Failures are retried with increasing delays. A server that is closing answers 503,
which is an end and no failure.

Rejected: waking an errand that waits out a failure when it is asked for again. One that writes and then fails asks for
itself with its own write, and would run without a pause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from shoal.embedded.apiserver import status

Do = Callable[[], Awaitable[None]]
_CLOSING = 503
_log = logging.getLogger("shoal.cluster")


class BackgroundRetries:
    """Run from `start`; none runs after `close`."""

    def __init__(self, first_s: float = 0.1, longest_s: float = 30.0) -> None:
        """How long the first failure is waited out, and how long any is at most."""
        self._first_s = first_s
        self._longest_s = longest_s
        self._running: dict[str, asyncio.Task[None]] = {}
        self._asked: dict[str, Do] = {}
        self._is_closed = False

    def start(self, name: str, do: Do) -> None:
        """`name` identifies the work in the log when it fails."""
        if self._is_closed:
            return
        self._asked[name] = do
        if name not in self._running:
            self._running[name] = asyncio.get_running_loop().create_task(self._run(name))

    async def close(self) -> None:
        self._is_closed = True
        running = list(self._running.values())
        for task in running:
            task.cancel()
        # What one of them ended with was told in the log.
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, name: str) -> None:
        delay_s = self._first_s
        try:
            while name in self._asked:
                do = self._asked.pop(name)
                if await _succeeds(name, do):
                    delay_s = self._first_s
                    continue
                self._asked.setdefault(name, do)
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, self._longest_s)
        finally:
            del self._running[name]


async def _succeeds(name: str, do: Do) -> bool:
    try:
        await do()
    except status.ApiError as error:
        if error.code != _CLOSING:
            _log.warning("%s has to be tried again: %s", name, error)
            return False
    except Exception:  # noqa: BLE001 - the next try may succeed, and no other code would report it
        _log.exception("%s has to be tried again", name)
        return False
    return True
