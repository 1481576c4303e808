"""What recording the history costs the scheduler in the same process: bindings with and without it, by turns.

Pods are created while the scheduler runs. Processor time is that of its process from the first creation to the last
binding, and until it has nothing more to do: the recorder writes after the bindings what it has not written
beside them. Where the processor is what limits bindings, their rate is the inverse of the time by pod, which other
programs on the machine change far less than the rate itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.cluster import objects
from bench.cluster.accounts import processor_s
from bench.cluster.figures import Figure
from bench.cluster.following import Follower
from bench.cluster.storm import connections, storm
from bench.cluster.wire import Target
from bench.live.process import SCHEDULER, RunProcess
from shoal.store.history.history import read_history

_IN_FLIGHT = 64
_PATIENCE_S = 300.0
_STILL_S = 12.0
"""The recorder looks for changes every ten seconds."""
_STILL = 0.03
"""Of a core: reading the series of the nodes goes on, and follows the pods that run."""
_MOST = 3.0


class Bound(NamedTuple):
    burst_ms: float
    """Time of the processor by pod until the last one was bound."""
    all_ms: float
    """The same until the process has nothing more to do."""
    rate: float


async def bound(kubeconfig: Path, folder: Path, size: tuple[int, int], *, is_recorded: bool) -> Bound:
    """`size`: nodes and pods."""
    nodes, pods = size
    target = Target(kubeconfig)
    lines = await connections(target, _IN_FLIGHT)
    await storm(lines, objects.create_nodes(nodes))
    await storm(lines, objects.open_nodes(nodes))
    history = folder / "history"
    run = RunProcess(kubeconfig, folder / "run.log", *(("--history", str(history)) if is_recorded else ()))
    try:
        await asyncio.to_thread(run.wait_ready)
        await _settled(run.pid)
        before_s = processor_s(run.pid)
        follower = await Follower.open(target)
        # Each is created and bound: two events.
        following = asyncio.create_task(follower.until(2 * pods, keeps_moments=True))
        await storm(lines, objects.create_pods(0, pods, SCHEDULER))
        await asyncio.wait_for(following, _PATIENCE_S)
        burst_s = processor_s(run.pid) - before_s
        moments = sorted(follower.arrived.values())
        follower.close()
        await _settled(run.pid)
        all_s = processor_s(run.pid) - before_s
    finally:
        run.stop()
        for line in lines:
            line.close()
    if is_recorded:
        _check_recorded(history, pods)
    return Bound(1000 * burst_s / pods, 1000 * all_s / pods, pods / (moments[-1] - moments[0]))


def figures(plain: Sequence[Bound], recorded: Sequence[Bound], pods: int) -> list[Figure]:
    """Both in the order in which they ran, by turns."""
    burst = [1 - one.burst_ms / other.burst_ms for one, other in zip(plain, recorded, strict=True)]
    whole = [1 - one.all_ms / other.all_ms for one, other in zip(plain, recorded, strict=True)]
    without, with_it = (median(one.burst_ms for one in found) for found in (plain, recorded))
    sums = [median(one.all_ms for one in found) for found in (plain, recorded)]
    rates = [median(one.rate for one in found) for found in (plain, recorded)]
    return [
        Figure(
            f"bindings a second that recording the history costs, {pods:,} pods, by processor time",
            100 * median(burst),
            " %",
            most=_MOST,
            beside=f"{without:.3f} and {with_it:.3f} ms a pod; pairs {_span(burst)}; by the clock {rates[0]:,.0f} and "
            f"{rates[1]:,.0f} a second",
        ),
        Figure(
            "... and what it writes after the last binding",
            100 * median(whole),
            " %",
            beside=f"{sums[0]:.3f} and {sums[1]:.3f} ms a pod until nothing is left to do; pairs {_span(whole)}",
        ),
    ]


def _span(shares: Sequence[float]) -> str:
    return f"{100 * min(shares):.1f} to {100 * max(shares):.1f} %"


def _check_recorded(folder: Path, pods: int) -> None:
    """What was measured must have been recorded."""
    history = read_history(folder)
    try:
        found = len(history.ledger.holdings(0, 1 << 62))
    finally:
        history.close()
    if found != pods:
        raise RuntimeError(f"{found:,} of {pods:,} pods are recorded")


async def _settled(pid: int) -> None:
    """Returns when the process has done next to nothing for a while."""
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            before = processor_s(pid)
            await asyncio.sleep(_STILL_S)
            if processor_s(pid) - before < _STILL * _STILL_S:
                return
