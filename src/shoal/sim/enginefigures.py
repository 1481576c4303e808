"""Every figure that the decision core is held to, measured one after the other in one run.

Steady load, gangs, preemption, mixed asks and explanations have a bench of their own each; here they get their sizes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter

import msgspec

from shoal.engine.asks import Ask
from shoal.engine.device_demand import WholeGpus
from shoal.engine.evidence import evidence
from shoal.sim import gangbench
from shoal.sim.enginebench import Bench
from shoal.sim.mixedbench import mixed_placements_per_s
from shoal.sim.preemptbench import preempt_s


class EngineFigures(msgspec.Struct, frozen=True):
    """What `shoal bench engine` prints."""

    placements_per_s: float
    vs_rescan_5k: float
    vs_rescan_50k: float
    growth_50k_over_5k: float
    rss_mb: float
    mixed_placements_per_s: float
    gang_1000_s: float
    gang_1000_exact_s: float
    preempt_s: float
    why_not_ms: float


def run(progress: Callable[[str], None], seed: int = 7) -> EngineFigures:
    """All figures; half a minute, or a whole one on a busy machine."""
    progress("5,000 nodes: filling")
    small = Bench(5_000, seed)
    small.fill()
    progress("5,000 nodes: 40,000 placements")
    small_s = small.placements(40_000)
    progress("5,000 nodes: rescan")
    small_rescan_s = small.rescans(400)
    del small
    progress("50,000 nodes: filling")
    large = Bench(50_000, seed)
    large.fill()
    progress("50,000 nodes: 40,000 placements")
    large_s = large.placements(40_000)
    progress("50,000 nodes: rescan")
    large_rescan_s = large.rescans(40)
    progress("50,000 nodes: why one pod does not fit")
    why_not_s = _why_not_s(large)
    del large
    progress("5,000 nodes: mixed asks")
    mixed = mixed_placements_per_s(seed)
    progress("5,000 nodes: a gang of 1,000")
    gang = gangbench.figures(seed)
    progress("1,000 nodes: 50 gangs by preemption")
    preemption_s = preempt_s(seed)
    progress("50,000 nodes: memory, in a process of its own")
    return EngineFigures(
        placements_per_s=round(1 / small_s),
        vs_rescan_5k=round(small_rescan_s / small_s, 1),
        vs_rescan_50k=round(large_rescan_s / large_s, 1),
        growth_50k_over_5k=round(large_s / small_s, 3),
        rss_mb=round(memory_mb(seed), 1),
        mixed_placements_per_s=round(mixed),
        gang_1000_s=round(gang.block_s, 4),
        gang_1000_exact_s=round(gang.exact_s, 4),
        preempt_s=round(preemption_s, 4),
        why_not_ms=round(1000 * why_not_s, 2),
    )


def memory_mb(seed: int) -> float:
    """Peak memory of a fresh process that holds 50,000 nodes and 100,000 pods and has placed them."""
    program = f"from shoal.sim.enginefigures import print_memory; print_memory({int(seed)})"
    done = subprocess.run(  # noqa: S603 - our own interpreter, no user text
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def print_memory(seed: int) -> None:
    bench = Bench(50_000, seed)
    bench.fill(pods=100_000)
    sys.stdout.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}\n")


def _why_not_s(bench: Bench) -> float:
    """Seconds to gather why one pod fits nowhere: more cores than any node with eight empty GPUs has free."""
    ask = Ask(requests=(("cpu", 500_000),), devices=WholeGpus(8))
    bench.cluster.charge(ask)
    start = perf_counter()
    evidence(bench.cluster, ask)
    return perf_counter() - start
