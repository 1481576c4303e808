"""Quotas that count each other and themselves are locked in one step: whoever writes them never waits for ever."""

from __future__ import annotations

import asyncio
from pathlib import Path

from build.planes import Operations, operations
from shoal.embedded.apiserver.resource import Home

QUOTAS = Home("", "resourcequotas")
_PATIENCE_S = 60


async def made(api: Operations, *names: str) -> None:
    """Quotas that count quotas, once they have been counted."""
    hard = {"resourcequotas": "10", "count/resourcequotas": "10", "count/configmaps": "5"}
    watch = api.state.watch(QUOTAS, None, api.state.revision)
    for name in names:
        await api.create("resourcequotas", {"metadata": {"name": name}, "spec": {"hard": hard}})
    counted: set[str] = set()
    while counted != set(names):
        events = await watch.next_batch()
        counted |= {event.record.ref.name for event in events if event.record.obj().get("status", {}).get("used")}


async def test_a_quota_that_counts_itself_can_be_deleted(tmp_path: Path) -> None:
    async with operations(tmp_path) as api, asyncio.timeout(_PATIENCE_S):
        await made(api, "a")
        assert await api.delete("resourcequotas", "a")
        assert api.find("resourcequotas", "a") is None


async def test_quotas_that_count_each_other_can_be_deleted_at_the_same_time(tmp_path: Path) -> None:
    async with operations(tmp_path) as api, asyncio.timeout(_PATIENCE_S):
        await made(api, "a", "b", "c")
        gone = await asyncio.gather(*(api.delete("resourcequotas", name) for name in "abc"))
        assert all(gone)


async def test_a_deleted_quota_is_given_back_to_those_that_count_it(tmp_path: Path) -> None:
    async with operations(tmp_path) as api, asyncio.timeout(_PATIENCE_S):
        await made(api, "a", "b")
        await api.delete("resourcequotas", "b")
        left = api.find("resourcequotas", "a")
        assert left is not None
        assert left.obj()["status"]["used"]["count/resourcequotas"] == "1"


async def test_quotas_change_while_what_they_count_comes_and_goes(tmp_path: Path) -> None:
    async with operations(tmp_path) as api, asyncio.timeout(_PATIENCE_S):
        await made(api, "a", "b")

        async def change(name: str) -> None:
            for size in range(5, 15):
                found = api.find("resourcequotas", name)
                assert found is not None
                quota = found.obj()
                del quota["metadata"]["resourceVersion"]
                quota["spec"]["hard"]["count/configmaps"] = str(size)
                await api.update("resourcequotas", quota)

        async def come_and_go(name: str) -> None:
            for _ in range(10):
                await api.create("configmaps", {"metadata": {"name": name}})
                await api.delete("configmaps", name)

        await asyncio.gather(change("a"), change("b"), *(come_and_go(f"m{index}") for index in range(4)))
        left = [found.obj() for name in "ab" if (found := api.find("resourcequotas", name)) is not None]
        assert [one["spec"]["hard"]["count/configmaps"] for one in left] == ["14", "14"]
        # What there is from the start: the authority's certificate.
        assert [one["status"]["used"]["count/configmaps"] for one in left] == ["1", "1"]
