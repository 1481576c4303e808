"""Limits how many large requests of each user are executed at once.

Large requests wait for one worker thread. Those of a user beyond a few wait before they take a seat of their priority
level: a user who sends many of them would otherwise hold the seats that others need for requests of a millisecond.
"""

from __future__ import annotations

import asyncio
from collections import deque

import msgspec

from shoal.embedded.apiserver.large_work import MOST_WAITING, TOO_MANY
from shoal.embedded.apiserver.status import too_many_requests

AT_ONCE = 8
"""Enough to keep the worker busy while some of them wait for the disk or for webhooks; the seats of a flow are 32."""
_RETRY_S = 1


class _UserRequests(msgspec.Struct):
    executed: int = 0
    waiting: deque[asyncio.Future[None]] = msgspec.field(default_factory=deque)


class LargeRequests:
    def __init__(self, at_once: int = AT_ONCE, most_waiting: int = MOST_WAITING) -> None:
        self._at_once = at_once
        self._most_waiting = most_waiting
        self._users: dict[str, _UserRequests] = {}

    async def enter(self, name: str) -> None:
        """Returns when the request may go on; raises 429 if too many of the user wait. `leave` follows."""
        user = self._users.setdefault(name, _UserRequests())
        if user.executed < self._at_once:
            user.executed += 1
            return
        if len(user.waiting) >= self._most_waiting:
            raise too_many_requests(TOO_MANY, _RETRY_S)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        user.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(name)
            elif turn in user.waiting:
                # `leave` removes the cancelled turns that it passes over.
                user.waiting.remove(turn)
            raise

    def leave(self, name: str) -> None:
        """The place goes to the next request of the user."""
        user = self._users[name]
        while user.waiting:
            turn = user.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        user.executed -= 1
        if not user.executed:
            del self._users[name]
