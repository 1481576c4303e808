"""Any Api in bad weather: slow, refusing, forgetful. The weather is a seed's, so that a storm can be seen again.

    storm = StormyApi(cluster.api, cluster.clock, random.Random(7))
    cluster.start(job_controller, api=storm)
    ...
    storm.calm()
    await cluster.until(...)

What goes wrong is what goes wrong with real servers: a call that never arrived, a write that was done although its
answer was lost, a conflict, a watch that ends in the middle of a batch, comes late, or goes on from a version that is
forgotten. Nothing is ever told that is not so.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable
from contextlib import aclosing
from typing import TypeVar

import msgspec

from shoal.client.clock import Clock
from shoal.client.item import Item, Listed, Obj
from shoal.client.kind import EVENTS, Kind
from shoal.client.port import EVERYTHING, GENTLY, Api, Batches, Deletion, Patch, Select, ServedKind
from shoal.client.refusals import BusyError, ExpiredError, RefusedError, StaleError

T = TypeVar("T")


class Weather(msgspec.Struct, frozen=True):
    """How probable each is, from 0 to 1; and the longest waits, in seconds."""

    refused: float = 0.0
    """A call ends in BusyError and nothing was done."""
    lost: float = 0.0
    """A write is done and its caller gets a BusyError."""
    stale: float = 0.0
    """An update, patch or delete ends in StaleError and nothing was done."""
    expired: float = 0.0
    """A watch cannot go on from its version."""
    dropped: float = 0.0
    """A batch of a watch is cut short, and the watch ends there."""
    slow_s: float = 0.0
    """A call takes up to that long, half before and half after it is done."""
    lag_s: float = 0.0
    """A batch of a watch comes up to that much later."""


CALM = Weather()
STORM = Weather(refused=0.1, lost=0.08, stale=0.1, expired=0.1, dropped=0.15, slow_s=0.3, lag_s=1.0)


class StormyApi:
    def __init__(self, api: Api, clock: Clock, draw: random.Random, weather: Weather = STORM) -> None:
        self.weather = weather
        self.takes_events = True
        """Events are half of all that is written, and most storms are about something else."""
        self.happened: dict[str, int] = {}
        """How often each thing went wrong, so that a test can say that there was a storm at all."""
        self._api = api
        self._clock = clock
        self._draw = draw

    def calm(self) -> None:
        self.weather = CALM

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        return await self._asked(self._api.get(kind, namespace, name))

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        return await self._asked(self._api.list(kind, namespace, select))

    async def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        await self._slow()
        if self._goes_wrong("refused"):
            raise BusyError("the storm took the watch")
        if self._goes_wrong("expired"):
            raise ExpiredError("the storm forgot that version", reason="Expired")
        async with aclosing(self._api.watch(kind, since, namespace, select)) as batches:
            async for batch in batches:
                if self.weather.lag_s:
                    await self._clock.sleep(self._draw.uniform(0, self.weather.lag_s))
                if self._goes_wrong("dropped"):
                    yield batch[: self._draw.randint(0, len(batch))]
                    if self._draw.random() < 0.5:
                        raise BusyError("the storm broke the watch")
                    return
                yield batch

    async def create(self, kind: Kind, obj: Obj) -> Item:
        if kind == EVENTS and not self.takes_events:
            raise RefusedError("nobody reads Events here")
        return await self._written(self._api.create(kind, obj), may_be_stale=False)

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        return await self._written(self._api.update(kind, obj, subresource))

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        return await self._written(self._api.patch(kind, namespace, name, patch, subresource))

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        return await self._written(self._api.delete(kind, namespace, name, how))

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        return await self._written(self._api.post(kind, namespace, name, subresource, obj), may_be_stale=False)

    async def served(self) -> tuple[ServedKind, ...]:
        return await self._asked(self._api.served())

    async def close(self) -> None:
        await self._api.close()

    async def _asked(self, call: Awaitable[T]) -> T:
        await self._before(call)
        answer = await call
        await self._slow()
        return answer

    async def _written(self, call: Awaitable[T], *, may_be_stale: bool = True) -> T:
        await self._before(call, may_be_stale=may_be_stale)
        answer = await call
        await self._slow()
        if self._goes_wrong("lost"):
            raise BusyError("the storm lost the answer")
        return answer

    async def _before(self, call: Awaitable[T], *, may_be_stale: bool = False) -> None:
        try:
            await self._slow()
            if self._goes_wrong("refused"):
                raise BusyError("the storm took the call")
            if may_be_stale and self._goes_wrong("stale"):
                raise StaleError("the storm says that somebody was first", reason="Conflict")
        except BaseException:
            # A coroutine that is never awaited complains when it is collected.
            close = getattr(call, "close", None)
            if close is not None:
                close()
            raise

    async def _slow(self) -> None:
        if self.weather.slow_s:
            await self._clock.sleep(self._draw.uniform(0, self.weather.slow_s / 2))

    def _goes_wrong(self, what: str) -> bool:
        chance: float = getattr(self.weather, what)
        wrong = chance > 0 and self._draw.random() < chance
        if wrong:
            self.happened[what] = self.happened.get(what, 0) + 1
        return wrong
