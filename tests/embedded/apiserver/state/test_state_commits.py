"""A write is seen by everybody when it is durable, in one step, or by nobody."""

from __future__ import annotations

import asyncio

import pytest

from build.cluster_states import JOBS, PODS, body, drop, names, opened, pod, put
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.record import Write
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.storage.faulty import FaultyStorage
from shoal.embedded.apiserver.storage.memory import MemoryStorage
from shoal.units.errors import BugError

A, B = pod("a"), pod("b")


async def test_the_first_write_follows_revision_one_and_carries_its_own() -> None:
    state = await opened()
    assert state.revision == 1
    record = await put(state, A)
    assert (record.revision, state.revision) == (2, 2)
    assert record.obj()["metadata"]["resourceVersion"] == "2"
    assert state.get(A) is record


async def test_a_write_is_not_seen_before_it_is_durable() -> None:
    storage = FaultyStorage(MemoryStorage())
    state = await opened(storage)
    seen: list[Event] = []
    state.on_commit(seen.extend)
    watch = state.watch(PODS, None, state.revision)
    follower = asyncio.create_task(watch.next_batch())
    storage.hold()
    writer = asyncio.create_task(put(state, A))
    await turns()
    assert storage.batches
    assert (state.get(A), state.revision, state.list(PODS).records) == (None, 1, [])
    assert not writer.done()
    assert not follower.done()
    assert not seen
    storage.release()
    record = await writer
    assert state.get(A) is record
    assert [event.record for event in await follower] == [record]
    assert [event.record for event in seen] == [record]


async def test_what_the_storage_refuses_was_never_there() -> None:
    storage = FaultyStorage(MemoryStorage())
    state = await opened(storage)
    before = await put(state, A, phase="old")
    watch = state.watch(PODS, None, state.revision)
    storage.fill()
    with pytest.raises(ApiError) as refused:
        await put(state, A, phase="new")
    assert (refused.value.code, refused.value.reason) == (500, "InternalError")
    assert "database or disk is full" in refused.value.message
    assert state.get(A) is before
    assert state.revision == before.revision
    with pytest.raises(ApiError):
        await drop(state, A)
    storage.heal()
    after = await put(state, A, phase="newer")
    (event,) = await watch.next_batch()
    assert event.record is after
    assert event.before is before


async def test_a_failing_batch_fails_all_who_share_it_and_the_next_one_goes_through() -> None:
    storage = FaultyStorage(MemoryStorage())
    state = await opened(storage)
    storage.hold()
    writers = [asyncio.create_task(put(state, pod(f"p{i}"))) for i in range(5)]
    await turns()
    storage.fault = "the disk went away"
    storage.release()
    answers = await asyncio.gather(*writers, return_exceptions=True)
    assert all(isinstance(answer, ApiError) for answer in answers)
    storage.heal()
    await put(state, A)
    assert names(state.list(PODS).records) == ["a"]


async def test_writes_that_come_while_the_disk_works_share_the_next_batch() -> None:
    storage = FaultyStorage(MemoryStorage())
    state = await opened(storage)
    storage.hold()
    writers = [asyncio.create_task(put(state, A))]
    await turns()
    writers += [asyncio.create_task(put(state, pod(f"p{i}"))) for i in range(20)]
    await turns()
    storage.release()
    await asyncio.gather(*writers)
    assert [len(batch) for batch in storage.batches] == [1, 20]


async def test_writes_of_one_commit_are_seen_together_and_in_order() -> None:
    state = await opened()
    batches: list[list[Event]] = []
    state.on_commit(lambda events: batches.append(events))
    job = pod("j", home=JOBS)
    records = await state.commit([Write(A, body(A)), Write(job, body(job)), Write(B, body(B))])
    assert [record.revision for record in records] == [2, 3, 4]
    assert [[event.record.ref for event in batch] for batch in batches] == [[A, job, B]]


async def test_a_deleted_objects_last_state_carries_the_revision_of_its_deletion() -> None:
    state = await opened()
    before = await put(state, A, phase="Running")
    watch = state.watch(PODS, None, state.revision)
    gone = await drop(state, A)
    assert gone.obj() == {**before.obj(), "metadata": {**before.obj()["metadata"], "resourceVersion": "3"}}
    assert state.get(A) is None
    (event,) = await watch.next_batch()
    assert (event.kind, event.record, event.before) == ("DELETED", gone, before)


async def test_whoever_writes_without_the_lock_and_comes_second_is_told() -> None:
    state = await opened()
    first = await put(state, A)
    await put(state, A)
    with pytest.raises(ApiError) as stale:
        await state.commit([Write(A, body(A), first)])
    assert (stale.value.code, stale.value.reason) == (409, "Conflict")
    with pytest.raises(ApiError) as taken:
        await state.commit([Write(A, body(A))])
    assert (taken.value.code, taken.value.reason) == (409, "AlreadyExists")


async def test_whoever_writes_what_is_just_being_written_is_told() -> None:
    storage = FaultyStorage(MemoryStorage())
    state = await opened(storage)
    storage.hold()
    writer = asyncio.create_task(put(state, A))
    await turns()
    with pytest.raises(ApiError) as taken:
        await state.commit([Write(A, body(A))])
    assert taken.value.reason == "AlreadyExists"
    storage.release()
    await writer


async def test_a_refused_commit_leaves_nothing_of_itself() -> None:
    state = await opened()
    old = await put(state, A)
    await put(state, A)
    with pytest.raises(ApiError):
        await state.commit([Write(B, body(B)), Write(A, body(A), old)])
    assert state.get(B) is None
    await put(state, B)


async def test_commits_that_make_no_sense_are_bugs() -> None:
    state = await opened()
    with pytest.raises(BugError, match="twice"):
        await state.commit([Write(A, body(A)), Write(A, body(A))])
    with pytest.raises(BugError, match="not there"):
        await state.commit([Write(A, None)])
    await put(state, A)


async def test_a_commit_of_nothing_does_nothing() -> None:
    state = await opened()
    assert await state.commit([]) == []
    assert state.revision == 1


async def test_a_writer_that_is_cancelled_keeps_its_lock_until_the_outcome_is_known() -> None:
    storage = FaultyStorage(MemoryStorage())
    state = await opened(storage)
    storage.hold()
    terminating = asyncio.create_task(put(state, A, phase="first"))
    await turns()
    staying = asyncio.create_task(put(state, A, phase="second"))
    await turns()
    terminating.cancel()
    await turns()
    assert not terminating.done()
    storage.release()
    record = await staying
    with pytest.raises(asyncio.CancelledError):
        await terminating
    assert record.obj()["phase"] == "second"
    assert record.revision == 3


async def test_a_hook_that_fails_takes_nothing_from_the_writer_or_other_hooks() -> None:
    state = await opened()
    told: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    seen: list[Event] = []

    def broken(events: list[Event]) -> None:
        raise ValueError(len(events))

    state.on_commit(broken)
    state.on_commit(seen.extend)
    await put(state, A)
    await put(state, B)
    assert names([event.record for event in seen]) == ["a", "b"]
    assert [type(context["exception"]) for context in told] == [ValueError, ValueError]


async def test_a_state_that_closes_ends_watches_finishes_writes_and_takes_no_more() -> None:
    storage = FaultyStorage(MemoryStorage())
    state = await opened(storage)
    watch = state.watch(PODS, None, state.revision)
    follower = asyncio.create_task(watch.next_batch())
    storage.hold()
    writer = asyncio.create_task(put(state, A))
    await turns()
    closing = asyncio.create_task(state.close())
    assert await follower == []
    assert watch.closed
    with pytest.raises(ApiError) as late:
        await put(state, B)
    assert late.value.code == 503
    storage.release()
    await closing
    assert (await writer).revision == 2


async def turns() -> None:
    """Let everybody run until nobody can go on."""
    for _ in range(10):
        await asyncio.sleep(0)
