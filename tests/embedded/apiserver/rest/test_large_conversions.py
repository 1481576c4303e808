"""Objects of another version than the stored one: what is large is converted outside of the event loop, in turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec
import pytest

from build.custom_definitions import crontab, definition, version
from build.planes import ADMIN, Operations, operations
from shoal.client.kind import Kind
from shoal.embedded.apiserver.calls import Actor, Call, Verb
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.apiserver.large_work import LargeWork, Turn
from shoal.embedded.apiserver.rest import codec
from shoal.embedded.apiserver.rest.options import ReadOptions
from shoal.embedded.apiserver.rest.watching import Stream
from shoal.embedded.apiserver.state.record import Record

P = ParamSpec("P")
R = TypeVar("R")
Obj = dict[str, Any]
GROUP = "stable.example.com"
_PATIENCE_S = 60


class Recorded(LargeWork):
    """Whose pieces of work ran outside of the event loop, in their order; each takes a second."""

    def __init__(self) -> None:
        readings = count()
        super().__init__(lambda: float(next(readings)))
        self.users: list[str] = []

    async def run(self, turn: Turn, work: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
        def recorded() -> R:
            self.users.append(turn.user)
            return work(*args, **more)

        return await super().run(turn, recorded)


async def with_crontabs(ops: Operations, number: int, length: int) -> list[Record]:
    """Stored as v1, with a field that v2 does not have."""
    watch = ops.state.watch(
        ops.resource("customresourcedefinitions", "apiextensions.k8s.io").home, None, ops.state.revision
    )
    crd = definition(
        version(spec={"properties": {"text": {"type": "string"}, "old": {"type": "string"}}}),
        version("v2", spec={"properties": {"text": {"type": "string"}}}),
    )
    await ops.create("customresourcedefinitions", crd, "apiextensions.k8s.io")
    async with asyncio.timeout(_PATIENCE_S):
        while ops.context.catalog.find(GROUP, "v2", "crontabs") is None:
            await watch.next_batch()
    watch.close()
    for index in range(number):
        obj = crontab({"text": "x" * length, "old": "o"}, metadata={"name": f"n{index:03}"})
        await ops.create("crontabs", obj, GROUP)
    found = list(ops.state.list(ops.resource("crontabs", GROUP).home, None).records)
    assert len(found) == number
    ops.context.large = Recorded()
    return found


def asked(ops: Operations, verb: Verb, user: str = "admin") -> Call:
    return Call(verb, ops.resource("crontabs", GROUP, "v2"), Actor(user, ADMIN.groups), "default")


def pieces(ops: Operations) -> list[str]:
    large = ops.context.large
    assert isinstance(large, Recorded)
    return large.users


def is_converted(obj: Obj) -> bool:
    return bool(obj["apiVersion"] == f"{GROUP}/v2" and obj["spec"].keys() == {"text"})


async def test_a_small_object_is_converted_at_once(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        (record,) = await with_crontabs(ops, 1, 10)
        assert is_converted(await codec.shown(ops.context, asked(ops, "get"), record))
        assert pieces(ops) == []


async def test_a_large_object_is_converted_outside_of_the_event_loop(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        (record,) = await with_crontabs(ops, 1, 100_000)
        assert is_converted(await codec.shown(ops.context, asked(ops, "get"), record))
        assert is_converted(msgspec.json.decode(await codec.line(ops.context, asked(ops, "get"), record)))
        assert len(pieces(ops)) == 2


async def test_a_long_list_of_small_objects_is_converted_in_batches_and_in_its_order(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        records = await with_crontabs(ops, 60, 20_000)
        objs = await codec.all_shown(ops.context, asked(ops, "list"), records)
        assert all(is_converted(obj) for obj in objs)
        assert [obj["metadata"]["name"] for obj in objs] == [record.ref.name for record in records]
        assert len(pieces(ops)) >= 4
        lines = await codec.lines(ops.context, asked(ops, "list"), records)
        assert [msgspec.json.decode(line) for line in lines] == objs


async def test_long_lists_of_two_users_take_turns(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        records = await with_crontabs(ops, 60, 20_000)
        await asyncio.gather(
            *(codec.all_shown(ops.context, asked(ops, "list", "ada"), records) for _ in range(3)),
            codec.all_shown(ops.context, asked(ops, "list", "bob"), records),
        )
        users = pieces(ops)
        assert users.count("ada") == 3 * users.count("bob")
        last = max(index for index, user in enumerate(users) if user == "bob")
        assert last <= 2 * users.count("bob")


async def test_the_beginning_of_a_watch_is_converted_outside_of_the_event_loop(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        await with_crontabs(ops, 10, 20_000)
        stream = Stream(ops.context, asked(ops, "watch"), ReadOptions(is_watch=True), None, 60.0)
        names: list[str] = []
        async for chunk in stream.lines():
            for line in chunk.splitlines():
                event = msgspec.json.decode(line)
                assert is_converted(event["object"])
                names.append(event["object"]["metadata"]["name"])
            if len(names) == 10:
                break
        stream.close()
        assert names == sorted(names)
        assert len(pieces(ops)) >= 3


async def test_a_client_in_the_same_process_takes_its_turn_too(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        await with_crontabs(ops, 10, 20_000)
        api = InsideApi(ops.plane, ADMIN, "test")
        listed = await api.list(Kind(GROUP, "v2", "crontabs", "CronTab"))
        assert all(is_converted(item.obj()) for item in listed.items)
        assert pieces(ops)


@pytest.mark.parametrize("length", [10, 100_000])
async def test_what_is_written_in_another_version_is_stored_in_the_stored_one(tmp_path: Path, length: int) -> None:
    async with operations(tmp_path) as ops:
        await with_crontabs(ops, 0, 0)
        call = asked(ops, "update")
        call.size = length
        obj = crontab({"text": "x" * length}, apiVersion=f"{GROUP}/v2")
        kept = await codec.checked(ops.context, call, obj)
        assert kept["apiVersion"] == f"{GROUP}/v1"
        assert bool(pieces(ops)) == (length > 10)
