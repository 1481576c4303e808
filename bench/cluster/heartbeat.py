"""What a thousand quiet nodes cost: their kubelets renew a lease each, every 40 s or every 10 s.

Renewals come one by one and evenly, each durable by itself, as they do from a thousand machines; in a storm many would
share a commit. The processor time of the server over some seconds of it, as a share of a core.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bench.cluster import accounts, objects
from bench.cluster.figures import Figure
from bench.cluster.storm import Ask, connections, paced, storm
from bench.cluster.wire import Connection, Target

_LINES = 50
_SETTLING = 300


class _Metadata(msgspec.Struct):
    name: str
    resourceVersion: str  # noqa: N815 - as the API has it


class _Lease(msgspec.Struct):
    metadata: _Metadata


class _Leases(msgspec.Struct):
    items: list[_Lease]


async def heartbeat_figures(target: Target, pid: int, bare: Target, bare_pid: int, seconds: float) -> list[Figure]:
    """`bare` is the echo server: waking up for a request costs much of it on a machine that is quiet otherwise."""
    bare_lines = await connections(bare, _LINES)
    lines = await connections(target, _LINES)
    nodes = objects.NODES
    creations = [Ask(b"POST", objects.lease_path(), objects.lease(node, renewed=0)) for node in range(nodes)]
    await storm(lines, creations)
    # What earlier figures left the storage to tidy up is done with first; a commit takes a part of it along.
    await storm(lines[:1], await _renewals(lines[0], _SETTLING, 1))
    figures = []
    for turn, (every_s, bar) in enumerate(((40, 5), (10, 20)), start=2):
        rate = nodes / every_s
        asks = await _renewals(lines[0], min(nodes, int(rate * seconds)), turn)
        share = await _share(lines, asks, rate, pid)
        alone = await _share(bare_lines, asks[: len(asks) // 2], rate, bare_pid)
        title = f"heartbeat of {nodes:,} nodes, leases every {every_s} s: share of a core"
        each_us = share / rate * 1e4
        beside = f"{each_us:,.0f} us each over {len(asks)} renewals, one by one; bare aiohttp {alone:.1f} %"
        figures.append(Figure(title, share, " %", most=bar, beside=beside))
    for line in (*lines, *bare_lines):
        line.close()
    return figures


async def _renewals(line: Connection, count: int, turn: int) -> list[Ask]:
    """Of as many leases, each naming the version it replaces, as kubelets do."""
    _, body = await line.answer(b"GET", objects.lease_path())
    leases = msgspec.json.decode(body, type=_Leases).items[:count]
    return [
        Ask(
            b"PUT",
            objects.lease_path(node),
            objects.lease(node, renewed=turn, version=lease.metadata.resourceVersion),
        )
        for node, lease in enumerate(leases)
    ]


async def _share(lines: Sequence[Connection], asks: Sequence[Ask], rate: float, pid: int) -> float:
    """Of a core, in percent."""
    used = accounts.processor_s(pid)
    await paced(lines, asks, rate)
    return (accounts.processor_s(pid) - used) / len(asks) * rate * 100
