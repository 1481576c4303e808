"""Many requests: as many as the server takes with some always in flight, or so many a second whatever it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

import msgspec

from bench.cluster.wire import Connection, Target

GOOD = (200, 201)


class Ask(msgspec.Struct, frozen=True):
    method: bytes
    path: bytes
    body: bytes = b""


async def connections(target: Target, count: int) -> list[Connection]:
    return list(await asyncio.gather(*(Connection.open(target) for _ in range(count))))


async def storm(lines: Sequence[Connection], asks: Sequence[Ask]) -> float:
    """Send all, one in flight per connection; the seconds from the first byte sent to the last answer."""
    left = iter(asks)
    started = perf_counter()
    await asyncio.gather(*(_drain(line, left) for line in lines))
    return perf_counter() - started


async def paced(
    lines: Sequence[Connection], asks: Sequence[Ask], rate: float, sent: Callable[[int, float], None] | None = None
) -> float:
    """Send `rate` a second: a connection that is free takes what is due. `sent` is told of each when it is *due*.

    A server that falls behind is charged for the wait in the client's line too.
    """
    started = perf_counter()
    left = iter(enumerate(asks))

    async def drain(line: Connection) -> None:
        for index, ask in left:
            due = started + index / rate
            wait = due - perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            if sent is not None:
                sent(index, due)
            await _sent(line, ask)

    await asyncio.gather(*(drain(line) for line in lines))
    return perf_counter() - started


async def _drain(line: Connection, left: Iterator[Ask]) -> None:
    for ask in left:
        await _sent(line, ask)


async def _sent(line: Connection, ask: Ask) -> None:
    code, body = await line.answer(ask.method, ask.path, ask.body)
    if code not in GOOD:
        raise RuntimeError(f"{ask.method.decode()} {ask.path.decode()}: {code} {body[:300]!r}")
