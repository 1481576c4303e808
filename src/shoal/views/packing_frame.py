"""One moment of a packing run as a terminal picture: the fleet as tiles, one bar for all its GPUs, the counters.

Guarantees: as many lines as the terminal has, less one, and no wider; the same moment draws the same frame.

Rejected: rich's Layout of bordered panels. Borders cost six of twenty-four lines and say nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from shoal.views.fleet_tiles import FREE, FULL, SHARED, NodeModel, draw_tiles

_MARGIN = 1
_CHROME_LINES = 7


@dataclass(frozen=True, slots=True)
class PackingState:
    """What is true after some arrivals; the three shares are percent of the fleet's GPUs."""

    title: str
    pods: int
    of_pods: int
    placed: int
    refused: int
    arrived: float
    allocated: float
    fragmented: float
    per_second: float


def draw_frame(
    moment: PackingState, kinds: Sequence[NodeModel], free_milli: NDArray[np.int32], width: int, height: int
) -> Text:
    inner = width - 2 * _MARGIN
    tiles = draw_tiles(kinds, free_milli, inner, height - _CHROME_LINES)
    lines = [
        Text(moment.title, style="bold"),
        Text(),
        *tiles.split("\n"),
        Text(),
        _bar(moment, inner),
        _ends(_shares(moment), f"{moment.per_second:,.0f} placements/s", inner),
        _ends(_counters(moment), f"arrived {moment.arrived:.1f} %", inner),
    ]
    for line in lines:
        line.truncate(inner)
        line.pad_left(_MARGIN)
    return Text("\n", no_wrap=True, overflow="crop").join(lines)


def _bar(moment: PackingState, width: int) -> Text:
    full = round(width * moment.allocated / 100)
    lost = min(width - full, round(width * moment.fragmented / 100))
    bar = Text("█" * full, style=FULL)
    bar.append("▓" * lost, style=SHARED)
    bar.append("█" * (width - full - lost), style=FREE)
    return bar


def _shares(moment: PackingState) -> Text:
    idle = max(0.0, 100 - moment.allocated - moment.fragmented)
    text = Text("█ ", style=FULL)
    text.append(f"allocated {moment.allocated:.1f} %", style="bold default")
    text.append("   ▓ ", style=SHARED)
    text.append(f"in fragments {moment.fragmented:.1f} %", style="default")
    text.append("   █ ", style=FREE)
    text.append(f"free {idle:.1f} %", style="default")
    return text


def _counters(moment: PackingState) -> Text:
    refused = f"   refused {moment.refused:,}" if moment.refused else ""
    return Text(f"{moment.pods:,} of {moment.of_pods:,} pods   placed {moment.placed:,}{refused}", style="dim")


def _ends(left: Text, right: str, width: int) -> Text:
    left.append(" " * max(2, width - left.cell_len - len(right)))
    left.append(right, style="bold default" if right.endswith("/s") else "dim")
    return left
