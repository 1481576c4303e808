"""Watches lose nothing, keep the order, and are told when their place is forgotten."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from build.cluster_states import JOBS, PODS, Clock, drop, everything, opened, pod, put
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.state import State
from shoal.embedded.apiserver.state.watch import Watch
from shoal.embedded.apiserver.status import ApiError


async def test_a_watch_replays_what_came_after_its_revision_and_goes_on_live() -> None:
    state = await opened()
    first = await put(state, pod("a"))
    await put(state, pod("b"))
    watch = state.watch(PODS, None, first.revision)
    assert spelled(await watch.next_batch()) == ["ADDED b 3"]
    waiting = asyncio.create_task(watch.next_batch())
    await asyncio.sleep(0)
    await put(state, pod("a"))
    assert spelled(await waiting) == ["MODIFIED a 4"]


async def test_the_line_of_an_event_is_what_clients_read() -> None:
    state = await opened()
    watch = state.watch(PODS, None, state.revision)
    record = await put(state, pod("a"))
    (event,) = await watch.next_batch()
    assert event.line.endswith(b"\n")
    assert event.line.count(b"\n") == 1
    assert msgspec.json.decode(event.line) == {"type": "ADDED", "object": record.obj()}


async def test_an_object_that_leaves_a_selector_departs_as_it_was_with_the_new_revision() -> None:
    state = await opened()
    await put(state, pod("a"), phase="Pending")
    watch = state.watch(PODS, None, state.revision)
    await put(state, pod("a"), phase="Running")
    (event,) = await watch.next_batch()
    departed = event.departed()
    assert departed.obj()["phase"] == "Pending"
    assert departed.obj()["metadata"]["resourceVersion"] == "3"


async def test_a_watch_of_a_namespace_or_an_object_hears_of_nothing_else() -> None:
    state = await opened()
    in_b = state.watch(PODS, "b", state.revision)
    one = state.watch(PODS, "b", state.revision, name="x")
    anywhere = state.watch(PODS, None, state.revision, name="x")
    jobs = state.watch(JOBS, None, state.revision)
    waiting = [asyncio.create_task(watch.next_batch()) for watch in (in_b, one, anywhere, jobs)]
    await asyncio.sleep(0)
    await put(state, pod("y", "a"))
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    await put(state, pod("y", "b"))
    await put(state, pod("x", "a"))
    await put(state, pod("x", "b"))
    await put(state, pod("j", home=JOBS))
    found = [
        await task + await everything(watch) for task, watch in zip(waiting, (in_b, one, anywhere, jobs), strict=True)
    ]
    assert [spelled(events) for events in found] == [
        ["ADDED y 3", "ADDED x 5"],
        ["ADDED x 5"],
        ["ADDED x 4", "ADDED x 5"],
        ["ADDED j 6"],
    ]


async def test_a_revision_that_is_forgotten_or_has_not_come_is_refused_as_kubernetes_refuses_it() -> None:
    state = await opened(history_count=3)
    for i in range(6):
        await put(state, pod(f"p{i}"))
    with pytest.raises(ApiError) as old:
        state.watch(PODS, None, 2)
    assert (old.value.code, old.value.reason) == (410, "Expired")
    assert old.value.message == "too old resource version: 2 (4)"
    assert spelled(await state.watch(PODS, None, 4).next_batch()) == ["ADDED p3 5", "ADDED p4 6", "ADDED p5 7"]
    with pytest.raises(ApiError) as early:
        state.watch(PODS, None, 99)
    assert early.value.code == 504
    assert early.value.message == "Timeout: Too large resource version: 99, current: 7"


async def test_a_watch_that_reads_too_slowly_ends_with_410_instead_of_a_gap() -> None:
    state = await opened(history_count=3)
    watch = state.watch(PODS, None, state.revision)
    for i in range(6):
        await put(state, pod(f"p{i}"))
    with pytest.raises(ApiError) as slow:
        await watch.next_batch()
    assert slow.value.code == 410


async def test_a_watch_that_waits_misses_nothing_when_the_history_forgets_what_was_not_its_concern() -> None:
    state = await opened(history_count=3)
    quiet = state.watch(PODS, "b", state.revision)
    waiting = asyncio.create_task(quiet.next_batch())
    await asyncio.sleep(0)
    for i in range(20):
        await put(state, pod(f"p{i}", "a"))
    assert quiet.position == state.revision
    await put(state, pod("x", "b"))
    assert spelled(await waiting) == ["ADDED x 22"]


async def test_a_resource_that_never_changes_stays_open_to_old_watches() -> None:
    state = await opened(history_count=3)
    await put(state, pod("j", home=JOBS))
    for i in range(3):
        await put(state, pod(f"p{i}"))
    with pytest.raises(ApiError):
        state.watch(JOBS, None, 1)
    for i in range(20):
        await put(state, pod(f"p{i}"))
    since = state.watch(JOBS, None, 2)
    await put(state, pod("k", home=JOBS))
    assert spelled(await since.next_batch()) == ["ADDED k 26"]


async def test_history_is_forgotten_by_age_too() -> None:
    clock = Clock()
    state = await opened(clock=clock, history_age_s=60)
    await put(state, pod("a"))
    clock.now_s = 50
    await put(state, pod("b"))
    clock.now_s = 100
    await put(state, pod("c"))
    assert state.oldest == 2
    clock.now_s = 1_000
    state.forget()
    assert state.oldest == 3


async def test_history_is_forgotten_by_what_it_keeps_alive() -> None:
    state = await opened(history_bytes=50_000)
    await put(state, pod("big"), filling="x" * 20_000)
    revisions = [(await put(state, pod("big"), filling="y" * 20_000)).revision for _ in range(5)]
    assert state.oldest == revisions[-3]


async def test_a_nudge_lets_a_waiting_watch_return_with_nothing_and_a_true_position() -> None:
    state = await opened()
    watch = state.watch(PODS, "b", state.revision)
    waiting = asyncio.create_task(watch.next_batch())
    await asyncio.sleep(0)
    await put(state, pod("a", "a"))
    watch.nudge()
    assert await waiting == []
    assert watch.position == 2
    await put(state, pod("b", "b"))
    assert spelled(await watch.next_batch()) == ["ADDED b 3"]


async def test_a_closed_watch_says_nothing_more() -> None:
    state = await opened()
    watch = state.watch(PODS, None, state.revision)
    waiting = asyncio.create_task(watch.next_batch())
    await asyncio.sleep(0)
    watch.close()
    assert await waiting == []
    await put(state, pod("a"))
    assert await watch.next_batch() == []


@pytest.mark.parametrize("is_told_first", [True, False])
async def test_a_wait_that_is_cancelled_in_the_very_moment_of_an_event_keeps_the_event(is_told_first: bool) -> None:
    state = await opened()
    watch = state.watch(PODS, None, state.revision)
    waiting = asyncio.create_task(watch.next_batch())
    await asyncio.sleep(0)

    def cancel_first(events: list[Event]) -> None:
        waiting.cancel()

    if not is_told_first:
        state.on_commit(cancel_first)
    await put(state, pod("a"))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    told = [] if waiting.cancelled() else waiting.result()
    assert watch.position < 2 or told
    assert spelled(told or await watch.next_batch()) == ["ADDED a 2"]


async def test_a_long_replay_comes_in_pieces_without_a_seam() -> None:
    state = await opened()
    for i in range(1_234):
        await put(state, pod(f"p{i % 10}", "a" if i % 3 else "b"))
    watch = state.watch(PODS, "b", 1)
    sizes, revisions = [], []
    while watch.position < state.revision:
        events = await watch.next_batch()
        sizes.append(len(events))
        revisions += [event.record.revision for event in events]
    assert revisions == [i + 2 for i in range(1_234) if i % 3 == 0]
    assert max(sizes) <= 500


async def test_twenty_watchers_of_a_busy_resource_all_see_everything_in_order() -> None:
    state = await opened()
    watches = [state.watch(PODS, None, state.revision) for _ in range(20)]
    followers = [asyncio.create_task(follow(watch, 400)) for watch in watches]
    await asyncio.gather(*(churn(state, f"p{i}") for i in range(100)))
    seen = await asyncio.gather(*followers)
    assert seen[0] == list(range(2, 402))
    assert all(revisions == seen[0] for revisions in seen)


async def churn(state: State, name: str) -> None:
    for _ in range(3):
        await put(state, pod(name))
    await drop(state, pod(name))


async def follow(watch: Watch, count: int) -> list[int]:
    revisions: list[int] = []
    while len(revisions) < count:
        revisions += [event.record.revision for event in await watch.next_batch()]
    return revisions


def spelled(events: list[Event]) -> list[str]:
    return [f"{event.kind} {event.record.ref.name} {event.record.revision}" for event in events]
