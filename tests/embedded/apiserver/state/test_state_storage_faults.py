"""However a storage fails: its batch is over, the next one starts afresh, and health is found out when asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from build.cluster_states import opened, pod, put
from shoal.embedded.apiserver.resource import Ref
from shoal.embedded.apiserver.state.state import State
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.storage.faulty import FaultyStorage
from shoal.embedded.apiserver.storage.memory import MemoryStorage
from shoal.embedded.apiserver.storage.port import StoredChange

A, B = pod("a"), pod("b")


class OddStorage(MemoryStorage):
    """Raises what no storage should."""

    error: Exception | None = None

    async def commit(self, batch: Sequence[StoredChange]) -> None:
        if self.error is not None:
            raise self.error
        await super().commit(batch)


class UnfoldableStorage(MemoryStorage):
    """Fails when it folds, after others had time to come."""

    async def compact(self, through: int) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        raise MemoryError(through)


def complaints() -> list[object]:
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
    return told


async def test_any_other_error_of_a_storage_fails_its_batch_and_nothing_after_it() -> None:
    storage, told = OddStorage(), complaints()
    state = await opened(storage)
    before = await put(state, A)
    storage.error = MemoryError("no room")
    with pytest.raises(ApiError) as refused:
        await put(state, A, phase="lost")
    assert (refused.value.code, state.get(A)) == (500, before)
    assert "no room" in refused.value.message
    assert told == [storage.error]
    storage.error = None
    assert (await put(state, A, phase="kept")).obj()["phase"] == "kept"


async def test_a_fold_that_ends_in_any_other_error_takes_no_waiting_writer_with_it() -> None:
    told = complaints()
    state = await opened(UnfoldableStorage(), history_count=1)

    async def write(ref: Ref) -> None:
        for _ in range(150):
            await put(state, ref)

    await asyncio.gather(write(A), write(B))
    assert state.revision == 301
    assert told


async def test_what_was_being_written_is_visible_once_all_is_settled() -> None:
    storage = FaultyStorage(MemoryStorage())
    state = await opened(storage)
    await state.settled()
    storage.hold()
    first = asyncio.create_task(put(state, A))
    await storage.held()
    second = asyncio.create_task(put(state, B))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(state.settled())
    await asyncio.sleep(0)
    assert not waiting.done()
    storage.release()
    await waiting
    assert state.get(A)
    assert state.get(B)
    assert state.revision == 3
    await asyncio.gather(first, second)
    assert [len(batch) for batch in storage.batches] == [1, 1]


async def test_a_server_that_is_not_written_to_is_well_again_when_its_disk_is() -> None:
    storage = FaultyStorage(MemoryStorage())
    state = await opened(storage)
    storage.fill()
    with pytest.raises(ApiError):
        await put(state, A)
    assert "disk is full" in await health(state)
    storage.heal()
    assert await health(state) == ""
    assert (state.get(A), state.revision) == (None, 1)
    tries = len(storage.batches)
    assert await health(state) == ""
    assert len(storage.batches) == tries


async def health(state: State) -> str:
    """What asking finds out; an answer says what was known before it."""
    state.health()
    for _ in range(5):
        await asyncio.sleep(0)
    return state.health()
