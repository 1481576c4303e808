"""Runs queued writes: each key at most once at a time, a limited number of keys concurrently, with retries after
failures.

A key that is added while it is written is written once more. Rejected: workers that wait for a queue. Waking sixteen of
them for each of a thousand leases costs more than the leases.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from shoal.client.clock import Clock
from shoal.client.refusals import RefusedError
from shoal.units.errors import TemporaryError

_log = logging.getLogger("shoal.kubelets")
_LONGEST_S = 30.0
K = TypeVar("K", bound=Hashable)


class Writes(Generic[K]):
    def __init__(self, clock: Clock, most: int, write: Callable[[K], Awaitable[None]]) -> None:
        self._clock = clock
        self._most = most
        self._write = write
        self._waiting: dict[K, None] = {}
        self._busy: set[K] = set()
        self._failures: dict[K, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def add(self, key: K) -> None:
        if self._is_closed:
            return
        self._waiting[key] = None
        if len(self._tasks) < self._most and key not in self._busy:
            task = asyncio.ensure_future(self._drain())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        self._is_closed = True
        self._waiting.clear()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _drain(self) -> None:
        while (key := next((key for key in self._waiting if key not in self._busy), None)) is not None:
            del self._waiting[key]
            self._busy.add(key)
            try:
                await self._once(key)
            finally:
                self._busy.discard(key)

    async def _once(self, key: K) -> None:
        try:
            await self._write(key)
        except (TemporaryError, RefusedError) as error:
            self._again(key, getattr(error, "delay_s", 0.0))
            _log.debug("%s: %s", key, error)
        except Exception:  # noqa: BLE001 - an error for one object must not stop the writes of the others
            self._again(key, 1.0)
            _log.exception("%s could not be written", key)
        else:
            self._failures.pop(key, None)

    def _again(self, key: K, least_s: float) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self._clock.call_later(
            max(min(0.1 * float(1 << min(failures, 10)), _LONGEST_S), least_s), lambda: self.add(key)
        )
