"""A part that breaks is begun again, and one that is ended stays so, however it broke or ended."""

from __future__ import annotations

import asyncio

import pytest

from build.virtual_time import virtual
from shoal.client.clock import LoopClock
from shoal.client.supervise import supervised


class Part:
    """It breaks twice, from within a group of its tasks, and works then."""

    def __init__(self) -> None:
        self.begun = 0

    async def run(self) -> None:
        self.begun += 1
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.Event().wait())
            if self.begun <= 2:
                group.create_task(self._break())

    async def _break(self) -> None:
        await asyncio.sleep(1)
        raise KeyError("one odd fact")


@virtual
async def test_a_part_whose_group_of_tasks_breaks_is_begun_again() -> None:
    part = Part()
    task = asyncio.ensure_future(supervised(LoopClock(0.0), "part", part.run))
    await asyncio.sleep(60)
    assert (part.begun, task.done()) == (3, False)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@virtual
async def test_a_part_that_breaks_while_it_is_ended_is_not_begun_again() -> None:
    begun: list[int] = []

    async def run() -> None:
        begun.append(1)
        try:
            await asyncio.Event().wait()
        finally:
            raise KeyError("one odd fact")

    task = asyncio.ensure_future(supervised(LoopClock(0.0), "part", run))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(60)
    assert (begun, task.done()) == ([1], True)
