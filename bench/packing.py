"""Packing on the public openb trace: exact parity with the FGD paper's published runs, and Shoal's gain over FGD.

Needs the trace (nodes, pod lists, the authors' orders) and the published values, which are not shipped: give the folder
that holds `traces/fgd` and `data/fgd_expected.json`. Without it, it says so and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from time import perf_counter

from shoal.sim.axis import Curves
from shoal.sim.packing import PackRun
from shoal.sim.replay import curves_of
from shoal.sim.traces.openb import read_nodes, read_pods
from shoal.sim.traces.orders import read_order
from shoal.sim.workload import draw_arrivals

LISTS = ("default", "cpu100", "gpushare40", "gpuspec10", "multigpu20")
DETERMINISTIC = ("DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD")
SEEDS = tuple(range(42, 52))
MARKS = (90, 95, 100, 130)


@dataclass
class Runs:
    """All runs of one policy on one list."""

    curves: list[Curves] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def mean_at(self, mark: int) -> float:
        return mean(curves.alloc[mark] for curves in self.curves)


class OpenTrace:
    """The public trace in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "traces" / "fgd"
        self.expected = json.loads((folder / "data" / "fgd_expected.json").read_text())
        self.nodes = read_nodes(self._folder / "openb_node_list_gpu_node.csv")

    def runs(self, name: str, policy: str, seeds: Sequence[int], *, own_order: bool = False) -> Runs:
        pods = read_pods(self._folder / f"openb_pod_list_{name}.csv")
        runs = Runs()
        for seed in seeds:
            if own_order:
                arrivals = draw_arrivals(pods, self.nodes, 1.3, seed)
            else:
                arrivals = read_order(self._folder / "orders" / f"{name}.u16.gz", seed, pods, self.nodes)
            run = PackRun(self.nodes, pods, arrivals.ranks, policy, seed)
            start = perf_counter()
            for row in arrivals.pod_rows.tolist():
                run.arrive(row)
            runs.seconds.append(perf_counter() - start)
            runs.curves.append(curves_of(run))
        return runs


def parity(trace: OpenTrace, seeds: Sequence[int]) -> None:
    """The five deterministic policies under the authors' orders, seed by seed."""
    wrong = 0
    for name in LISTS:
        for policy in DETERMINISTIC:
            published = trace.expected["alloc_pct_130_per_seed"][name][policy]
            runs = trace.runs(name, policy, seeds)
            for seed, curves in zip(seeds, runs.curves, strict=True):
                if curves.alloc[130] != published[seed - SEEDS[0]]:
                    wrong += 1
                    print(f"  {name} {policy} seed {seed}: {curves.alloc[130]}, not {published[seed - SEEDS[0]]}")
    total = len(LISTS) * len(DETERMINISTIC) * len(seeds)
    print(f"parity: {total - wrong} of {total} published per-seed allocations at 130 are equal (bar: all)")


def statistical(trace: OpenTrace, seeds: Sequence[int]) -> None:
    """Random under the authors' orders, and all six under our own: means against the published ones."""
    worst = (0.0, "")
    cases = [("Random", False), *((policy, True) for policy in ("Random", *DETERMINISTIC))]
    for name in LISTS:
        for policy, own_order in cases:
            runs = trace.runs(name, policy, seeds, own_order=own_order)
            published = trace.expected["alloc_pct"][name][policy]["130"][0]
            off = runs.mean_at(130) - published
            orders = "own orders" if own_order else "authors' orders"
            label = f"{name:<11} {policy:<13} {orders:<16}"
            print(f"  {label} {runs.mean_at(130):6.2f} published {published:6.2f} ({off:+.2f})")
            worst = max(worst, (abs(off), f"{name} {policy} {orders}"))
    print(f"statistical parity: largest distance of means at 130 is {worst[0]:.2f}, {worst[1]} (bar: 0.3)")


def gain(trace: OpenTrace, seeds: Sequence[int], policy: str) -> None:
    """A policy against FGD, same lists, same orders, same run."""
    gains = []
    slowest = 0.0
    for name in LISTS:
        ours = trace.runs(name, policy, seeds)
        theirs = trace.runs(name, "FGD", seeds)
        cells = [
            f"{mark}: {ours.mean_at(mark):6.2f} ({ours.mean_at(mark) - theirs.mean_at(mark):+.2f})" for mark in MARKS
        ]
        seconds = f"s a run: {policy} {mean(ours.seconds):.2f}, FGD {mean(theirs.seconds):.2f}"
        print(f"  {name:<11} {'  '.join(cells)}  {seconds}")
        gains.append(ours.mean_at(100) - theirs.mean_at(100))
        slowest = max(slowest, *ours.seconds)
    print(
        f"{policy} over FGD at arrived 100: mean {mean(gains):+.2f} (bar +0.6), least {min(gains):+.2f} (bar +0.2); "
        f"slowest run {slowest:.2f} s (bar 4 s)"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[2] / "shared")
    parser.add_argument("--seeds", type=int, default=10, help="how many of the ten seeds")
    parser.add_argument("--policy", default="Shoal")
    parser.add_argument("--only", choices=("parity", "statistical", "gain"), action="append")
    chosen = parser.parse_args(arguments)
    if not (chosen.folder / "traces" / "fgd").is_dir():
        print(f"packing: no public trace in {chosen.folder}; give its folder with --folder. Nothing measured.")
        return 0
    trace = OpenTrace(chosen.folder)
    seeds = SEEDS[: chosen.seeds]
    only = chosen.only or ["gain", "parity", "statistical"]
    if "gain" in only:
        gain(trace, seeds, chosen.policy)
    if "parity" in only:
        parity(trace, seeds)
    if "statistical" in only:
        statistical(trace, seeds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
