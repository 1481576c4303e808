"""A clock that can be set in a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from shoal.client.clock import Clock


class JumpingClock:
    """Implements Clock."""

    def __init__(self, inner: Clock) -> None:
        self._inner = inner
        self.ahead_s = 0.0

    def seconds(self) -> float:
        return self._inner.seconds() + self.ahead_s

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds(), UTC)

    def text(self) -> str:
        return f"{self.now():%Y-%m-%dT%H:%M:%SZ}"

    def micro_text(self) -> str:
        return self.now().replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)

    def call_later(self, seconds: float, what: Callable[[], Any]) -> asyncio.TimerHandle:
        return self._inner.call_later(seconds, what)
