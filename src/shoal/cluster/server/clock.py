"""The wall clock of the server. Everything below is given the time."""

from __future__ import annotations

from datetime import UTC, datetime
from time import time


class WallClock:
    """Texts are kept for the second they are of: a thousand writes share one."""

    def __init__(self) -> None:
        self._second = 0
        self._text = ""

    def seconds(self) -> float:
        return time()

    def text(self) -> str:
        second = int(time())
        if second != self._second:
            self._second = second
            self._text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return self._text
