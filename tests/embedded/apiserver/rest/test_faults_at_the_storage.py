"""When the storage is slow, fails or is full: nothing is acknowledged, told to watchers or read that is not kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.planes import config_map, operations
from shoal.embedded.apiserver.resource import Home
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.storage.faulty import FaultyStorage
from shoal.embedded.apiserver.storage.memory import MemoryStorage

MAPS = Home("", "configmaps")


async def test_a_write_is_seen_by_nobody_before_it_is_durable(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api:
        watch = api.state.watch(MAPS, None, api.state.revision)
        storage.hold()
        writing = asyncio.ensure_future(api.create("configmaps", config_map("slow")))
        await storage.held()
        assert not writing.done()
        assert api.find("configmaps", "slow") is None
        storage.release()
        created = await writing
        events = await watch.next_batch()
        assert [event.record.revision for event in events] == [int(created["metadata"]["resourceVersion"])]


async def test_a_write_that_the_disk_has_no_room_for_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api:
        before = api.state.revision
        storage.fill()
        with pytest.raises(ApiError) as refused:
            await api.create("configmaps", config_map("full"))
        assert refused.value.code == 500
        assert "disk is full" in refused.value.message
        assert api.find("configmaps", "full") is None
        assert api.state.revision == before
        storage.heal()
        watch = api.state.watch(MAPS, None, before)
        await api.create("configmaps", config_map("full"))
        assert [event.kind for event in await watch.next_batch()] == ["ADDED"]


async def test_a_change_that_was_not_kept_leaves_the_object_as_it_was_and_can_be_tried_again(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api:
        made = await api.create("configmaps", config_map("a", key="old"))
        storage.fault = "the device is gone"
        changed = {**made, "data": {"key": "new"}}
        with pytest.raises(ApiError):
            await api.update("configmaps", changed)
        kept = api.find("configmaps", "a")
        assert kept is not None
        assert kept.obj()["data"] == {"key": "old"}
        storage.heal()
        assert (await api.update("configmaps", changed))["data"] == {"key": "new"}


async def test_a_deletion_that_was_not_kept_deletes_nothing(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api:
        await api.create("configmaps", config_map("a"))
        storage.fill()
        with pytest.raises(ApiError):
            await api.delete("configmaps", "a")
        assert api.find("configmaps", "a") is not None
        storage.heal()
        assert await api.delete("configmaps", "a")
        assert api.find("configmaps", "a") is None


async def test_a_quota_charges_nothing_for_what_was_not_kept(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api:
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "3"}}}
        watch = api.state.watch(Home("", "resourcequotas"), None, api.state.revision)
        await api.create("resourcequotas", quota)
        while not (await watch.next_batch())[-1].record.obj().get("status", {}).get("used"):
            pass
        found = api.find("resourcequotas", "q")
        assert found is not None
        used = found.obj()["status"]["used"]
        storage.fill()
        with pytest.raises(ApiError):
            await api.create("configmaps", config_map("a"))
        found = api.find("resourcequotas", "q")
        assert found is not None
        assert found.obj()["status"]["used"] == used


async def test_readiness_tells_of_a_storage_that_keeps_nothing_until_it_does_again(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with operations(tmp_path, storage) as api:
        assert api.state.health() == ""
        storage.fill()
        with pytest.raises(ApiError):
            await api.create("configmaps", config_map("a"))
        assert "disk is full" in api.state.health()
        storage.heal()
        await api.create("configmaps", config_map("a"))
        assert api.state.health() == ""
