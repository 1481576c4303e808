"""Defines the clocks of controllers and simulated kubelets: the machine's time, or the event loop's time from a start
date at a given speed.

All waits go through the event loop. With an event loop whose time jumps (tests), hours pass in milliseconds; with a
speed of 60, a minute of the cluster takes one second of real time.
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
        """The time of `now`, in seconds since 1970."""
        ...

    def text(self) -> str:
        """`2026-11-21T10:00:00Z`: the format of timestamps in objects."""
        ...

    def micro_text(self) -> str:
        """`2026-11-21T10:00:00.000000Z`: the format of Leases and Events."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    def call_later(self, seconds: float, what: Callable[[], Any]) -> asyncio.TimerHandle: ...


class _Telling:
    """The texts of a clock, made of its seconds. Texts are cached for their second, because many writes share one."""

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
    """The machine's time, which is correct again after the machine was suspended or its clock was set."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead_s = 0.0

    def seconds(self) -> float:
        return time() + self._ahead_s

    def not_before(self, seconds: float) -> None:
        """Run ahead of the machine from now on, if the given time is later than the machine's."""
        self._ahead_s += max(seconds - self.seconds(), 0.0)

    @property
    def is_own(self) -> bool:
        """Whether its time differs from the machine's."""
        return self._ahead_s > 0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0.0))

    def call_later(self, seconds: float, what: Callable[[], Any]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(max(seconds, 0.0), what)


class LoopClock(_Telling):
    """The event loop's time, from a start date at a given speed. Must be created inside that loop."""

    def __init__(self, start_s: float, speed: float = 1.0) -> None:
        """`start_s`: the current date, in seconds since 1970. `speed`: the seconds that pass in one second of the
        loop.
        """
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._zero = self._loop.time()
        self._start_s = start_s
        self._speed = speed

    def seconds(self) -> float:
        return self._start_s + (self._loop.time() - self._zero) * self._speed

    def not_before(self, seconds: float) -> None:
        """Jump to that time if it is later: a cluster that ran ahead of the machine's time continues at its own
        time.
        """
        self._start_s += max(seconds - self.seconds(), 0.0)

    @property
    def is_own(self) -> bool:
        return True

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0.0) / self._speed)

    def call_later(self, seconds: float, what: Callable[[], Any]) -> asyncio.TimerHandle:
        return self._loop.call_later(max(seconds, 0.0) / self._speed, what)
