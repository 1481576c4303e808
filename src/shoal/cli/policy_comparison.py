"""Runs policies over one scenario, one after the other, and keeps what people compare.

The clock is here and not below: what is timed is the packing loop alone, without reading, curves or pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from types import MappingProxyType

from shoal.cli.progress import progress
from shoal.cli.scenario import Scenario
from shoal.engine.profile import Builder
from shoal.sim.axis import Curves
from shoal.sim.packing import PackRun
from shoal.sim.replay import curves_of, reach_percent, replay
from shoal.views.packing_chart import PackedCurves, draw_packing
from shoal.views.packing_table import PackedRow


@dataclass(frozen=True, slots=True)
class Result:
    """One policy's run, finished. `reach` is the load at its end, in whole percent of the fleet."""

    policy: str
    curves: Curves
    reach: int
    refused: int
    seconds: float

    @property
    def row(self) -> PackedRow:
        lost = list(self.curves.frag_amount.values())[-1]
        return PackedRow(self.policy, self.curves.alloc, lost, self.refused, self.seconds)


def compare_policies(
    scenario: Scenario, policies: Sequence[str], builders: Mapping[str, Builder] = MappingProxyType({})
) -> list[Result]:
    """All named policies; names that are not ours are looked up among the builders."""
    rows = scenario.arrivals.pod_rows.tolist()
    results = []
    with progress(policies, len(rows)) as watch:
        for policy in policies:
            run = new_run(scenario, builders.get(policy, policy))
            started = perf_counter()
            replay(run, rows, partial(watch, policy))
            results.append(finish(run, policy, perf_counter() - started))
    return results


def new_run(scenario: Scenario, policy: str | Builder) -> PackRun:
    return PackRun(scenario.nodes, scenario.pods, scenario.arrivals.ranks, policy, scenario.seed)


def finish(run: PackRun, policy: str, seconds: float) -> Result:
    return Result(policy, curves_of(run), reach_percent(run), run.refused, seconds)


def picture(scenario: Scenario, results: Sequence[Result]) -> str:
    """All results in one SVG."""
    title = "How full the fleet gets" + (f" under {len(results)} policies" if len(results) > 1 else "")
    shown = [PackedCurves(each.policy, each.curves.alloc, each.curves.frag_amount) for each in results]
    return draw_packing(title, scenario.words, shown, max(each.reach for each in results))
