"""What the port promises of watches, of whoever stands behind it."""

from __future__ import annotations

import asyncio
import random

import pytest

from build.port_objects import config, heard, told
from build.small_clusters import START_S
from shoal.client.clock import LoopClock
from shoal.client.informer import Informer
from shoal.client.kind import CONFIG_MAPS, DEPLOYMENTS
from shoal.client.port import Api, Patch, Select
from shoal.client.refusals import (
    ExpiredError,
)


async def test_a_list_of_nothing_still_says_where_to_watch_from(api: Api, home: str) -> None:
    listed = await api.list(DEPLOYMENTS, home)
    assert listed.items == []
    assert listed.version > 0


async def test_a_watch_tells_what_came_after_in_order(api: Api, home: str) -> None:
    since = (await api.list(CONFIG_MAPS, home)).version
    a = await api.create(CONFIG_MAPS, config(home, "a"))
    await api.create(CONFIG_MAPS, config(home, "b"))
    await api.patch(CONFIG_MAPS, home, "a", Patch("merge", {"data": {"x": "1"}}))
    await api.delete(CONFIG_MAPS, home, "a")
    mine = Select(labels="app")
    changes = await heard(api, CONFIG_MAPS, since, home, 4, mine)
    assert told(changes) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]
    versions = [change.version for change in changes]
    assert versions == sorted(set(versions))
    last = changes[-1].item
    assert last is not None
    assert (last.uid, last.version) == (a.uid, changes[-1].version)
    assert last.obj()["data"] == {"x": "1"}
    # One that goes on from the middle is told the rest.
    assert told(await heard(api, CONFIG_MAPS, versions[1], home, 2, mine)) == told(changes)[2:]


async def test_a_watch_hears_of_what_happens_while_it_is_open(api: Api, home: str) -> None:
    since = (await api.list(CONFIG_MAPS, home)).version
    listening = asyncio.ensure_future(heard(api, CONFIG_MAPS, since, home, 1, Select(labels="app=a")))
    await api.create(CONFIG_MAPS, config(home, "a"))
    assert told(await listening) == [("ADDED", "a")]


async def test_who_leaves_the_selection_of_a_watch_is_told_as_deleted(api: Api, home: str) -> None:
    made = await api.create(CONFIG_MAPS, config(home, "a"))
    changed = await api.patch(CONFIG_MAPS, home, "a", Patch("merge", {"metadata": {"labels": {"app": "z"}}}))
    [change] = await heard(api, CONFIG_MAPS, made.version, home, 1, Select(labels="app=a"))
    assert (change.kind, change.version) == ("DELETED", changed.version)
    assert told(await heard(api, CONFIG_MAPS, made.version, home, 1, Select(labels="app=z"))) == [("ADDED", "a")]


async def test_a_watch_from_what_is_forgotten_is_expired(api: Api, home: str) -> None:
    made = await api.create(CONFIG_MAPS, config(home, "a", x="0"))
    for at in range(170):
        await api.patch(CONFIG_MAPS, home, "a", Patch("merge", {"data": {"x": str(at)}}))
    del made
    with pytest.raises(ExpiredError):
        await heard(api, CONFIG_MAPS, 1, home, 1)


async def test_a_cache_behind_it_ends_equal_to_the_server(api: Api, home: str) -> None:
    clock = LoopClock(START_S)
    informer = Informer(api, CONFIG_MAPS, clock, random.Random(1), namespace=home)
    following = asyncio.ensure_future(informer.run())
    await informer.synced()
    for at in range(10):
        await api.create(CONFIG_MAPS, config(home, f"c-{at}"))
        await api.patch(CONFIG_MAPS, home, f"c-{at}", Patch("merge", {"data": {"x": str(at)}}))
        if at % 3 == 0:
            await api.delete(CONFIG_MAPS, home, f"c-{at}")
    there = {item.key: item.version for item in (await api.list(CONFIG_MAPS, home)).items}
    seen = asyncio.Event()
    informer.on_change(lambda *_: seen.set())
    while {item.key: item.version for item in informer} != there:
        seen.clear()
        await asyncio.wait_for(seen.wait(), 60)
    assert {item.obj()["kind"] for item in informer} == {"ConfigMap"}
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
