"""Something that nobody thought of, somewhere in the process: one method of one part raises at a call or two, before it
has done its work or after it. Whatever it is, the scheduler goes on, every pod that fits is placed,
no pod keeps a place that it is not bound to, and no device and no quota is given twice.

A case is a part and a seed, which says at which calls it breaks. `SHOAL_ODD_SEEDS=20` tries so many of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from build.cluster_laws import Laws
from build.live_schedulers import LiveScheduler, add_node, is_bound, pod
from build.odd_faults import odd
from build.queue_admission import add_flavor, add_queue, is_so, queued_cluster, said, start_pods, submit, until_so
from build.small_clusters import SmallCluster
from build.virtual_time import in_virtual_time
from shoal.client.kind import NODES, PODS, PRIORITY_CLASSES
from shoal.client.port import Deletion
from shoal.controllers.queues.admission_loop import QueueAdmission
from shoal.controllers.scheduling_loop.disciplines import Disciplines
from shoal.store.watched.queues import WatchedQueues

_SEEDS = range(int(os.environ.get("SHOAL_ODD_SEEDS", "1")))
_AT_ONCE = Deletion(grace_s=0)
_FIRST_CALLS = 8


class Process:
    """A scheduler that places pods, with a controller for Kueue's queues."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.live = LiveScheduler(cluster)
        self.loop = self.live.loop
        self.watched = self.loop.watched
        (self.executors,) = self.loop.executors
        watched = WatchedQueues(self.live.context, self.live.served, self.loop.wake)
        self.discipline = QueueAdmission(self.live.context, watched, self.loop)
        disciplines = Disciplines(self.loop.intake, self.loop.clock)
        disciplines.add(lambda _: self.discipline)
        self.loop.discipline = disciplines


# White box: these are the parts that work in a round or beside it, by where they are.
_PARTS: dict[str, Callable[[Any], object]] = {
    "placement": lambda one: one.loop.placement,
    "intake": lambda one: one.loop.intake,
    "world": lambda one: one.watched,
    "nodes": lambda one: one.watched._nodes,
    "pods": lambda one: one.watched._asks,
    "gangs": lambda one: one.watched.gangs,
    "devices": lambda one: one.watched.devices,
    "volumes": lambda one: one.watched.volumes,
    "desk": lambda one: one.discipline,
    "node capacity": lambda one: one.discipline._capacity,
    "queues": lambda one: one.discipline._watched,
    "kueue": lambda one: one.discipline.kueue,
    "event handlers": lambda one: one.discipline._handlers,
    "cycles": lambda one: one.discipline._cycles,
    "arrivals": lambda one: one.discipline.arrivals,
    "statuses": lambda one: one.discipline._statuses,
    "reports": lambda one: one.discipline._reports,
    "status writer": lambda one: one.discipline._writer,
    "hands": lambda one: one.executors,
    "bindings": lambda one: one.executors._bindings,
    "writer": lambda one: one.executors._bindings._writer,
    "rendezvous": lambda one: one.executors._bindings._rendezvous,
    "endings": lambda one: one.executors._endings,
    "refusals": lambda one: one.executors._refusals,
    "promises": lambda one: one.executors._nominations,
    "outcomes": lambda one: one.executors._outcomes,
    "half gangs": lambda one: one.executors._half_gangs,
    "forgotten": lambda one: one.executors._forgotten,
    "words": lambda one: one.executors._refusals._words,
    "events": lambda one: one.live.context.events._pen,
}
_POINTS = [
    ("placement", "renew"),
    ("placement", "choose"),
    ("world", "drain"),
    ("nodes", "_seen"),
    ("pods", "ask"),
    ("gangs", "drain"),
    ("devices", "drain"),
    ("volumes", "stirred"),
    ("desk", "hear"),
    ("desk", "round"),
    ("node capacity", "begin_round"),
    ("node capacity", "place_wanted"),
    ("node capacity", "take"),
    ("event handlers", "handle"),
    ("event handlers", "_handle_workload"),
    ("queues", "_report"),
    ("queues", "_tell_workload"),
    ("kueue", "cycle"),
    ("cycles", "run"),
    ("cycles", "_apply"),
    ("arrivals", "take"),
    ("statuses", "_update"),
    ("statuses", "_write_all"),
    ("reports", "admitted"),
    ("status writer", "_write"),
    ("hands", "carry_out"),
    ("hands", "outcomes"),
    ("bindings", "take"),
    ("bindings", "_write"),
    ("bindings", "_try"),
    ("writer", "prepare"),
    ("rendezvous", "facts"),
    ("endings", "take"),
    ("endings", "_write"),
    ("refusals", "take"),
    ("refusals", "_say"),
    ("refusals", "_look_at_held"),
    ("promises", "take"),
    ("outcomes", "take"),
    ("outcomes", "delay_s"),
    ("half gangs", "look"),
    ("forgotten", "look"),
    ("words", "of_pod"),
    ("events", "_write"),
]


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize(("part", "method"), _POINTS, ids=lambda one: str(one).replace(" ", "-"))
def test_one_odd_fault_costs_nobody_anything_for_good(part: str, method: str, seed: int, tmp_path: Path) -> None:
    in_virtual_time(_story(part, method, random.Random(f"{part} {method} {seed}"), tmp_path))


async def _story(part: str, method: str, draw: random.Random, folder: Path) -> None:
    async with queued_cluster(folder) as cluster:
        laws = Laws(cluster)
        laws.watch({PODS: None, NODES: None})
        process = Process(cluster)
        calls = {draw.randrange(_FIRST_CALLS) for _ in range(2)}
        fault = odd(_PARTS[part](process), method, calls, after=draw.random() < 0.5)
        process.live.start()
        await _work(cluster, draw)
        note = f"{fault.name} at {sorted(calls)} of {fault.calls}"
        assert not [task for task in process.live.tasks if task.done()], note
        assert await is_bound(cluster, *_EVERYBODY), note
        assert not await is_so(cluster, "third", "QuotaReserved"), note
        assert await said(cluster, "second", "Admitted") != ("", "", ""), note
        held = [key for key, holding in process.loop.cluster.pods.items() if not holding.is_bound]
        assert not held, note
        assert not [key for key in process.loop.cluster.pending.in_order() if "#" in key], note
        assert not laws.broken, (note, laws.broken)
        await laws.end()


_EVERYBODY = ("p-1", "p-2", "p-3", "large", "high", "first-0", "first-1", "second-0", "second-1", "last")


async def _work(cluster: SmallCluster, draw: random.Random) -> None:
    """Two gangs with quota for both and none for a third; pods of which one has to yield and one needs a new node."""
    await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
    await add_flavor(cluster)
    await add_queue(cluster)
    await add_node(cluster, "n1", gpus=4)
    for name in ("first", "second"):
        await submit(cluster, name, count=2)
    for number in range(4):
        await cluster.create(PODS, pod(f"p-{number}", gpus=1))
        await cluster.pass_time(draw.choice((0, 0.1, 3)))
    # Of one second, whoever stands in line first is first, and a fault may send somebody back to the end.
    await cluster.pass_time(1.5)
    await submit(cluster, "third", count=2)
    await cluster.create(PODS, pod("large", gpus=4))
    await until_so(cluster, "first")
    await start_pods(cluster, "first", 2)
    await cluster.pass_time(draw.uniform(0, 20))
    await cluster.delete(PODS, "p-0", _AT_ONCE)
    await cluster.create(PODS, pod("high", gpus=1, priorityClassName="high"))
    await until_so(cluster, "second")
    await start_pods(cluster, "second", 2)
    await cluster.pass_time(draw.uniform(0, 20))
    await add_node(cluster, "n2", gpus=8)
    await cluster.pass_time(60)
    await cluster.create(PODS, pod("last", gpus=1))
    await cluster.pass_time(200)
