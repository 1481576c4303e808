"""Writes beside the rounds: in order, so many at once, and no fault of one costs another anything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from build.virtual_time import virtual
from shoal.controllers.scheduler.write_pool import WritePool
from shoal.units.errors import TemporaryError


class Works:
    """Pieces of work that take a second each."""

    def __init__(self, pool: WritePool) -> None:
        self.pool = pool
        self.begun: list[int] = []
        self.busy = self.most = 0

    def add(self, *numbers: int, work: Callable[[int], Awaitable[None]] | None = None) -> None:
        for number in numbers:
            self.pool.add(partial(work or self._plain, number))

    async def _plain(self, number: int) -> None:
        self.begun.append(number)
        self.busy += 1
        self.most = max(self.most, self.busy)
        await asyncio.sleep(1)
        self.busy -= 1

    async def waits(self, number: int) -> None:
        self.begun.append(number)
        with self.pool.aside():
            await asyncio.sleep(100)

    async def breaks(self, number: int) -> None:
        self.begun.append(number)
        if number % 2:
            raise TemporaryError("busy", 1.0)
        raise RuntimeError("a bug")


async def run(pool: WritePool, seconds: float) -> None:
    task = asyncio.ensure_future(pool.run())
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@virtual
async def test_nothing_begins_before_it_runs_and_then_in_order_and_so_many_at_once() -> None:
    works = Works(WritePool(3))
    works.add(*range(8))
    await asyncio.sleep(5)
    assert not works.begun
    await run(works.pool, 2.5)
    assert (works.begun, works.most) == (list(range(8)), 3)
    await run(works.pool, 10)
    assert len(works.begun) == 8


@virtual
async def test_whoever_only_waits_keeps_nobody_from_working() -> None:
    works = Works(WritePool(2))
    works.add(*range(5), work=works.waits)
    works.add(*range(5, 9))
    await run(works.pool, 3.5)
    assert (works.begun, works.most) == (list(range(9)), 2)


@virtual
async def test_what_breaks_breaks_alone() -> None:
    works = Works(WritePool(2))
    works.add(0, 1, 2, 3, work=works.breaks)
    works.add(4, 5)
    await run(works.pool, 3)
    assert works.begun == list(range(6))


@virtual
async def test_work_that_comes_while_it_runs_begins_at_once_and_a_new_run_goes_on() -> None:
    works = Works(WritePool(2))
    task = asyncio.ensure_future(works.pool.run())
    await asyncio.sleep(1)
    works.add(1, 2, 3)
    await asyncio.sleep(0.5)
    assert works.begun == [1, 2]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await run(works.pool, 2)
    assert works.begun == [1, 2, 3]
