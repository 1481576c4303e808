"""A leader runs for months: it keeps nothing about deleted groups, jobs and pods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from build.live_schedulers import add_node
from build.virtual_time import virtual
from build.volcano_scenes import bare_volcano, running, submit, task, volcano
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import VOLCANO_JOBS, VOLCANO_POD_GROUPS
from shoal.client.kind import PODS
from shoal.client.port import Deletion

_MEMORY = ("shoal.controllers.volcano", "shoal.engine.queues.disciplines.volcano")


def _mentions(thing: object, words: str, way: str, seen: set[int]) -> Iterator[str]:
    """Ways to texts with those words that the parts of Volcano keep."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    inner: list[tuple[str, Any]] = []
    if isinstance(thing, str):
        if words in thing:
            yield way
    elif isinstance(thing, dict):
        inner = [("key", key) for key in thing] + list(thing.items())
    elif isinstance(thing, (list, tuple, set, frozenset)):
        inner = [("item", one) for one in thing]
    elif type(thing).__module__.startswith(_MEMORY):
        fields = getattr(type(thing), "__struct_fields__", None) or getattr(thing, "__slots__", None) or vars(thing)
        inner = [(name, getattr(thing, name, None)) for name in fields]
    for name, one in inner:
        yield from _mentions(one, words, f"{way}.{name}", seen)


@virtual
async def test_nothing_is_remembered_of_what_is_gone(tmp_path: Path) -> None:
    parts: list[Controller] = []

    def start(context: Context) -> Controller:
        parts.append(volcano(context))
        return parts[-1]

    async with bare_volcano(tmp_path) as scene:
        scene.cluster.start(start)
        await add_node(scene.cluster, "n1", gpus=8, cpu="64")
        scene.start_scheduler()
        tending = asyncio.ensure_future(scene.keep_tending())
        scene.cluster.tasks.append(tending)
        await scene.group("passing-group", minMember=1, priorityClassName="none-such")
        await scene.pod("passing-pod", "passing-group")
        made = await submit(scene, task(replicas=2), name="passing-job")
        await scene.cluster.until(lambda: running(scene, 3))
        known = [way for part in (*parts, *scene.disciplines) for way in _mentions(vars(part), "passing", "", set())]
        assert known, "the search finds what is remembered of what is there"

        await scene.cluster.delete(VOLCANO_JOBS, "passing-job")
        await scene.cluster.delete(VOLCANO_POD_GROUPS, "passing-group")
        await scene.cluster.delete(VOLCANO_POD_GROUPS, f"passing-job-{made['metadata']['uid']}")
        await scene.cluster.pass_time(1)
        for name in await scene.pods():
            await scene.cluster.delete(PODS, name, Deletion(grace_s=0))
        await scene.cluster.pass_time(5)
        assert await scene.pods() == {}
        # One that comes is what the next rounds are about.
        await scene.group("last", minMember=1)
        await scene.pod("last", "last")
        await scene.cluster.pass_time(30)
        for part in (*parts, *scene.disciplines):
            assert list(_mentions(vars(part), "passing", type(part).__name__, set())) == []
            assert list(_mentions(vars(part), made["metadata"]["uid"], type(part).__name__, set())) == []
