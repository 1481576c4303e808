"""A state that is opened again is the one that was closed, history included."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.cluster_states import PODS, body, change, drop, everything, labels_and_phase, names, opened, pod, put
from shoal.embedded.apiserver.resource import Ref
from shoal.embedded.apiserver.state.record import Obj, Write
from shoal.embedded.apiserver.state.state import State
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.storage.faulty import FaultyStorage
from shoal.embedded.apiserver.storage.memory import MemoryStorage
from shoal.embedded.apiserver.storage.sqlite import SqliteStorage


async def test_objects_revisions_and_history_are_there_after_a_restart(tmp_path: Path) -> None:
    state = await opened(SqliteStorage(tmp_path))
    first = await put(state, pod("a"), phase="Pending")
    await put(state, pod("b"))
    await put(state, pod("a"), phase="Running")
    await drop(state, pod("b"))
    before = state.list(PODS)
    told = await everything(state.watch(PODS, None, first.revision))
    await state.close()
    again = await opened(SqliteStorage(tmp_path))
    after = again.list(PODS)
    assert (after.revision, [one.data for one in after.records]) == (
        before.revision,
        [one.data for one in before.records],
    )
    replayed = await everything(again.watch(PODS, None, first.revision))
    assert [event.line for event in replayed] == [event.line for event in told]
    assert [event.before and event.before.data for event in replayed] == [
        event.before and event.before.data for event in told
    ]
    assert (await put(again, pod("c"))).revision == before.revision + 1
    await again.close()


async def test_labels_and_fields_of_resumed_objects_are_found_when_asked_for_and_only_once() -> None:
    storage = MemoryStorage()
    state = await opened(storage)
    ref = pod("a")
    obj = body(ref, phase="Running")
    obj["metadata"]["labels"] = {"app": "web"}
    await state.commit([Write(ref, obj, None, "uid-a", {"app": "web"}, {"status.phase": "Running"})])
    asked: list[Ref] = []

    def describe(ref: Ref, obj: Obj) -> object:
        asked.append(ref)
        return labels_and_phase(ref, obj)

    again = await State.open(storage, describe=describe, clock=lambda: 0.0)  # type: ignore[arg-type]
    record = again.get(ref)
    assert record is not None
    assert not asked
    assert (record.uid, record.labels, record.fields) == ("uid-a", {"app": "web"}, {"status.phase": "Running"})
    assert asked == [ref]


async def test_no_revision_is_given_twice_though_its_object_left_no_trace() -> None:
    storage = MemoryStorage()
    await storage.commit([change(pod("ghost"), 9, None)])
    state = await opened(storage)
    assert state.revision == 9
    assert (await put(state, pod("a"))).revision == 10


async def test_limits_hold_for_what_is_loaded_too() -> None:
    storage = MemoryStorage()
    state = await opened(storage)
    for i in range(600):
        await put(state, pod(f"p{i % 5}"))
    again = await opened(storage, history_count=100)
    assert 1 < state.revision - again.oldest <= 256
    with pytest.raises(ApiError):
        again.watch(PODS, None, 2)
    assert len(again.list(PODS).records) == 5


async def test_old_changes_are_folded_while_the_server_works_and_nothing_is_lost(tmp_path: Path) -> None:
    state = await opened(SqliteStorage(tmp_path), history_count=10)
    for i in range(2_500):
        if i % 10 == 9:
            await drop(state, pod(f"p{i % 20 - 1}"))
        else:
            await put(state, pod(f"p{i % 20}"), turn=i)
    expected = [record.data for record in state.list(PODS).records]
    revision = state.revision
    await state.close()
    again = await opened(SqliteStorage(tmp_path))
    assert again.oldest >= 2_000
    assert [record.data for record in again.list(PODS).records] == expected
    assert again.revision == revision
    await again.close()


async def test_a_fold_that_fails_costs_nothing_but_room() -> None:
    inner = MemoryStorage()
    storage = FaultyStorage(inner)
    state = await opened(storage, history_count=10)
    state.on_commit(lambda _: storage.fill())
    for i in range(500):
        storage.heal()
        await put(state, pod(f"p{i % 5}"))
    assert (inner.load().compacted_revision, state.oldest) == (0, 491)
    again = await opened(inner)
    assert names(again.list(PODS).records) == names(state.list(PODS).records)
    assert again.revision == state.revision
