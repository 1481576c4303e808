"""Reports once when the server stops answering and once when it answers again, for all controllers of a process.

Each of sixty caches detects an outage by itself and retries until the server answers. One log line has the same
information as a thousand, and a thousand lines hide other messages.

Rejected: no line before some attempts. A user who reads the log during an outage needs the line at once.
"""

from __future__ import annotations

import logging

from shoal.client.refusals import NO_ANSWER, BusyError
from shoal.units.errors import ShoalError

_log = logging.getLogger("shoal.store")


class Outage:
    """The outage of one server; `who`: any value that identifies the caller."""

    def __init__(self) -> None:
        self._unanswered: set[object] = set()

    def takes(self, who: object, error: ShoalError) -> bool:
        """Whether the error means that the server did not answer; then it needs no other message."""
        if not isinstance(error, BusyError) or error.reason != NO_ANSWER:
            return False
        if not self._unanswered:
            _log.warning("%s; it is asked again until it answers", error)
        self._unanswered.add(who)
        return True

    def ends(self, who: object) -> None:
        """A cache had an answer. Caches that had answers all the time do not call this."""
        if who in self._unanswered:
            self._unanswered.clear()
            _log.warning("the server answers again")
