"""Quotas while writes are under way: what began before a quota is counted, what comes together is charged together."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.planes import Operations, config_map, operations
from shoal.embedded.apiserver.resource import Home, Obj
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.storage.faulty import FaultyStorage
from shoal.embedded.apiserver.storage.memory import MemoryStorage

QUOTAS = Home("", "resourcequotas")
MAPS = Home("", "configmaps")
_PATIENCE_S = 60


def quota(most: int, name: str = "q", **more: str) -> Obj:
    return {"metadata": {"name": name}, "spec": {"hard": {"count/configmaps": str(most), **more}}}


def used(api: Operations, name: str = "q", what: str = "count/configmaps") -> int | None:
    found = api.find("resourcequotas", name)
    assert found is not None
    amount = (found.obj().get("status") or {}).get("used", {}).get(what)
    return None if amount is None else int(amount)


async def limited(api: Operations, most: int) -> None:
    """A quota that has been counted."""
    await api.create("resourcequotas", quota(most))
    await turns()
    assert used(api) == there(api)


def there(api: Operations) -> int:
    return len(api.state.list(MAPS, "default").records)


async def turns(times: int = 60) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


async def began(*tasks: asyncio.Future[Obj]) -> None:
    await turns()
    assert not any(task.done() for task in tasks)


def creation(api: Operations, name: str) -> asyncio.Future[Obj]:
    return asyncio.ensure_future(api.create("configmaps", config_map(name)))


async def test_what_was_being_stored_when_a_quota_came_is_counted(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api, asyncio.timeout(_PATIENCE_S):
        before = there(api)
        storage.hold()
        making = asyncio.ensure_future(api.create("resourcequotas", quota(before + 3)))
        await storage.held()
        late = [creation(api, f"m{index}") for index in range(3)]
        await began(making, *late)
        storage.release_one()
        await making
        assert used(api) is None
        more = creation(api, "more")
        await began(more, *late)
        storage.release()
        await asyncio.gather(*late)
        with pytest.raises(ApiError, match=f"used: count/configmaps={before + 3}"):
            await more
        assert used(api) == there(api) == before + 3


async def test_a_quota_that_comes_while_writers_wait_is_charged_by_them(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api, asyncio.timeout(_PATIENCE_S):
        before = there(api)
        await limited(api, before + 100)
        storage.hold()
        first = creation(api, "first")
        await storage.held()
        making = asyncio.ensure_future(api.create("resourcequotas", quota(before + 3, "second")))
        waiting = [creation(api, f"m{index}") for index in range(4)]
        await began(first, making, *waiting)
        storage.release()
        done = await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.gather(first, making)
        await turns()
        refused = [one for one in done if isinstance(one, ApiError)]
        assert [(one.code, "exceeded quota: second" in one.message) for one in refused] == [(403, True)] * 2
        assert used(api) == used(api, "second") == there(api) == before + 3


async def test_creations_that_come_together_share_commits_and_writes_of_the_quota(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api, asyncio.timeout(_PATIENCE_S):
        before = there(api)
        await limited(api, before + 100)
        commits = len(storage.batches)
        await asyncio.gather(*(creation(api, f"m{index}") for index in range(64)))
        assert used(api) == there(api) == before + 64
        batches = storage.batches[commits:]
        assert len(batches) <= 3
        assert sum(change.ref.home == QUOTAS for batch in batches for change in batch) == len(batches)


async def test_of_those_that_come_together_only_as_many_pass_as_there_is_room_for(tmp_path: Path) -> None:
    async with operations(tmp_path) as api, asyncio.timeout(_PATIENCE_S):
        before = there(api)
        await limited(api, before + 5)
        done = await asyncio.gather(*(creation(api, f"m{index}") for index in range(9)), return_exceptions=True)
        refused = [one.message for one in done if isinstance(one, ApiError)]
        all_of_it = f"count/configmaps={before + 5}"
        words = f"requested: count/configmaps=1, used: {all_of_it}, limited: {all_of_it}"
        assert [words in message for message in refused] == [True] * 4
        assert used(api) == there(api) == before + 5


async def test_a_batch_that_is_not_kept_charges_nothing_and_refuses_nobody_for_it(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api, asyncio.timeout(_PATIENCE_S):
        before = there(api)
        await limited(api, before + 3)
        storage.fill()
        done = await asyncio.gather(*(creation(api, f"m{index}") for index in range(6)), return_exceptions=True)
        assert [one.code for one in done if isinstance(one, ApiError)] == [500] * 6
        assert used(api) == there(api) == before
        storage.heal()
        done = await asyncio.gather(*(creation(api, f"m{index}") for index in range(6)), return_exceptions=True)
        assert len([one for one in done if isinstance(one, ApiError)]) == 3
        assert used(api) == there(api) == before + 3


async def test_what_goes_makes_room_for_those_that_come_with_it(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api, asyncio.timeout(_PATIENCE_S):
        before = there(api)
        await limited(api, before + 1)
        await api.create("configmaps", config_map("old"))
        going = asyncio.ensure_future(api.delete("configmaps", "old"))
        coming = creation(api, "new")
        await asyncio.gather(going, coming)
        assert used(api) == there(api) == before + 1


async def test_a_writer_that_leaves_the_line_takes_nobody_with_it(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api, asyncio.timeout(_PATIENCE_S):
        before = there(api)
        await limited(api, before + 9)
        storage.hold()
        first, terminating, staying = (creation(api, name) for name in ("first", "terminating", "staying"))
        await began(first, terminating, staying)
        terminating.cancel()
        first.cancel()
        storage.release()
        assert (await staying)["metadata"]["name"] == "staying"
        await asyncio.gather(first, terminating, return_exceptions=True)
        assert used(api) == there(api)


async def test_two_quotas_made_together_count_each_other(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api, asyncio.timeout(_PATIENCE_S):
        storage.hold()
        made = [
            asyncio.ensure_future(api.create("resourcequotas", quota(50, name, **{"count/resourcequotas": "9"})))
            for name in "abc"
        ]
        await began(*made)
        storage.release()
        await asyncio.gather(*made)
        await turns()
        assert [used(api, name, "count/resourcequotas") for name in "abc"] == [3, 3, 3]


async def test_a_count_that_could_not_be_stored_is_tried_again_with_the_next_write_of_anything(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api, asyncio.timeout(_PATIENCE_S):
        storage.hold()
        making = asyncio.ensure_future(api.create("resourcequotas", quota(50)))
        await storage.held()
        storage.release_one()
        await making
        await storage.held()
        storage.fill()
        storage.release()
        await turns()
        assert used(api) is None
        storage.heal()
        await api.create("namespaces", {"metadata": {"name": "elsewhere"}})
        await turns()
        assert used(api) == there(api)
