"""Controllers, their caches and their queue, on a whole control plane in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.context import Context
from shoal.client.item import Item, Key
from shoal.client.kind import CONFIG_MAPS
from shoal.client.loop import Loop


@virtual
async def test_a_key_that_was_being_worked_on_is_looked_at_by_the_next_run(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        began: list[Key] = []

        async def reconcile(key: Key) -> None:
            began.append(key)
            await asyncio.Event().wait()

        loop = Loop(cluster.context("slow"), reconcile)
        loop.wake(("", "a"))
        for times in (1, 2):
            running = asyncio.ensure_future(loop.run())
            await cluster.pass_time(1)
            assert began == [("", "a")] * times
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def _counting(context: Context) -> Loop:
    """Writes into `data.seen` of every config map how often `data.said` was found changed."""

    async def reconcile(key: Key) -> float | None:
        item = context.informers.of(CONFIG_MAPS).get(*key)
        if item is None:
            return None
        obj = item.obj()
        if key[1] == "counted" and obj["data"].get("seen") != obj["data"]["said"]:
            obj["data"]["seen"] = obj["data"]["said"]
            await context.api.update(CONFIG_MAPS, obj)
        return None

    loop = Loop(context, reconcile)
    loop.follow(CONFIG_MAPS)
    return loop


@virtual
async def test_a_controller_follows_what_people_write(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [_counting]) as cluster:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "counted"}, "data": {"said": "one"}})

        async def seen() -> str | None:
            found: str | None = (await cluster.get(CONFIG_MAPS, "counted"))["data"].get("seen")
            return found

        async def is_one() -> bool:
            return await seen() == "one"

        await cluster.until(is_one)
        await cluster.patch(CONFIG_MAPS, "counted", {"data": {"said": "two"}})
        await cluster.pass_time(1)
        assert await seen() == "two"


def _naming(read: list[int], looked: list[Key]) -> Callable[[Context], Loop]:
    """Looks at what config maps name in `data.named`; every reading of one is noted by its version."""

    def make(context: Context) -> Loop:
        async def reconcile(key: Key) -> None:
            looked.append(key)

        def named(item: Item) -> list[Key]:
            read.append(item.version)
            name = (item.obj().get("data") or {}).get("named")
            return [("", name)] if name else []

        loop = Loop(context, reconcile)
        loop.follow(CONFIG_MAPS, named, only_latest=True)
        return loop

    return make


@virtual
async def test_whoever_follows_only_the_latest_reads_each_change_once_and_the_end_too(tmp_path: Path) -> None:
    read: list[int] = []
    looked: list[Key] = []
    async with small_cluster(tmp_path, [_naming(read, looked)]) as cluster:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "naming"}, "data": {"named": "a"}})
        await cluster.pass_time(1)
        read.clear()
        await cluster.patch(CONFIG_MAPS, "naming", {"data": {"named": "b"}})
        await cluster.pass_time(1)
        assert len(read) == 1
        await cluster.api.delete(CONFIG_MAPS, "default", "naming")
        await cluster.pass_time(1)
        assert len(read) == 2
        assert [name for _, name in looked] == ["a", "b", "b"]
