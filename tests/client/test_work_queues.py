"""Keys in line: each at most once at a time, none forgotten, failures ever later."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.small_clusters import START_S
from build.virtual_time import in_virtual_time, virtual
from shoal.client.clock import LoopClock
from shoal.client.work_queue import WorkQueue


def queue(clock: LoopClock) -> WorkQueue[str]:
    return WorkQueue(clock, random.Random(1))


@virtual
async def test_a_key_that_is_named_often_is_worked_on_once() -> None:
    keys = queue(LoopClock(START_S))
    for _ in range(3):
        keys.add("a")
    keys.add("b")
    assert [await keys.get(), await keys.get()] == ["a", "b"]
    keys.done("a")
    keys.done("b")
    assert keys.is_idle


@virtual
async def test_a_key_that_is_named_while_it_is_worked_on_comes_once_more_afterwards() -> None:
    keys = queue(LoopClock(START_S))
    keys.add("a")
    assert await keys.get() == "a"
    keys.add("a")
    keys.add("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(keys.get(), 1)
    keys.done("a")
    assert await keys.get() == "a"
    keys.done("a")
    assert keys.is_idle


@virtual
async def test_of_two_times_the_earlier_one_counts() -> None:
    clock = LoopClock(START_S)
    keys = queue(clock)
    keys.add_after("a", 10)
    keys.add_after("a", 3)
    keys.add_after("a", 7)
    assert await keys.get() == "a"
    assert clock.seconds() - START_S == 3
    keys.done("a")
    await clock.sleep(20)
    assert keys.is_idle, "the later times are dropped"


@virtual
async def test_waits_after_failures_grow_to_a_minute_and_start_anew_after_a_success() -> None:
    keys = queue(LoopClock(START_S))
    waits = [keys.retry("a") for _ in range(30)]
    assert waits[0] <= 0.05
    assert all(earlier < later * 2 for earlier, later in pairwise(waits))
    assert max(waits) <= 60
    assert waits[-1] >= 30
    assert keys.failures("a") == 30
    keys.forget("a")
    assert keys.retry("a") <= 0.05


@virtual
async def test_a_server_that_says_when_to_come_back_is_not_asked_before() -> None:
    clock = LoopClock(START_S)
    keys = queue(clock)
    assert keys.retry("a", 7.0) == 7.0
    await keys.get()
    assert clock.seconds() - START_S == 7


@virtual
async def test_a_worker_that_is_cancelled_while_it_waits_takes_nothing_with_it() -> None:
    keys = queue(LoopClock(START_S))
    waiting = [asyncio.ensure_future(keys.get()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    keys.add("a")
    keys.add("b")
    await asyncio.sleep(1)
    assert sorted(await asyncio.gather(*waiting[1:])) == ["a", "b"]


Naming = tuple[str, float, float]


@settings(max_examples=examples(30), deadline=None)
@given(
    namings=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 0.1, 1.0]), st.sampled_from([-1.0, 0.0, 0.3, 2.0])),
        max_size=30,
    ),
    workers=st.integers(1, 4),
)
def test_every_key_is_worked_on_after_it_was_last_named_and_never_twice_at_once(
    namings: list[Naming], workers: int
) -> None:
    in_virtual_time(_all_worked_on(namings, workers))


async def _all_worked_on(namings: list[Naming], workers: int) -> None:
    """A naming: the key, how long until it is named, and how much later it is due (-1: now, by `add`)."""
    clock = LoopClock(START_S)
    keys = queue(clock)
    busy: set[str] = set()
    began: dict[str, float] = {}
    faults: list[str] = []

    async def work() -> None:
        while True:
            key = await keys.get()
            if key in busy:
                faults.append(f"{key} twice at once")
            busy.add(key)
            began[key] = clock.seconds()
            await clock.sleep(0.25)
            busy.discard(key)
            keys.done(key)

    tasks = [asyncio.ensure_future(work()) for _ in range(workers)]
    due: dict[str, float] = {}
    for key, pause_s, later_s in namings:
        await clock.sleep(pause_s)
        if later_s < 0:
            keys.add(key)
        else:
            keys.add_after(key, later_s)
        due[key] = clock.seconds()
    await clock.sleep(60)
    assert keys.is_idle
    assert faults == []
    assert all(began[key] >= named for key, named in due.items())
    for task in tasks:
        task.cancel()
