"""Creations and bindings, as many as the server takes with 64 in flight, and the same bodies merely carried."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bench.cluster import accounts, objects
from bench.cluster.figures import Figure
from bench.cluster.following import Follower
from bench.cluster.storm import Ask, connections, storm
from bench.cluster.wire import Target

IN_FLIGHT = 64
_WARM = 300
_WATCHERS = 2
_REAL = 2150


async def creation_figure(target: Target, pid: int, bare: float, pods: int) -> Figure:
    """Also brings the nodes and the pods that all later figures work with."""
    lines = await connections(target, IN_FLIGHT)
    await storm(lines, objects.create_nodes(objects.NODES))
    await storm(lines, objects.create_pods(0, _WARM))
    used = accounts.processor_s(pid)
    rest = objects.create_pods(_WARM, pods - _WARM)
    seconds = await storm(lines, rest)
    used = accounts.processor_s(pid) - used
    for line in lines:
        line.close()
    title = "pods created a second, validated and defaulted"
    return _figure(title, len(rest), seconds, used, bare, 1200)


async def binding_figure(target: Target, pid: int, bare: float, pods: int) -> Figure:
    lines = await connections(target, IN_FLIGHT)
    followers = [await Follower.open(target) for _ in range(_WATCHERS)]
    following = [asyncio.create_task(follower.until(pods)) for follower in followers]
    used = accounts.processor_s(pid)
    seconds = await storm(lines, objects.bind_pods(0, pods, objects.NODES))
    used = accounts.processor_s(pid) - used
    await asyncio.wait_for(asyncio.gather(*following), 20)
    for line in lines:
        line.close()
    for follower in followers:
        follower.close()
    title = f"bindings a second, {IN_FLIGHT} in flight, {_WATCHERS} watchers, durable"
    made = _figure(title, pods, seconds, used, bare, 2500)
    return Figure(made.title, made.measured, least=made.least, beside=f"{made.beside}; a real one {_REAL:,}")


async def bare_rate(target: Target, asks: Sequence[Ask]) -> float:
    lines = await connections(target, IN_FLIGHT)
    await storm(lines, asks[:_WARM])
    seconds = await storm(lines, asks)
    for line in lines:
        line.close()
    return len(asks) / seconds


def _figure(title: str, count: int, seconds: float, used_s: float, bare: float, bar: float) -> Figure:
    rate = count / seconds
    beside = (
        f"{used_s / count * 1e6:,.0f} us of processor each, {used_s / seconds:.2f} cores; "
        f"{rate / bare:.2f}x of bare aiohttp ({bare:,.0f})"
    )
    return Figure(title, rate, least=bar, beside=beside)
