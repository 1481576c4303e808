"""Caches that follow a server: equal to it in the end, never a step back on the way, whatever the weather."""

from __future__ import annotations

import asyncio
import logging
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.scripted_api import ScriptedApi
from build.small_clusters import START_S, small_cluster
from build.stormy_api import STORM, StormyApi
from build.virtual_time import in_virtual_time, virtual
from shoal.client.clock import LoopClock
from shoal.client.informer import Informer
from shoal.client.informers import Informers
from shoal.client.item import Item, Listed, WatchEvent
from shoal.client.kind import CONFIG_MAPS, NODES, PODS, Kind
from shoal.client.port import EVERYTHING, Batches, Deletion, Select
from shoal.client.refusals import NO_ANSWER, AlreadyExistsError, BusyError, ForbiddenError, NotFoundError
from shoal.client.write_through import WriteThroughApi
from shoal.units.errors import BugError, ConflictError, TemporaryError, UserError

NAMES = ("a", "b", "c")


class Diary:
    """Watches a cache by its handler, and notes when it steps back: what a handler raises would only be logged."""

    def __init__(self, informer: Informer) -> None:
        self.items: dict[tuple[str, str], Item] = {}
        self.newest: dict[str, int] = {}
        self.ended: set[str] = set()
        self.faults: list[str] = []
        informer.on_change(self.note)

    def note(self, before: Item | None, after: Item | None) -> None:
        known = after or before
        assert known is not None
        if self.items.get(known.key) is not before:
            self.faults.append(f"{known.name}: a difference was told twice or not at all")
        if after is None:
            del self.items[known.key]
            self.ended.add(known.uid)
            return
        if after.uid in self.ended:
            self.faults.append(f"{known.name}: what has ended came back")
        if after.version <= self.newest.get(after.uid, 0):
            self.faults.append(f"{known.name}: an older version came after a newer one")
        self.newest[after.uid] = after.version
        self.items[after.key] = after


def values(item: Item) -> tuple[str, ...]:
    return (item.obj()["data"]["x"],)


def version_of(informer: Informer, name: str) -> int:
    found = informer.get("default", name)
    assert found is not None
    return found.version


Step = tuple[str, str, float]
steps = st.lists(
    st.tuples(
        st.sampled_from(["create", "change", "delete", "own-create", "own-change", "own-delete"]),
        st.sampled_from(NAMES),
        st.sampled_from([0.0, 0.01, 0.5, 3.0]),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(history=steps, seed=st.integers(0, 1_000_000))
def test_a_cache_in_a_storm_never_steps_back_and_ends_equal_to_the_server(history: list[Step], seed: int) -> None:
    in_virtual_time(_storm(history, seed))


async def _storm(history: list[Step], seed: int) -> None:
    clock, draw = LoopClock(START_S), random.Random(seed)
    server = ScriptedApi()
    storm = StormyApi(server, clock, draw, STORM)
    informers = Informers(storm, clock, draw)
    informer = informers.of(CONFIG_MAPS)
    index = informer.index("x", values)
    diary = Diary(informer)
    following = asyncio.ensure_future(informers.run())
    own = WriteThroughApi(storm, informers)
    writes = []
    for what, name, pause_s in history:
        api = own if what.startswith("own-") else server
        # Not waited for: answers come late, in any order.
        writes.append(asyncio.ensure_future(_write(api, what.removeprefix("own-"), name, draw)))
        await clock.sleep(pause_s)
    await asyncio.gather(*writes)
    storm.calm()
    await clock.sleep(120)
    there = {item.key: item for item in (await server.list(CONFIG_MAPS)).items}
    assert {item.key: item.version for item in informer} == {key: item.version for key, item in there.items()}
    assert {key: item.version for key, item in diary.items.items()} == {key: one.version for key, one in there.items()}
    by_value = {value: {item.key for item in index[value]} for value in index.values()}
    wanted: dict[str, set[tuple[str, str]]] = {}
    for item in there.values():
        wanted.setdefault(values(item)[0], set()).add(item.key)
    assert by_value == wanted
    assert diary.faults == []
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def _write(api: ScriptedApi | WriteThroughApi, what: str, name: str, draw: random.Random) -> None:
    data = {"x": draw.choice("12")}
    try:
        if what == "create":
            await api.create(CONFIG_MAPS, {"metadata": {"namespace": "n", "name": name}, "data": data})
            return
        found = await api.get(CONFIG_MAPS, "n", name)
        if what == "delete":
            await api.delete(CONFIG_MAPS, "n", name, Deletion(uid=found.uid))
        else:
            await api.update(CONFIG_MAPS, {**found.obj(), "data": data})
    except (ConflictError, TemporaryError, NotFoundError, AlreadyExistsError):
        pass


@virtual
async def test_own_writes_are_in_the_cache_at_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        informer = cluster.informers.of(CONFIG_MAPS)
        await informer.synced()
        own = WriteThroughApi(cluster.api, cluster.informers)
        made = await own.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "default"}, "data": {"x": "1"}})
        assert version_of(informer, "a") == made.version
        changed = await own.update(CONFIG_MAPS, {**made.obj(), "data": {"x": "2"}})
        assert version_of(informer, "a") == changed.version
        assert await own.delete(CONFIG_MAPS, "default", "a", Deletion(uid=made.uid)) is None
        assert informer.get("default", "a") is None


@virtual
async def test_an_answer_that_comes_after_the_end_of_its_object_does_not_bring_it_back() -> None:
    server, clock = ScriptedApi(), LoopClock(START_S)
    informer = Informer(server, CONFIG_MAPS, clock, random.Random(1))
    following = asyncio.ensure_future(informer.run())
    await informer.synced()
    made = await server.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "n"}})
    await server.delete(CONFIG_MAPS, "n", "a")
    await clock.sleep(1)
    informer.learn(made)
    assert informer.get("n", "a") is None
    following.cancel()


@virtual
async def test_what_was_learned_while_a_list_was_on_its_way_is_newer_than_the_list() -> None:
    class Slow(ScriptedApi):
        async def list(self, *asked: Any) -> Listed:
            listed = await super().list(*asked)
            await clock.sleep(2)
            return listed

    clock = LoopClock(START_S)
    server = Slow()
    informer = Informer(server, CONFIG_MAPS, clock, random.Random(1))
    diary = Diary(informer)
    following = asyncio.ensure_future(informer.run())
    await clock.sleep(1)
    made = await server.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "n"}})
    informer.learn(made)
    await informer.synced()
    assert informer.get("n", "a") is made
    assert (diary.ended, diary.faults) == (set(), [])
    following.cancel()


@virtual
async def test_a_watch_that_broke_goes_on_from_where_it_was() -> None:
    server, clock = ScriptedApi(), LoopClock(START_S)
    informer = Informer(server, CONFIG_MAPS, clock, random.Random(1))
    following = asyncio.ensure_future(informer.run())
    await informer.synced()
    made = await server.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "n"}})
    await clock.sleep(1)
    server.break_watches(BusyError("cut"))
    await clock.sleep(10)
    assert server.watched_from == [0, made.version]
    assert server.lists == 1
    following.cancel()


@virtual
async def test_a_server_that_was_started_anew_is_believed() -> None:
    server, clock = ScriptedApi(), LoopClock(START_S)
    informer = Informer(server, CONFIG_MAPS, clock, random.Random(1))
    following = asyncio.ensure_future(informer.run())
    await informer.synced()
    for name in NAMES:
        await server.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "n"}})
    await clock.sleep(1)
    server.start_anew()
    made = await server.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "n"}})
    server.expire()
    await clock.sleep(60)
    assert {item.key: item.uid for item in informer} == {("n", "a"): made.uid}
    following.cancel()


@virtual
async def test_a_server_that_is_loading_a_kind_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server, clock = ScriptedApi(), LoopClock(START_S)
    server.watches_end_at_once = True
    server.ends_with = BusyError("storage is (re)initializing", 1.0, code=429)
    following = asyncio.ensure_future(Informer(server, CONFIG_MAPS, clock, random.Random(1)).run())
    await clock.sleep(60)
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage().startswith("the API server is loading configmaps: ")
    following.cancel()


@virtual
async def test_a_refusal_is_told_when_it_is_news_and_once_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    server, clock = ScriptedApi(), LoopClock(START_S)
    server.watches_end_at_once = True
    server.ends_with = ForbiddenError("not you")
    informer = Informer(server, CONFIG_MAPS, clock, random.Random(1))
    told: list[int] = []

    async def passes(seconds: float) -> None:
        await clock.sleep(seconds)
        told.append(sum("configmaps cannot be followed: " in one.message for one in caplog.records))

    following = asyncio.ensure_future(informer.run())
    await passes(600)
    await passes(3600)
    server.ends_with = ForbiddenError("nor you")
    await passes(600)
    # It is allowed for a while, and then no more.
    server.watches_end_at_once, server.ends_with = False, None
    await clock.sleep(60)
    await server.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "n"}})
    await clock.sleep(60)
    server.watches_end_at_once = True
    server.break_watches(ForbiddenError("nor you"))
    await passes(600)
    assert told == [1, 2, 3, 4]
    following.cancel()


@virtual
async def test_an_outage_is_reported_at_growing_intervals_for_all_followers_together(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, clock = ScriptedApi(), LoopClock(START_S)
    informers = Informers(server, clock, random.Random(1))
    for kind in (CONFIG_MAPS, PODS, NODES):
        informers.of(kind)
    following = asyncio.ensure_future(informers.run())
    await informers.synced()
    for _ in range(2):
        server.watches_end_at_once, server.ends_with = True, BusyError("no answer from x: refused", reason=NO_ANSWER)
        server.break_watches(server.ends_with)
        await clock.sleep(600)
        assert [re.sub(r"\d+", "N", one.message) for one in caplog.records] == [
            "no answer from x: refused; retrying until it answers",
            *["no answer from x: refused; retrying for N min until it answers"] * 3,
        ]
        assert [int(one.message.split()[-5]) for one in caplog.records[1:]] == [1, 3, 7]
        server.watches_end_at_once, server.ends_with = False, None
        await clock.sleep(60)
        await server.create(CONFIG_MAPS, {"metadata": {"name": f"a{clock.seconds()}", "namespace": "n"}})
        await clock.sleep(60)
        assert [one.message for one in caplog.records][4:] == ["the server answers again"]
        caplog.clear()
    following.cancel()


@virtual
async def test_a_refusal_that_was_explained_is_not_told_again(caplog: pytest.LogCaptureFixture) -> None:
    server, clock = ScriptedApi(), LoopClock(START_S)
    refusal = ForbiddenError('it is forbidden: User "ann" cannot watch resource "configmaps" in API group ""')
    refusal.is_reported = True
    server.watches_end_at_once, server.ends_with = True, refusal
    following = asyncio.ensure_future(Informer(server, CONFIG_MAPS, clock, random.Random(1)).run())
    await clock.sleep(600)
    assert not caplog.records
    following.cancel()


@virtual
async def test_one_who_is_busy_is_told_once_and_not_at_each_try(caplog: pytest.LogCaptureFixture) -> None:
    server, clock = ScriptedApi(), LoopClock(START_S)
    server.watches_end_at_once, server.ends_with = True, BusyError("too many requests", code=429)
    following = asyncio.ensure_future(Informer(server, CONFIG_MAPS, clock, random.Random(1)).run())
    await clock.sleep(600)
    assert len(caplog.records) == 1
    following.cancel()


@pytest.mark.parametrize(
    "fault", [None, BusyError("busy"), ForbiddenError("not you"), UserError("no certificate"), BugError("oh")]
)
def test_a_server_that_ends_every_watch_is_not_asked_all_the_time(fault: Exception | None) -> None:
    async def run() -> None:
        server, clock = ScriptedApi(), LoopClock(START_S)
        server.watches_end_at_once = True
        server.ends_with = fault
        informer = Informer(server, CONFIG_MAPS, clock, random.Random(1))
        following = asyncio.ensure_future(informer.run())
        await clock.sleep(600)
        assert 10 < len(server.watched_from) < 60
        following.cancel()

    in_virtual_time(run())


@virtual
async def test_a_quiet_watch_that_lasted_is_renewed_without_ever_longer_waits() -> None:
    server, clock = ScriptedApi(), LoopClock(START_S)
    informer = Informer(server, CONFIG_MAPS, clock, random.Random(1))
    following = asyncio.ensure_future(informer.run())
    await informer.synced()
    for _ in range(50):
        await clock.sleep(300)
        server.break_watches(None)
    await clock.sleep(1)
    assert len(server.watched_from) == 51
    following.cancel()


@virtual
async def test_a_handler_that_fails_keeps_nobody_from_going_on(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        informer = cluster.informers.of(CONFIG_MAPS)

        def fails(before: Item | None, after: Item | None) -> None:
            raise ValueError("a bug")

        seen: list[str] = []
        informer.on_change(fails)
        informer.on_change(lambda _, after: seen.append(after.name) if after else None)
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
        await cluster.pass_time(1)
        assert "a" in seen


@virtual
async def test_an_object_that_an_index_cannot_read_keeps_nobody_from_going_on(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        informer = cluster.informers.of(CONFIG_MAPS)
        index = informer.index("x", values)
        for name, data in (("good", {"x": "1"}), ("turns", {"x": "1"}), ("bad", {}), ("later", {"x": "1"})):
            await cluster.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": data})
            await cluster.pass_time(1)
        await cluster.patch(CONFIG_MAPS, "turns", {"data": {"x": None}})
        await cluster.pass_time(1)
        assert {item.name for item in index["1"]} == {"good", "later"}
        assert informer.get("default", "bad") is not None


@virtual
async def test_a_kind_asked_for_later_is_followed_from_then_on(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.pass_time(1)
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
        await cluster.informers.synced([CONFIG_MAPS])
        assert cluster.informers.of(CONFIG_MAPS).get("default", "a") is not None
        assert cluster.informers.of(CONFIG_MAPS) is cluster.informers.known(CONFIG_MAPS)


@virtual
async def test_a_server_that_is_full_is_left_alone_for_as_long_as_it_says() -> None:
    server = ScriptedApi()
    server.watches_end_at_once, server.ends_with = True, BusyError("too many", 45.0, code=429)
    informer = Informer(server, CONFIG_MAPS, LoopClock(START_S), random.Random(1))
    following = asyncio.ensure_future(informer.run())
    await asyncio.sleep(44)
    assert len(server.watched_from) == 1
    await asyncio.sleep(45)
    assert len(server.watched_from) == 2
    assert server.lists == 1
    following.cancel()


@virtual
async def test_a_bookmark_moves_where_a_broken_watch_goes_on_from() -> None:
    class Marking(ScriptedApi):
        async def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
            self.watched_from.append(since)
            yield [WatchEvent("BOOKMARK", None, since + 100)]
            await asyncio.sleep(1)

    server = Marking()
    informer = Informer(server, CONFIG_MAPS, LoopClock(START_S), random.Random(1))
    following = asyncio.ensure_future(informer.run())
    while len(server.watched_from) < 3:  # noqa: ASYNC110 - there is nothing else to wait for
        await asyncio.sleep(0.1)
    following.cancel()
    assert server.watched_from[:3] == [0, 100, 200]
    assert server.lists == 1


@virtual
async def test_a_first_list_of_thousands_lets_others_go_on_and_a_later_one_is_taken_whole() -> None:
    """Who relies on a cache never sees it between two lists."""
    server = ScriptedApi()
    for number in range(2000):
        await server.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": f"c-{number}"}})
    informer = Informer(server, CONFIG_MAPS, LoopClock(START_S), random.Random(1))
    following = asyncio.ensure_future(informer.run())
    sizes: list[int] = []
    while not informer.is_synced:
        sizes.append(len(informer))
        await asyncio.sleep(0)
    assert len({size for size in sizes if 0 < size < 2000}) >= 5
    server.start_anew()
    for number in range(1000):
        await server.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": f"d-{number}"}})
    server.expire()
    sizes.clear()
    while len(informer) != 1000:
        sizes.append(len(informer))
        await asyncio.sleep(0.001)
    assert set(sizes) == {2000}
    following.cancel()
