"""Queues the keys of objects to reconcile: each is processed at most once at a time, however often it is added.

A key that is added during its processing is processed once more afterwards. `add_after` keeps the earliest time. After
failures a key is retried with increasing delays, until `forget`.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from shoal.client.clock import Clock

K = TypeVar("K", bound=Hashable)
_SHORTEST_S, _LONGEST_S = 0.05, 60.0


class WorkQueue(Generic[K]):
    def __init__(self, clock: Clock, draw: random.Random) -> None:
        self._clock = clock
        self._draw = draw
        self._ready: deque[K] = deque()
        self._named: set[K] = set()
        """The keys in `_ready`, and those to be processed once more."""
        self._working: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, tuple[float, asyncio.TimerHandle]] = {}
        self._wakeup: asyncio.Future[None] | None = None

    def add(self, key: K) -> None:
        if key in self._named:
            return
        self._named.add(key)
        if key not in self._working:
            self._ready.append(key)
            self._wake()

    def add_after(self, key: K, seconds: float) -> None:
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.seconds() + seconds
        timer = self._timers.get(key)
        if timer is not None:
            if timer[0] <= due:
                return
            timer[1].cancel()
        self._timers[key] = (due, self._clock.call_later(seconds, lambda: self._ring(key)))

    def retry(self, key: K, least_s: float = 0.0) -> float:
        """Retry the key after a failure; returns the delay."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay_s = min(_SHORTEST_S * float(1 << min(failures - 1, 20)), _LONGEST_S) * self._draw.uniform(0.5, 1.0)
        delay_s = max(delay_s, least_s)
        self.add_after(key, delay_s)
        return delay_s

    def forget(self, key: K) -> None:
        """Reset the delay of the key after a success."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """The next key; the caller calls `done` afterwards."""
        while not self._ready:
            if self._wakeup is None or self._wakeup.done():
                self._wakeup = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._wakeup)
        key = self._ready.popleft()
        self._named.discard(key)
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        self._working.discard(key)
        if key in self._named:
            self._ready.append(key)
            self._wake()

    def __len__(self) -> int:
        """The number of keys that are ready."""
        return len(self._ready)

    @property
    def is_idle(self) -> bool:
        """Whether no key is ready or in progress; timers may still run."""
        return not self._ready and not self._working

    def _ring(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)
