"""Large requests of one user hold few seats, and the worker's time is charged to those who caused it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.planes import operations
from build.virtual_time import virtual
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.flowcontrol.control import FlowControl, Seat
from shoal.embedded.apiserver.flowcontrol.large_requests import AT_ONCE, LargeRequests
from shoal.embedded.apiserver.flowcontrol.levels import Flow, Limits, PriorityLevel
from shoal.embedded.apiserver.large_work import LargeWork, Turn
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.rest.context import computed
from shoal.embedded.apiserver.status import ApiError

ADA = Actor("ada", ("system:authenticated",))
CREATE = RequestInfo("create", "", "v1", "configmaps", "", "default")


async def test_large_requests_wait_for_each_other_without_seats(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        control = FlowControl(ops.state.reader)
        flow = control.flow_of(ADA, CREATE)
        asked = [asyncio.create_task(control.seat(flow, "ada")) for _ in range(40)]
        for _ in range(5):
            await asyncio.sleep(0)
        seated = [task.result() for task in asked if task.done()]
        assert (len(seated), flow.level.seats) == (AT_ONCE, AT_ONCE)
        (await control.seat(flow)).release()
        seated[0].release()
        await asked[AT_ONCE]
        assert flow.level.seats == AT_ONCE
        for task in asked:
            (await task).release()
        assert flow.level.seats == 0


async def test_of_large_requests_only_so_many_wait() -> None:
    large = LargeRequests(at_once=1, most_waiting=1)
    await large.enter("ada")
    waiting = asyncio.create_task(large.enter("ada"))
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as refused:
        await large.enter("ada")
    assert refused.value.code == 429
    await large.enter("bob")
    large.leave("ada")
    await waiting


async def test_a_large_request_that_gives_up_keeps_nobody_waiting() -> None:
    large = LargeRequests(at_once=1)
    await large.enter("ada")
    gone, last = (asyncio.create_task(large.enter("ada")) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    large.leave("ada")
    await last
    assert gone.cancelled()
    called = asyncio.create_task(large.enter("ada"))
    await asyncio.sleep(0)
    large.leave("ada")
    # Its turn has come in the same moment in which it gives up.
    called.cancel()
    await asyncio.gather(called, return_exceptions=True)
    assert called.cancelled()
    at_once = asyncio.create_task(large.enter("ada"))
    await asyncio.sleep(0)
    assert at_once.done()


async def test_a_refused_seat_leaves_the_place_to_the_next_large_request(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        control = FlowControl(ops.state.reader, seats=1, longest_wait_s=0.0)
        flow = control.flow_of(ADA, CREATE)
        held = await control.seat(flow)
        for _ in range(AT_ONCE + 1):
            with pytest.raises(ApiError):
                await control.seat(flow, "ada")
        held.release()
        (await control.seat(flow, "ada")).release()


async def test_the_time_of_the_worker_is_charged_to_the_seat(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        readings = iter([0.0, 3.0])
        ops.context.large = LargeWork(lambda: next(readings))
        seat = Seat(Flow(PriorityLevel("l", "uid", Limits(1, 1, 1)), {}))
        call = ops.call("create", "configmaps", size=100_000)
        call.charge = seat.charge
        await computed(ops.context, call, len, "work")
        assert seat.used_s == 3.0


async def test_what_is_done_after_the_seat_was_given_back_counts_for_the_flow() -> None:
    level = PriorityLevel("l", "uid", Limits(1, 10, 10))
    flow = Flow(level, {})
    assert level.takes(flow)
    level.queued(flow)
    seat = Seat(flow)
    seat.release()
    work = LargeWork(iter([0.0, 2.0]).__next__)
    await work.run(Turn("ada", seat.charge), len, "work")
    assert flow.charged_s == 2.0
    work.close()


async def test_a_large_request_that_gives_up_does_not_count_among_those_that_wait() -> None:
    large = LargeRequests(at_once=1, most_waiting=1)
    await large.enter("ada")
    gone = asyncio.create_task(large.enter("ada"))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    waiting = asyncio.create_task(large.enter("ada"))
    await asyncio.sleep(0)
    assert not waiting.done()
    large.leave("ada")
    await waiting


@virtual
async def test_a_large_request_waits_no_longer_than_any_other(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        control = FlowControl(ops.state.reader, longest_wait_s=15.0)
        flow = control.flow_of(ADA, CREATE)
        for _ in range(AT_ONCE):
            await control.seat(flow, "ada")
        with pytest.raises(ApiError) as refused:
            await control.seat(flow, "ada")
        assert refused.value.code == 429
