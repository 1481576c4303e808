"""Limits the seconds that a search for a user at a terminal may take. No other module lets a search read the clock."""

from __future__ import annotations

import time
from collections.abc import Callable


class SearchDeadline:
    """Returns True until this number of seconds after its first call."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._until: float | None = None

    def __call__(self) -> bool:
        now = self._clock()
        if self._until is None:
            self._until = now + self._seconds
        return now < self._until
