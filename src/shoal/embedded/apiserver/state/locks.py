"""One writer per object at a time, first come first served.

A write reads an object, decides for some microseconds or for as long as a webhook takes, and commits; other writers
meanwhile wait instead of failing with a conflict the client did not cause. Several objects are locked in one order
wherever they are named, so that two writers never wait for each other.

Rejected: asyncio.Lock per object. It would have to be made and dropped for each of ten thousand objects, and a lock
without waiters is here one entry in a dictionary.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.embedded.apiserver.resource import Ref

_Waiting = deque[asyncio.Future[None]]


class Locks:
    """Which objects are held, and who waits for them."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[Ref, _Waiting | None] = {}

    def hold(self, *refs: Ref) -> Hold:
        return Hold(self, refs if len(refs) == 1 else tuple(sorted(set(refs))))

    def is_held(self, ref: Ref) -> bool:
        return ref in self._held

    async def take(self, ref: Ref) -> None:
        held = self._held
        if ref not in held:
            held[ref] = None
            return
        waiting = held[ref]
        if waiting is None:
            waiting = held[ref] = deque()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give(ref)
            raise

    def give(self, ref: Ref) -> None:
        """Passed directly to the next waiter: later ones cannot overtake."""
        waiting = self._held[ref]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._held[ref]


class Hold:
    """`async with`: the objects are this writer's inside."""

    __slots__ = ("_locks", "_refs", "_taken")

    def __init__(self, locks: Locks, refs: tuple[Ref, ...]) -> None:
        self._locks = locks
        self._refs = refs
        self._taken = 0

    async def __aenter__(self) -> None:
        try:
            for ref in self._refs:
                await self._locks.take(ref)
                self._taken += 1
        except asyncio.CancelledError:
            self._give_back()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()

    def _give_back(self) -> None:
        for ref in self._refs[: self._taken]:
            self._locks.give(ref)
        self._taken = 0
