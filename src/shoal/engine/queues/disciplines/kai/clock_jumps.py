"""Tells a clock that jumped for a moment from one that was set.

Rejected: believing every time. A clock that ran ahead once would make all of the window a time that is still to come.
"""

from __future__ import annotations

from typing import Final

JUMP_S: Final = 600.0
"""By which a clock is off before it counts as one that jumped."""
CONFIRM_S: Final = 30.0


class ClockJumps:
    def __init__(self) -> None:
        self._seen_s: float | None = None
        """When the clock was first seen to be off."""

    def is_steady(self, now_s: float, expected_s: float) -> bool:
        """Whether the time is near the expected one, or has gone on from another one for half a minute."""
        if abs(now_s - expected_s) <= JUMP_S:
            self._seen_s = None
            return True
        if self._seen_s is None or not 0 <= now_s - self._seen_s <= JUMP_S:
            self._seen_s = now_s
            return False
        return now_s - self._seen_s >= CONFIRM_S
