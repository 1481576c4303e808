"""How long somebody at a terminal waits for more: the one place where a search meets the clock."""

from __future__ import annotations

import time
from collections.abc import Callable


class Patience:
    """Says yes until so many seconds after it was asked first."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._until: float | None = None

    def __call__(self) -> bool:
        now = self._clock()
        if self._until is None:
            self._until = now + self._seconds
        return now < self._until
