"""A driver that does not return blocks neither the event loop nor the end of the process."""

from __future__ import annotations

import asyncio
import threading

import pytest

from shoal.agent.features.blocking_read import BlockingRead
from shoal.units.errors import TemporaryError


def test_a_call_that_does_not_return_is_an_error_and_not_repeated_until_it_returns() -> None:
    returns, calls = threading.Event(), list[int]()

    def read() -> str:
        calls.append(1)
        returns.wait()
        return "labels"

    async def run() -> None:
        blocking = BlockingRead(read, patience_s=0.01)
        for _ in range(2):
            with pytest.raises(TemporaryError, match=r"has not responded for 0\.01 s"):
                await blocking()
        assert len(calls) == 1
        returns.set()
        patient = BlockingRead(read)
        assert await patient() == "labels"
        assert await patient() == "labels"
        assert len(calls) == 3

    asyncio.run(run())


def test_what_the_call_raises_is_raised() -> None:
    def read() -> str:
        raise TemporaryError("lost", 1.0)

    with pytest.raises(TemporaryError, match="lost"):
        asyncio.run(BlockingRead(read)())


def test_a_call_that_returns_after_the_end_of_the_loop_disturbs_nothing() -> None:
    returns, threads = threading.Event(), list[threading.Thread]()

    def read() -> None:
        threads.append(threading.current_thread())
        returns.wait()

    with pytest.raises(TemporaryError):
        asyncio.run(BlockingRead(read, patience_s=0.01)())
    assert threads[0].daemon
    returns.set()
    threads[0].join(60)
    assert not threads[0].is_alive()
