"""Large objects are written as small ones are, only outside of the event loop; and they have a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from build.planes import Operations, config_map, operations
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.large_work import LargeWork, Turn
from shoal.embedded.apiserver.resource import Ref
from shoal.embedded.apiserver.rest.addresses import ALLOCATION
from shoal.embedded.apiserver.rest.patching import patch
from shoal.embedded.apiserver.status import ApiError

P = ParamSpec("P")
R = TypeVar("R")
LARGE = {f"k{number}": "v" * 20 for number in range(2_000)}


class ChunkedAnswer:
    """Counts the pieces of work that were done outside of the event loop."""

    def __init__(self, ops: Operations) -> None:
        self.readings = 0
        ops.context.large = LargeWork(self)

    def __call__(self) -> float:
        self.readings += 1
        return 0.0

    @property
    def number(self) -> int:
        return self.readings // 2


def plain(obj: dict[str, Any]) -> dict[str, Any]:
    """Without what differs between any two objects."""
    own = ("uid", "name", "resourceVersion", "creationTimestamp")
    metadata = {key: value for key, value in obj["metadata"].items() if key not in own}
    metadata["managedFields"] = [{**entry, "time": ""} for entry in metadata["managedFields"]]
    return {**obj, "metadata": metadata}


async def test_a_large_object_is_stored_as_it_would_be_if_it_were_taken_for_a_small_one(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        pieces = ChunkedAnswer(ops)
        small = await ops.create("configmaps", config_map("a", **LARGE))
        assert pieces.number == 0
        large = await ops.create("configmaps", config_map("b", **LARGE), size=100_000)
        assert pieces.number >= 2
        assert plain(large) == plain(small)


async def test_a_short_patch_of_a_large_object_is_worked_out_outside_of_the_event_loop(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        await ops.create("configmaps", config_map("a", **LARGE))
        pieces = ChunkedAnswer(ops)
        call: Call = ops.call("patch", "configmaps", "a", size=20)
        await patch(ops.context, call, "merge", {"data": {"more": "1"}}, [])
        assert pieces.number >= 4
        found = ops.find("configmaps", "a")
        assert found is not None
        assert found.obj()["data"] == {**LARGE, "more": "1"}


async def test_a_refusal_is_the_same_in_both_places(tmp_path: Path) -> None:
    wrong = config_map("a", **{"no/key": "1"})
    async with operations(tmp_path) as ops:
        told = []
        for size in (0, 100_000):
            with pytest.raises(ApiError) as refused:
                await ops.create("configmaps", wrong, size=size)
            told.append(refused.value.status())
    assert told[0] == told[1]


async def test_an_object_that_grew_beyond_what_is_stored_is_refused(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        many = [{"apiVersion": "v1", "kind": "Pod", "name": "x" * 200, "uid": f"{one}"} for one in range(14_000)]
        owned = config_map("a")
        owned["metadata"]["ownerReferences"] = many
        with pytest.raises(ApiError, match="Request entity too large: limit is 3145728") as refused:
            await ops.create("configmaps", owned, size=3_000_000)
        assert refused.value.code == 413
        assert ops.find("configmaps", "a") is None


class Asked(LargeWork):
    """Which locks are held when the worker is asked for something."""

    def __init__(self, ops: Operations, *refs: Ref) -> None:
        super().__init__()
        self.ops = ops
        self.refs = refs
        self.held: list[bool] = []

    async def run(self, turn: Turn, work: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
        self.held += [self.ops.state.is_locked(ref) for ref in self.refs]
        return await super().run(turn, work, *args, **more)


async def test_no_lock_of_an_object_is_held_while_the_worker_is_waited_for(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        stored = await ops.create("configmaps", config_map("a", **LARGE))
        asked = ops.context.large = Asked(ops, ops.resource("configmaps").ref("default", "a"))
        await patch(ops.context, ops.call("patch", "configmaps", "a"), "merge", {"data": {"more": "1"}}, [])
        await ops.update("configmaps", {**stored, "metadata": {"name": "a", "namespace": "default"}}, size=100_000)
        assert asked.held
        assert not any(asked.held)


async def test_a_large_change_that_is_overtaken_is_made_of_what_is_there_then(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        await ops.create("configmaps", config_map("a", **LARGE))
        calls = [ops.call("patch", "configmaps", "a") for _ in range(3)]
        patches = [
            patch(ops.context, call, "merge", {"data": {f"more{one}": "1"}}, []) for one, call in enumerate(calls)
        ]
        await asyncio.gather(*patches)
        found = ops.find("configmaps", "a")
        assert found is not None
        assert found.obj()["data"] == {**LARGE, "more0": "1", "more1": "1", "more2": "1"}


async def test_addresses_are_not_held_while_the_worker_is_waited_for(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        asked = ops.context.large = Asked(ops, ALLOCATION)
        ports = [{"port": 80, "targetPort": 80, "protocol": "TCP"}]
        service = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s"}, "spec": {"ports": ports}}
        made = await ops.create("services", service, size=100_000)
        made["spec"]["type"] = "NodePort"
        changed = await ops.update("services", made, size=100_000)
        found = ops.find("services", "s")
        assert found is not None
        assert found.obj()["spec"]["ports"][0]["nodePort"] == changed["spec"]["ports"][0]["nodePort"]
        assert found.obj()["spec"]["clusterIP"] == made["spec"]["clusterIP"]
        assert asked.held
        assert not any(asked.held)
