"""Requests that keep to a pace, and leave a server alone that asks for it."""

from __future__ import annotations

import asyncio

from build.virtual_time import virtual
from shoal.client.http.rate_limit import RateLimit


async def _times(pace: RateLimit, number: int) -> list[float]:
    loop = asyncio.get_running_loop()
    began, times = loop.time(), []
    for _ in range(number):
        await pace.turn()
        times.append(round(loop.time() - began, 6))
    return times


@virtual
async def test_a_burst_goes_at_once_and_the_rest_evenly() -> None:
    assert await _times(RateLimit(10, 3), 6) == [0, 0, 0, 0.1, 0.2, 0.3]


@virtual
async def test_a_rest_gives_the_burst_back_and_no_more() -> None:
    pace = RateLimit(10, 3)
    await _times(pace, 6)
    await asyncio.sleep(1000)
    assert await _times(pace, 5) == [0, 0, 0, 0.1, 0.2]


@virtual
async def test_those_who_wait_together_go_in_the_order_they_came() -> None:
    pace, order = RateLimit(10, 1), list[int]()

    async def one(number: int) -> None:
        await pace.turn()
        order.append(number)

    await asyncio.gather(*(one(number) for number in range(20)))
    assert order == list(range(20))


@virtual
async def test_no_pace_is_no_wait() -> None:
    assert await _times(RateLimit(0, 0), 1000) == [0.0] * 1000


@virtual
async def test_while_the_server_wants_to_be_left_alone_nobody_has_a_turn() -> None:
    pace = RateLimit(0, 0)
    pace.rest(7)
    pace.rest(3)
    assert await _times(pace, 2) == [7, 7]


@virtual
async def test_a_server_that_wants_to_be_left_alone_for_ever_is_asked_after_a_minute() -> None:
    pace = RateLimit(10, 1)
    pace.rest(1e9)
    assert await _times(pace, 1) == [60]
