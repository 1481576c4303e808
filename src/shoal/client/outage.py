"""Reports that the server does not answer, and that it answers again, once for all controllers of a process.

Each of sixty caches detects an outage by itself and retries until the server answers. One log line has the same
information as a thousand, and a thousand lines hide other messages. While the outage lasts the line is repeated at
growing intervals, because a process that only retries looks as if it worked.

Rejected: no line before some attempts. A user who reads the log during an outage needs the line at once.
"""

from __future__ import annotations

import logging

from shoal.client.refusals import NO_ANSWER, BusyError
from shoal.units.errors import ShoalError

_log = logging.getLogger("shoal.store")


_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 60.0, 3600.0


class Reminders:
    """When a condition that lasts is reported: at once, then after 1, 2, 4, ... minutes, at last every hour."""

    def __init__(self) -> None:
        self._since_s = self._next_s = float("-inf")
        self._pause_s = 0.0

    def report(self, now_s: float) -> str | None:
        """None: not now. Else the words for how long it has lasted, empty the first time."""
        if not self._pause_s:
            self._since_s, self._next_s, self._pause_s = now_s, now_s + _FIRST_PAUSE_S, _FIRST_PAUSE_S
            return ""
        if now_s < self._next_s:
            return None
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        self._next_s = now_s + self._pause_s
        return f" for {round((now_s - self._since_s) / 60):,} min"

    def end(self) -> None:
        self._pause_s = 0.0


class Outage:
    """The outage of one server; `who`: any value that identifies the caller."""

    def __init__(self) -> None:
        self._unanswered: set[object] = set()
        self._reminders = Reminders()

    def takes(self, who: object, error: ShoalError, now_s: float) -> bool:
        """Whether the error means that the server did not answer; then it needs no other message."""
        if not isinstance(error, BusyError) or error.reason != NO_ANSWER:
            return False
        if (lasting := self._reminders.report(now_s)) is not None:
            _log.warning("%s; retrying%s until it answers", error, lasting)
        self._unanswered.add(who)
        return True

    def ends(self, who: object) -> None:
        """A cache had an answer. Caches that had answers all the time do not call this."""
        if who in self._unanswered:
            self._unanswered.clear()
            self._reminders.end()
            _log.warning("the server answers again")
