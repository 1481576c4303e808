"""Time as controllers and simulated kubelets see it: the loop's own, from a date, at a pace.

Everything that waits does so through the event loop, so one event loop whose time jumps (tests) makes hours pass in
milliseconds, and a pace of 60 makes a minute of the cluster last a second of yours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from time import time
from typing import Any, Protocol


class Clock(Protocol):
    def now(self) -> datetime: ...

    def seconds(self) -> float:
        """Since 1970, as `now`."""
        ...

    def text(self) -> str:
        """`2026-11-21T10:00:00Z`: as timestamps of objects are written."""
        ...

    def micro_text(self) -> str:
        """`2026-11-21T10:00:00.000000Z`: as leases and events have it."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    def call_later(self, seconds: float, what: Callable[[], Any]) -> asyncio.TimerHandle: ...


class _Telling:
    """What every clock says, from its seconds. Texts are kept for the second they are of: many writes share one."""

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def seconds(self) -> float:
        raise NotImplementedError

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds(), UTC)

    def text(self) -> str:
        second = int(self.seconds())
        if second != self._second:
            self._second = second
            self._text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return self._text

    def micro_text(self) -> str:
        return self.now().replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


class WallClock(_Telling):
    """The machine's time: right again after the machine was suspended or its clock was set."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead_s = 0.0

    def seconds(self) -> float:
        return time() + self._ahead_s

    def not_before(self, seconds: float) -> None:
        """Run ahead of the machine from now on, if that time is later."""
        self._ahead_s += max(seconds - self.seconds(), 0.0)

    @property
    def is_own(self) -> bool:
        """Whether it tells another time than the machine."""
        return self._ahead_s > 0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0.0))

    def call_later(self, seconds: float, what: Callable[[], Any]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(max(seconds, 0.0), what)


class LoopClock(_Telling):
    """The loop's own time from a date on, at a pace. Made inside the loop whose time it tells."""

    def __init__(self, start_s: float, speed: float = 1.0) -> None:
        """`start_s` is the date now, in seconds since 1970; `speed` how many seconds pass in one of the loop's."""
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._zero = self._loop.time()
        self._start_s = start_s
        self._speed = speed

    def seconds(self) -> float:
        return self._start_s + (self._loop.time() - self._zero) * self._speed

    def not_before(self, seconds: float) -> None:
        """Jump to that time if it is later: a cluster that ran ahead of the world goes on from where it was."""
        self._start_s += max(seconds - self.seconds(), 0.0)

    @property
    def is_own(self) -> bool:
        return True

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0.0) / self._speed)

    def call_later(self, seconds: float, what: Callable[[], Any]) -> asyncio.TimerHandle:
        return self._loop.call_later(max(seconds, 0.0) / self._speed, what)
