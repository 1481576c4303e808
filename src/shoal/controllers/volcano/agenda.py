"""When there is something to decide: at once, or at a moment."""

from __future__ import annotations


class Agenda:
    def __init__(self) -> None:
        self.is_due = False
        self.next_s: float | None = None

    def begin(self) -> None:
        """A round is decided; what it leaves for later is said anew."""
        self.is_due, self.next_s = False, None

    def look_at(self, due_s: float | None) -> None:
        self.next_s = min((each for each in (self.next_s, due_s) if each is not None), default=None)

    def is_reached(self, now_s: float) -> bool:
        return self.is_due or (self.next_s is not None and now_s >= self.next_s)
