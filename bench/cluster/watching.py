"""Twenty watchers that were away and catch up, then follow a thousand writes a second."""

from __future__ import annotations

import asyncio
from time import perf_counter

from bench.cluster import objects
from bench.cluster.figures import Figure
from bench.cluster.following import Follower
from bench.cluster.storm import connections, paced, storm
from bench.cluster.wire import Target
from bench.cluster.writing import IN_FLIGHT

_WATCHERS = 20
_RATE = 1000.0
_LONGEST_S = 30


async def watch_figures(target: Target, since: int, events: int, writes: int, seen: int) -> list[Figure]:
    """`since` is a revision with `events` of pods after it; `seen` is how many pods there are."""
    started = perf_counter()
    followers = await asyncio.gather(*(Follower.open(target, since) for _ in range(_WATCHERS)))
    await asyncio.wait_for(asyncio.gather(*(one.until(events) for one in followers)), _LONGEST_S)
    seconds = perf_counter() - started
    for one in followers:
        one.close()
    title = f"{_WATCHERS} watchers replay {events:,} events from one old revision"
    beside = f"{_WATCHERS * events / seconds:,.0f} events a second in all, in order"
    return [Figure(title, seconds, " s", most=2, beside=beside), await _live(target, writes, seen)]


async def _live(target: Target, writes: int, seen: int) -> Figure:
    lines = await connections(target, IN_FLIGHT)
    await storm(lines, objects.create_pods(seen, writes))
    followers = await asyncio.gather(*(Follower.open(target) for _ in range(_WATCHERS)))
    following = [asyncio.create_task(one.until(writes, keeps_moments=True)) for one in followers]
    moments: dict[int, float] = {}
    asks = objects.bind_pods(seen, writes, objects.NODES)
    seconds = await paced(lines, asks, _RATE, moments.__setitem__)
    await asyncio.wait_for(asyncio.gather(*following), _LONGEST_S)
    waits = []
    for one in followers:
        # Whoever has as many different names as were written, in rising revisions, has lost none.
        if len(one.arrived) != writes:
            raise RuntimeError(f"a watcher saw {len(one.arrived)} of {writes} writes")
        waits += [one.arrived[objects.pod_name(seen + index).encode()] - due for index, due in moments.items()]
    for line in lines:
        line.close()
    for follower in followers:
        follower.close()
    waits.sort()
    p50, p99 = (waits[int(len(waits) * part)] * 1e3 for part in (0.5, 0.99))
    title = f"live at {_RATE:,.0f} bindings a second, {_WATCHERS} watchers: p99 from write to event"
    beside = (
        f"p50 {p50:.1f}, longest {waits[-1] * 1e3:.0f} ms, at {writes / seconds:,.0f} a second; none lost, in order"
    )
    return Figure(title, p99, " ms", most=100, beside=beside)
