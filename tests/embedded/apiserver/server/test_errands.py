"""What the server has to do by itself is tried until it is done."""

from __future__ import annotations

import asyncio
import logging

import pytest

from shoal.embedded.apiserver.background_retries import BackgroundRetries
from shoal.embedded.apiserver.status import internal, unavailable


class Chore:
    """Fails as often as it is told to, and says when it is done."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.tries = 0
        self.done = asyncio.Event()

    async def do(self) -> None:
        self.tries += 1
        if self.faults:
            raise self.faults.pop(0)
        self.done.set()


@pytest.mark.parametrize("fault", [internal("the disk is full"), ValueError("a bug")])
async def test_what_fails_is_tried_again_and_told(fault: Exception, caplog: pytest.LogCaptureFixture) -> None:
    errands, chore = BackgroundRetries(first_s=0.0), Chore(fault, fault)
    errands.start("the count of beans", chore.do)
    async with asyncio.timeout(60):
        await chore.done.wait()
    assert chore.tries == 3
    assert "the count of beans has to be tried again" in caplog.text
    await errands.close()


async def test_what_is_asked_for_while_it_runs_runs_once_more_and_never_beside_itself() -> None:
    errands, gate, twice, running = BackgroundRetries(), asyncio.Event(), asyncio.Event(), list[str]()
    seen: list[int] = []

    async def do() -> None:
        running.append("x")
        seen.append(len(running))
        await gate.wait()
        running.pop()
        if len(seen) == 2:
            twice.set()

    for _ in range(3):
        errands.start("it", do)
        await asyncio.sleep(0)
    gate.set()
    async with asyncio.timeout(60):
        await twice.wait()
    await asyncio.sleep(0)
    await errands.close()
    assert seen == [1, 1]


async def test_nothing_runs_after_the_end_and_the_end_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "shoal.cluster")
    errands, late = BackgroundRetries(), Chore()
    refused, waiting = Chore(unavailable("the server is shutting down")), Chore(*[internal("full")] * 9)
    never = asyncio.Event()
    errands.start("refused", refused.do)
    errands.start("held up", never.wait)  # type: ignore[arg-type]  # what it answers is nobody's business
    await asyncio.sleep(0)
    assert caplog.text == ""
    errands.start("waiting", waiting.do)
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await errands.close()
    errands.start("late", late.do)
    await asyncio.sleep(0)
    assert (refused.tries, waiting.tries, late.tries) == (1, 1, 0)
