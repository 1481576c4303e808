"""Long computations beside the event loop."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

from shoal.client.daemon_thread import DaemonThread

PATIENCE_S = 30


async def _run(thread: DaemonThread, may_end: Event) -> bool:
    return await asyncio.get_running_loop().run_in_executor(thread, may_end.wait, PATIENCE_S)


def test_the_event_loop_goes_on_while_a_computation_runs() -> None:
    async def work() -> bool:
        may_end = Event()
        asyncio.get_running_loop().call_soon(may_end.set)
        return await _run(DaemonThread("test"), may_end)

    assert asyncio.run(work())


def test_a_computation_that_still_runs_is_not_waited_for() -> None:
    async def work() -> Event:
        may_end, thread = Event(), DaemonThread("test")
        running = asyncio.ensure_future(_run(thread, may_end))
        await asyncio.sleep(0)
        thread.shutdown(wait=False)
        running.cancel()
        return may_end

    # The loop has ended although the computation has not.
    assert not asyncio.run(work()).is_set()


def test_an_error_of_a_computation_is_raised_where_its_result_is_awaited() -> None:
    async def work() -> None:
        await asyncio.get_running_loop().run_in_executor(DaemonThread("test"), int, "seven")

    with pytest.raises(ValueError, match="seven"):
        asyncio.run(work())


class _Ended(BaseException):
    """What is no Exception, as a fault in an extension module."""


def test_the_thread_goes_on_after_a_computation_that_ends_with_a_base_exception() -> None:
    def end() -> None:
        raise _Ended

    thread = DaemonThread("test")
    first, second = thread.submit(end), thread.submit(int, "7")
    with pytest.raises(_Ended):
        first.result(PATIENCE_S)
    assert second.result(PATIENCE_S) == 7
