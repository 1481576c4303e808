"""One suite for every storage: what was committed is found again, in order, whatever was folded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from build.cluster_states import change, pod
from shoal.embedded.apiserver.resource import Ref
from shoal.embedded.apiserver.storage.memory import MemoryStorage
from shoal.embedded.apiserver.storage.port import Storage
from shoal.embedded.apiserver.storage.sqlite import SqliteStorage

Found = tuple[int, int, dict[Ref, tuple[int, bytes | None]], list[tuple[Ref, int, bytes | None]]]


class Bench:
    """A storage that can be closed and opened again."""

    def __init__(self, make: Callable[[], Storage], *, is_one: bool) -> None:
        self._make = make
        self._is_one = is_one
        self.storage = make()
        self.storage.load()

    async def found(self) -> Found:
        if not self._is_one:
            await self.storage.close()
            self.storage = self._make()
        loaded = self.storage.load()
        objects = {one.ref: (one.revision, one.data) for one in loaded.objects}
        history = [(one.ref, one.revision, one.data) for one in loaded.history]
        return loaded.revision, loaded.compacted_revision, objects, history


@pytest.fixture(params=["memory", "sqlite"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    if request.param == "sqlite":
        made = Bench(lambda: SqliteStorage(tmp_path), is_one=False)
    else:
        made = Bench(MemoryStorage, is_one=True)
    yield made
    await made.storage.close()


A, B = pod("a"), pod("b")


async def test_a_new_storage_holds_nothing(bench: Bench) -> None:
    assert await bench.found() == (0, 0, {}, [])


async def test_an_empty_batch_leaves_everything_as_it_was(bench: Bench) -> None:
    await bench.storage.commit([])
    await bench.storage.commit([change(A, 2, b"1")])
    await bench.storage.commit([])
    assert await bench.found() == (2, 0, {}, [(A, 2, b"1")])


async def test_changes_are_found_again_in_the_order_of_their_revisions(bench: Bench) -> None:
    await bench.storage.commit([change(A, 2, b"1"), change(B, 3, b"2")])
    await bench.storage.commit([change(A, 4, None)])
    assert await bench.found() == (4, 0, {}, [(A, 2, b"1"), (B, 3, b"2"), (A, 4, None)])


async def test_folded_changes_become_the_objects_they_led_to(bench: Bench) -> None:
    await bench.storage.commit([change(A, 2, b"1"), change(B, 3, b"2"), change(A, 4, b"3"), change(B, 5, b"4")])
    await bench.storage.compact(4)
    assert await bench.found() == (5, 4, {A: (4, b"3"), B: (3, b"2")}, [(B, 5, b"4")])


async def test_a_folded_deletion_leaves_nothing_but_its_revision(bench: Bench) -> None:
    await bench.storage.commit([change(A, 2, b"1"), change(A, 3, None)])
    await bench.storage.compact(3)
    assert await bench.found() == (3, 3, {}, [])


async def test_an_object_that_was_folded_once_is_replaced_and_removed_by_later_folds(bench: Bench) -> None:
    await bench.storage.commit([change(A, 2, b"1"), change(B, 3, b"1")])
    await bench.storage.compact(3)
    await bench.storage.commit([change(A, 4, b"2"), change(B, 5, None)])
    await bench.storage.compact(5)
    assert await bench.found() == (5, 5, {A: (4, b"2")}, [])


async def test_an_object_that_came_back_is_not_taken_for_deleted(bench: Bench) -> None:
    await bench.storage.commit([change(A, 2, b"1"), change(A, 3, None), change(A, 4, b"2")])
    await bench.storage.compact(4)
    assert await bench.found() == (4, 4, {A: (4, b"2")}, [])


async def test_folding_twice_is_folding_once(bench: Bench) -> None:
    await bench.storage.commit([change(A, 2, b"1"), change(B, 3, b"1")])
    await bench.storage.compact(2)
    await bench.storage.compact(2)
    assert await bench.found() == (3, 2, {A: (2, b"1")}, [(B, 3, b"1")])


async def test_a_batch_may_be_larger_than_one_statement(bench: Bench) -> None:
    await bench.storage.commit([change(pod(f"p{i}"), i + 2) for i in range(1_300)])
    revision, _, _, history = await bench.found()
    assert revision == 1_301
    assert [one[1] for one in history] == list(range(2, 1_302))


async def test_names_with_colons_quotes_and_other_alphabets_come_back_as_they_were(bench: Bench) -> None:
    odd = [pod("system:node:x", ""), pod("it's"), pod("läufer")]
    await bench.storage.commit([change(ref, i + 2) for i, ref in enumerate(odd)])
    _, _, _, history = await bench.found()
    assert [one[0] for one in history] == odd
