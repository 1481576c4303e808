"""Something that nobody thought of, inside the desks of Volcano's and KAI's queues: methods of one of their parts raise
at some of their calls, before the work or after it. The books come back to what the cluster says: everybody with a
right to room gets it, nobody has a place that nobody binds them to, and no quota is given twice or lost.

A case is a part and a seed, which says at which calls its methods break. `SHOAL_ODD_SEEDS=20` tries so many of them.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from build.cluster_laws import Laws
from build.live_schedulers import LiveScheduler, add_node
from build.odd_faults import Fault, odd
from build.odd_queues import KaiWork, QueuedWork, VolcanoWork
from build.virtual_time import in_virtual_time
from shoal.client.kind import NODES, PODS

_SEEDS = range(int(os.environ.get("SHOAL_ODD_SEEDS", "1")))
_FIRST_CALLS = 12
_MOST_FAULTS = 3
Parts = Mapping[str, tuple[Callable[[Any], object], tuple[str, ...]]]

# White box: the parts of each admission, by attribute, and the methods that change their state.
_VOLCANO: Parts = {
    "admission": (lambda discipline: discipline, ("hear", "round", "steps", "_note", "words_of")),
    "cache": (lambda discipline: discipline._cache, ("tree",)),
    "known-jobs": (lambda discipline: discipline._cache.known, ("admit", "is_admitted")),
    "discipline": (lambda discipline: discipline.discipline, ("_run", "keep", "next_s")),
    "preferences": (lambda discipline: discipline.discipline._preferences, ("_over",)),
}
_KAI: Parts = {
    "admission": (lambda discipline: discipline, ("hear", "round", "steps", "keep", "_onward", "_note", "words_of")),
    "members": (lambda discipline: discipline._members, ("translated",)),
    "pools": (lambda discipline: discipline._pools, ("translated", "put_pools")),
    "status-writer": (lambda discipline: discipline._status_writer, ("round_done", "_write_groups", "_find_reasons")),
    "discipline": (lambda discipline: discipline.discipline.disciplines[""], ("_run", "_end", "next_s")),
    "preferences": (lambda discipline: discipline.discipline.disciplines[""]._placement, ("_over",)),
}
_MADE: Mapping[str, tuple[Callable[[Path], AbstractAsyncContextManager[QueuedWork]], Parts]] = {
    "volcano": (VolcanoWork.begun, _VOLCANO),
    "volcano-without-shares": (VolcanoWork.without_shares, _VOLCANO),
    "kai": (KaiWork.begun, _KAI),
}
_CASES = [(project, part) for project, (_, parts) in _MADE.items() for part in parts]


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize(("project", "part"), _CASES)
def test_one_odd_fault_leaves_a_desks_book_as_the_cluster_is(
    project: str, part: str, seed: int, tmp_path: Path
) -> None:
    in_virtual_time(_story(project, part, random.Random(f"{project} {part} {seed}"), tmp_path))


async def _story(project: str, part: str, draw: random.Random, folder: Path) -> None:
    begun, parts = _MADE[project]
    async with begun(folder) as work:
        laws = Laws(work.cluster)
        laws.watch({PODS: None, NODES: None})
        live = work.live
        await add_node(work.cluster, "n1", gpus=4, cpu="64")
        where, methods = parts[part]
        await work.make_queues()
        await work.cluster.pass_time(3)
        faults = [_broken(where(work.discipline), method, draw) for method in methods]
        await _play(work, draw)
        note = "; ".join(f"{fault.name} of {fault.calls}" for fault in faults)
        assert any(fault.calls for fault in faults), note
        assert not [task for task in live.tasks if task.done()], note
        assert await work.bound() == {*_EVERYBODY, *await work.one_of_two()}, note
        assert not _assumed(live), note
        held = {"one-0", "two-0"} - await work.one_of_two()
        assert {_name(key) for key in live.loop.cluster.pending.in_order()} <= held, note
        assert work.book() == await work.bound(), note
        assert work.charged() in ({}, _gpus(await work.bound())), note
        assert not laws.broken, (note, laws.broken)
        await laws.end()


def _broken(where: object, method: str, draw: random.Random) -> Fault:
    at = {draw.randrange(_FIRST_CALLS) for _ in range(draw.randint(1, _MOST_FAULTS))}
    return odd(where, method, at, after=draw.random() < 0.5)


def _gpus(bound: set[str]) -> dict[str, int]:
    """By queue: each pod has one."""
    queues = {"wide": "a", "extra": "a", "mine": "b", "one": "c", "two": "c"}
    return dict(Counter(queues[name.partition("-")[0]] for name in bound))


def _name(key: str) -> str:
    return key.partition("/")[2]


def _assumed(live: LiveScheduler) -> list[str]:
    return [key for key, holding in live.loop.cluster.pods.items() if not holding.is_bound]


_EVERYBODY = {"wide-0", "wide-1", "wide-2", "extra-0", "mine-0", "mine-1"}


async def _play(work: QueuedWork, draw: random.Random) -> None:
    """Of four GPUs half are each queue's own. One borrows and has to give back, a node comes, and a third queue may
    never have more than one of the two that want its GPU."""
    await work.gang("wide", "a", 3)
    await work.cluster.pass_time(draw.choice((0, 0.3, 2)))
    await work.gang("extra", "a", 1)
    await work.cluster.pass_time(draw.uniform(1, 6))
    await work.gang("mine", "b", 2)
    await work.gang("one", "c", 1)
    await work.gang("two", "c", 1)
    await work.cluster.pass_time(draw.uniform(1, 6))
    await add_node(work.cluster, "n2", gpus=3, cpu="64")
    for _ in range(20):
        await work.cluster.pass_time(3)
        assert len(await work.one_of_two()) < 2
