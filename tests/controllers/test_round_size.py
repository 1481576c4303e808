"""A round places as many pods as fit into a short time, and a few in any case."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from build.live_schedulers import add_node, places, pod, start_scheduler
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import PODS
from shoal.controllers.scheduling_loop.cycle_size import FIRST, LONGEST_S, CycleSize
from shoal.controllers.scheduling_loop.scheduling_loop import SchedulingLoopSettings


def test_short_rounds_grow_and_long_ones_shrink_to_the_size_of_the_first() -> None:
    size = CycleSize(256, is_timed=True)
    sizes = [size.now]
    for _ in range(6):
        size.note(LONGEST_S / 4, is_cut=True)
        sizes.append(size.now)
    assert sizes == [FIRST, 32, 64, 128, 256, 256, 256]
    for _ in range(10):
        size.note(LONGEST_S * 2, is_cut=True)
    assert size.now == FIRST
    size.note(LONGEST_S * 0.75, is_cut=True)
    assert size.now == FIRST


def test_the_next_backlog_begins_small_again() -> None:
    size = CycleSize(256, is_timed=True)
    for _ in range(5):
        size.note(0.0, is_cut=True)
    size.note(0.0, is_cut=False)
    assert size.now == FIRST


def test_without_timing_each_round_may_place_all() -> None:
    size = CycleSize(256, is_timed=False)
    size.note(0.0, is_cut=False)
    assert size.now == 256


@virtual
async def test_a_backlog_is_placed_whole_however_long_its_rounds_take(tmp_path: Path) -> None:
    readings = count()
    settings = SchedulingLoopSettings(stopwatch=lambda: float(next(readings)))
    async with small_cluster(tmp_path) as cluster:
        names = [f"p{number}" for number in range(40)]
        for name in names:
            await cluster.create(PODS, pod(name))
        live = start_scheduler(cluster, settings=settings)
        await add_node(cluster, "n1")
        await cluster.pass_time(10)
        assert await places(cluster) == dict.fromkeys(names, "n1")
        # Sixteen in each of the first two rounds, and eight in the third.
        assert live.loop.rounds >= 3
