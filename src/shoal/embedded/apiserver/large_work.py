"""Work on large objects, done in a worker thread so that it does not block the event loop.

A request of three megabytes takes a second or more to decode, to default, to validate and to track; in the event loop
every other client would wait as long. The stages of a write that only compute run here if the request is large. What
they decide from stored state is checked again at the commit, as for every other write.

One piece runs at a time. Which user is next is decided by processor time: each piece is charged to its user, and the
user who was charged least goes first. Users that come back after a pause start at the charge of the user served last,
so that a pause gives no credit. The pieces of one user run request by request, so that few objects are half done.

Rejected: several threads. Python runs one at a time, so ten clients with large bodies would leave the event loop an
eleventh of the processor. Rejected: a pool of processes. It would run in parallel, but each process costs 80 MB and the
objects would be copied twice, while one thread keeps the delay of others at a few switch intervals. What the thread
computes after `close` is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from time import thread_time
from typing import Any, ParamSpec, TypeVar

import msgspec

from shoal.client.daemon_thread import DaemonThread
from shoal.embedded.apiserver.status import too_many_requests, unavailable

P = ParamSpec("P")
R = TypeVar("R")
LARGE_BYTES = 32 * 1024
"""From this size on work goes to the thread; what is smaller takes a few milliseconds at most."""
MOST_WAITING = 50
"""Requests of one user that wait for their turn; Kubernetes' queues have the same length."""
ENDING = "the API server is shutting down"
TOO_MANY = "Too many requests, please try again later."


class Turn:
    """The place of one request among the large ones of its user."""

    __slots__ = ("charge", "number", "user")

    def __init__(self, user: str, charge: Callable[[float], None] | None = None) -> None:
        """`charge` is called with the processor time of each piece."""
        self.user = user
        self.charge = charge
        self.number = 0
        """Given with its first piece of work."""


class _UserWork(msgspec.Struct):
    charged_s: float
    waiting: list[tuple[int, int, Turn, Callable[[], Any], asyncio.Future[Any]]] = msgspec.field(default_factory=list)


class _Outcome(msgspec.Struct, frozen=True):
    """The processor time of one piece, and its result or error."""

    used_s: float
    result: Any
    fault: Exception | None


class LargeWork:
    """Runs pieces of work one at a time, fairly between users."""

    def __init__(self, clock: Callable[[], float] = thread_time, most_waiting: int = MOST_WAITING) -> None:
        """`clock` is read in the thread, before and after each piece."""
        self._clock = clock
        self._most_waiting = most_waiting
        self._users: dict[str, _UserWork] = {}
        self._served_s = 0.0
        """The charge of the user who was served last, before that piece."""
        self._numbers = count(1)
        self._is_busy = False
        self._thread: DaemonThread | None = None
        """Started with the first piece."""
        self._running: asyncio.Future[_Outcome] | None = None
        self._under_way: asyncio.Future[Any] | None = None
        self._is_closed = False

    def check(self, user: str) -> None:
        """Raises 429 if so many requests of the user wait that another one may not begin."""
        found = self._users.get(user)
        if found is not None and len(found.waiting) >= self._most_waiting:
            raise too_many_requests(TOO_MANY, 1)

    async def run(self, turn: Turn, work: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
        """The result of `work`. Raises 503 if `close` was called before it is known."""
        if self._is_closed:
            raise unavailable(ENDING)
        user = self._users.get(turn.user)
        if user is None:
            user = self._users[turn.user] = _UserWork(self._served_s)
        elif not user.waiting:
            user.charged_s = max(user.charged_s, self._served_s)
        if not turn.number:
            turn.number = next(self._numbers)
        done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        heappush(user.waiting, (turn.number, next(self._numbers), turn, lambda: work(*args, **more), done))
        self._start_next()
        return await done

    def _start_next(self) -> None:
        if self._is_busy or self._is_closed:
            return
        while True:
            waiting = [name for name, one in self._users.items() if one.waiting]
            if not waiting:
                # All have gone: their charges mean nothing to those who come later.
                self._users.clear()
                return
            name = min(waiting, key=lambda name: self._users[name].charged_s)
            user = self._users[name]
            self._served_s = user.charged_s
            _, _, turn, work, done = heappop(user.waiting)
            # Where it is done, its client has gone.
            if not done.done():
                break
        self._is_busy = True
        self._under_way = done
        if self._thread is None:
            self._thread = DaemonThread("shoal-large")
        # Through the loop, so that a loop of tests in virtual time can run it at once.
        self._running = asyncio.get_running_loop().run_in_executor(self._thread, self._timed, work)
        self._running.add_done_callback(partial(self._finish, user, turn, done))

    def _timed(self, work: Callable[[], Any]) -> _Outcome:
        began = self._clock()
        result, fault = None, None
        try:
            result = work()
        except Exception as caught:  # noqa: BLE001 - raised again where the work was requested
            fault = caught
        return _Outcome(self._clock() - began, result, fault)

    def _finish(
        self, user: _UserWork, turn: Turn, done: asyncio.Future[Any], running: asyncio.Future[_Outcome]
    ) -> None:
        self._is_busy = False
        if running.cancelled():
            return
        outcome = running.result()
        user.charged_s += outcome.used_s
        if turn.charge is not None:
            turn.charge(outcome.used_s)
        if not done.done():
            if outcome.fault is None:
                done.set_result(outcome.result)
            else:
                done.set_exception(outcome.fault)
        # Afterwards, so that the next stage of this request is waiting when the next piece is chosen.
        asyncio.get_running_loop().call_soon(self._start_next)

    def close(self) -> None:
        """Returns at once; who waits for a result is refused."""
        self._is_closed = True
        waiting = [entry[-1] for user in self._users.values() for entry in user.waiting]
        for done in (self._under_way, *waiting):
            if done is not None and not done.done():
                done.set_exception(unavailable(ENDING))
        self._users.clear()
        if self._running is not None:
            self._running.cancel()
        if self._thread is not None:
            self._thread.shutdown(wait=False)
