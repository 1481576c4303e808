"""Keeps answers that take a while, each for some seconds, so that open pages do not have them computed again and again.

Equal questions at one time are answered once. A refusal is kept as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from shoal.client.clock import Clock
from shoal.units.errors import ShoalError

T = TypeVar("T")
_MOST = 128


class KeptAnswers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[Hashable, tuple[float, Any]] = {}
        self._turns: dict[Hashable, asyncio.Lock] = {}

    async def of(self, key: Hashable, seconds: float, compute: Callable[[], Awaitable[T]]) -> T:
        """Raises the ShoalError that `compute` raised."""
        async with self._turns.setdefault(key, asyncio.Lock()):
            kept = self._kept.get(key)
            if kept is None or self._clock.seconds() - kept[0] >= seconds:
                found: T | ShoalError
                try:
                    found = await compute()
                except ShoalError as error:
                    found = error
                self._make_room(key)
                kept = self._kept[key] = self._clock.seconds(), found
        if isinstance(kept[1], ShoalError):
            raise kept[1]
        answer: T = kept[1]
        return answer

    def _make_room(self, key: Hashable) -> None:
        """The oldest answer goes."""
        if key not in self._kept and len(self._kept) >= _MOST:
            oldest = min(self._kept, key=lambda one: self._kept[one][0])
            del self._kept[oldest]
            if not self._turns[oldest].locked():
                del self._turns[oldest]
