"""Calls a function that may block for ever, such as one of the driver, without blocking the event loop.

Guarantees: the function runs at most once at a time, in a thread that does not keep the process from ending. Rejected:
the threads of the event loop, which it waits for at its end.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Generic, TypeVar

from shoal.units.errors import TemporaryError

T = TypeVar("T")
PATIENCE_S = 30.0
_RETRY_S = 5.0


class BlockingRead(Generic[T]):
    def __init__(self, read: Callable[[], T], patience_s: float = PATIENCE_S) -> None:
        self._read, self._patience_s = read, patience_s
        self._running: asyncio.Future[T] | None = None

    async def __call__(self) -> T:
        """Raises what the function raises, and `TemporaryError` while it does not return."""
        if self._running is None:
            self._running = asyncio.get_running_loop().create_future()
            threading.Thread(target=self._run, args=(self._running,), daemon=True).start()
        running = self._running
        try:
            async with asyncio.timeout(self._patience_s):
                return await asyncio.shield(running)
        except TimeoutError:
            what = f"NVIDIA's driver has not responded for {self._patience_s:g} s"
            raise TemporaryError(what, _RETRY_S) from None
        finally:
            if running.done():
                self._running = None

    def _run(self, result: asyncio.Future[T]) -> None:
        try:
            tell: Callable[[], None] = partial(result.set_result, self._read())
        except Exception as error:  # noqa: BLE001 - raised again where the result is awaited
            tell = partial(result.set_exception, error)
        # The event loop may have ended meanwhile.
        with suppress(RuntimeError):
            result.get_loop().call_soon_threadsafe(_told, result, tell)


def _told(result: asyncio.Future[T], tell: Callable[[], None]) -> None:
    if not result.done():
        tell()
