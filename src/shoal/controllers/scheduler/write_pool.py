"""Runs writes concurrently with the cycles: started in order, a bounded number at once, none awaited by the cycle.

Work that only waits (for a volume, for an overloaded server) does not count against the limit meanwhile. An error in
one piece of work is logged and does not affect the others. Nothing is written before `run`, and nothing after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from shoal.units.errors import ShoalError

_log = logging.getLogger("shoal.scheduler")
_MOST_ASIDE = 1024
Work = Callable[[], Awaitable[None]]


class WritePool:
    def __init__(self, width: int) -> None:
        self._width = width
        self._waiting: deque[Work] = deque()
        self._busy = 0
        self._aside = 0
        self._group: asyncio.TaskGroup | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, work: Work) -> None:
        self._waiting.append(work)
        self._start()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Let other work run during a wait, up to a number of waiting tasks."""
        steps = self._aside < _MOST_ASIDE
        self._busy -= steps
        self._aside += steps
        self._start()
        try:
            yield
        finally:
            self._busy += steps
            self._aside -= steps

    async def run(self) -> None:
        """Runs until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._busy = self._aside = 0
                self._start()
                await asyncio.Event().wait()
        finally:
            self._group = None

    def _start(self) -> None:
        if self._group is None:
            return
        for _ in range(min(self._width - self._busy, len(self._waiting))):
            self._busy += 1
            self._group.create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting and self._busy <= self._width:
                await _done(self._waiting.popleft())
        finally:
            self._busy -= 1


async def _done(work: Work) -> None:
    try:
        await work()
    except ShoalError as error:
        _log.warning("%s", error)
    except Exception:  # noqa: BLE001 - an error for one pod must not stop the work on the others
        _log.exception("a write failed")
