"""A state that has forgotten its history: who followed it has lost its place, who lists has not."""

from __future__ import annotations

import asyncio

import pytest

from build.cluster_states import PODS, opened, pod, put
from shoal.embedded.apiserver.status import ApiError


async def test_every_open_watch_loses_its_place_whether_it_waits_or_reads() -> None:
    state = await opened()
    waits, reads, closed = (state.watch(PODS, None, state.revision) for _ in range(3))
    await put(state, pod("a"))
    for watch in (waits, closed):
        await watch.next_batch()
    waiting = asyncio.create_task(waits.next_batch())
    await asyncio.sleep(0)
    closed.close()
    state.expire()
    for work in (waiting, reads.next_batch()):
        with pytest.raises(ApiError) as caught:
            await work
        assert (caught.value.code, caught.value.reason) == (410, "Expired")
    assert await closed.next_batch() == []


async def test_a_watch_from_before_is_refused_and_one_from_now_goes_on() -> None:
    state = await opened()
    first = await put(state, pod("a"))
    last = await put(state, pod("b"))
    state.expire()
    with pytest.raises(ApiError, match="too old resource version"):
        state.watch(PODS, None, first.revision)
    watch = state.watch(PODS, None, last.revision)
    await put(state, pod("c"))
    (event,) = await watch.next_batch()
    assert event.record.ref.name == "c"


async def test_objects_and_lists_of_now_are_as_before() -> None:
    state = await opened()
    record = await put(state, pod("a"))
    state.expire()
    assert state.get(record.ref) == record
    assert [one.ref.name for one in state.list(PODS, None, at=state.revision).records] == ["a"]
    with pytest.raises(ApiError, match="too old"):
        state.list(PODS, None, at=record.revision - 1)


async def test_what_happens_afterwards_is_forgotten_by_the_limits_again() -> None:
    state = await opened(history_count=2)
    await put(state, pod("a"))
    state.expire()
    since = state.revision
    for name in "bcd":
        await put(state, pod(name))
    with pytest.raises(ApiError, match="too old resource version"):
        state.watch(PODS, None, since)
    assert len(await state.watch(PODS, None, since + 1).next_batch()) == 2
