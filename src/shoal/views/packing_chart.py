"""The picture of a packing run: what part of the fleet works, and what part is lost to fragments, as load arrives.

It opens where the policies part, at 80 % load, because below that every policy places nearly everything; a run that
stops earlier is shown over its last part.

Rejected: a bar per policy at one load. It hides that policies part early, which is when users feel it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shoal.views.chart import Line, Panel, Picture, draw

_FOCUS_PERCENT = 80
_SPAN = 50


@dataclass(frozen=True, slots=True)
class PackedCurves:
    """One policy: allocated and fragmented share of the fleet's GPUs, in percent, by arrived load in percent."""

    policy: str
    alloc: Mapping[int, float]
    fragmented: Mapping[int, float]


def draw_packing(title: str, subtitle: str, runs: Sequence[PackedCurves], reach: int, hero: str = "Shoal") -> str:
    """An SVG of all runs; `reach` is the last load that arrived, in percent."""
    low = _FOCUS_PERCENT if reach >= _FOCUS_PERCENT + 25 else max(0, reach - _SPAN)
    high = max(reach, low + 1)
    alloc = [Line(run.policy, _within(run.alloc, low, high), run.policy == hero) for run in runs]
    fragments = [Line(run.policy, _within(run.fragmented, low, high), run.policy == hero) for run in runs]
    placed = Panel(
        title="GPUs allocated, of the fleet",
        hint="higher is better",
        lines=alloc,
        height=300,
        ideal=[(float(x), float(min(x, 100))) for x in range(low, high + 1)],
        ideal_label="everything that arrived",
        ceiling=float(min(high, 100)),
    )
    lost = Panel(
        title="GPUs idle in pieces that typical pods cannot use",
        hint="lower is better",
        lines=fragments,
        height=170,
        floor=0.0,
    )
    return draw(Picture(title, subtitle, "GPU load arrived, of the fleet", (low, high), [placed, lost]))


def _within(curve: Mapping[int, float], low: int, high: int) -> list[tuple[float, float]]:
    return [(float(x), curve[x]) for x in range(low, high + 1) if x in curve]
