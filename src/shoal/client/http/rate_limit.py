"""Limits the requests per second of a client: a burst, then evenly in order of arrival, and none during a Retry-After
of the server.

The time is the event loop's and not the cluster's: the server of a cluster with sixty times the speed is not faster.
"""

from __future__ import annotations

import asyncio

_LONGEST_REST_S = 60.0


class RateLimit:
    def __init__(self, per_second: float, burst: int) -> None:
        """0 per second: no limit."""
        self._apart_s = 1 / per_second if per_second > 0 else 0.0
        self._ahead_s = self._apart_s * max(burst, 1)
        self._due = float("-inf")
        """The time of the next request at an even rate; it may be sent `_ahead_s` earlier."""
        self._rests_until = float("-inf")

    def rest(self, seconds: float) -> None:
        """The server is overloaded: no request is sent before that."""
        self._rests_until = max(self._rests_until, asyncio.get_running_loop().time() + min(seconds, _LONGEST_REST_S))

    async def turn(self) -> None:
        """Returns when it is this request's turn."""
        now = asyncio.get_running_loop().time()
        while now < self._rests_until:
            await asyncio.sleep(self._rests_until - now)
            now = asyncio.get_running_loop().time()
        if not self._apart_s:
            return
        self._due = max(self._due, now) + self._apart_s
        wait_s = self._due - self._ahead_s - now
        if wait_s > 0:
            await asyncio.sleep(wait_s)
