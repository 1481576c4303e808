"""A fleet as rows of tiles in the terminal: a small gauge for each GPU, a block of gauges for each node.

A gauge is dark while its GPU is free, rises in a warm colour while pods share it, and is solid when full. Free space
scattered over many half-filled gauges is exactly what packing tries to avoid, and the eye finds it at once.

Guarantees: fits the width and height it is given; nodes that do not fit are counted, not cut off silently.

Rejected: one bar per node. It cannot show whether the free half of a node is four GPUs or eight halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

# Named colours of the 256: what a multiplexer cannot show it rounds, and greys suffer most.
FREE = "grey27"
FULL = "cornflower_blue"
SHARED = "orange1"
_LEVELS = " ▁▂▃▄▅▆▇"
# Seven eighths high, so that a line of nodes stays apart from the line above it.
_WHOLE = "▇"
_LABEL = 12


@dataclass(frozen=True, slots=True)
class NodeModel:
    """Nodes of one GPU model, as rows of the free-milli matrix."""

    model: str
    gpus: int
    rows: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Size:
    """How a gauge is drawn: its glyph so many times, then a gap, so that neighbours stay apart."""

    repeat: int
    gap: str

    def node_width(self, kind: NodeModel) -> int:
        return kind.gpus * (self.repeat + len(self.gap)) + 1

    def per_line(self, kind: NodeModel, room: int) -> int:
        return max(1, room // self.node_width(kind))

    def lines(self, kind: NodeModel, room: int) -> int:
        return -(-len(kind.rows) // self.per_line(kind, room))


_SIZES = (_Size(2, " "), _Size(1, " "), _Size(1, ""))


def draw_tiles(kinds: Sequence[NodeModel], free_milli: NDArray[np.int32], width: int, height: int) -> Text:
    """All kinds one below the other, as large as fits, and apart where there are lines to spare."""
    room = width - _LABEL
    size = next((size for size in _SIZES if _fits(kinds, size, room, height)), _SIZES[-1])
    spaced = _height(kinds, room, size) + len(kinds) - 1 <= height
    text = Text()
    for number, (kind, lines) in enumerate(zip(kinds, _shares(kinds, room, size, height), strict=True)):
        if number:
            text.append("\n\n" if spaced else "\n")
        _append_kind(text, kind, free_milli, size, room, lines)
    return text


def _shares(kinds: Sequence[NodeModel], room: int, size: _Size, height: int) -> list[int]:
    """Lines for each kind: one at least, then what it needs, then the longest give until all fit."""
    lines = [size.lines(kind, room) for kind in kinds]
    while sum(lines) > height and max(lines) > 1:
        lines[lines.index(max(lines))] -= 1
    return lines


def _fits(kinds: Sequence[NodeModel], size: _Size, room: int, height: int) -> bool:
    return _height(kinds, room, size) <= height and all(size.node_width(kind) <= room for kind in kinds)


def _height(kinds: Sequence[NodeModel], room: int, size: _Size) -> int:
    return sum(size.lines(kind, room) for kind in kinds)


def _append_kind(
    text: Text, kind: NodeModel, free_milli: NDArray[np.int32], size: _Size, room: int, lines: int
) -> None:
    free = free_milli[list(kind.rows), : kind.gpus]
    used = 1 - free.sum() / max(1, 1000 * free.size)
    per_line = size.per_line(kind, room)
    hidden = len(kind.rows) - per_line * lines
    for line in range(lines):
        if line == 0:
            text.append(f"{kind.model[:6]:<6}", style="bold")
            word = f"+{hidden:,}" if hidden > 0 and lines == 1 else f"{100 * used:3.0f} %"
            text.append(word.ljust(_LABEL - 6), style="dim")
        else:
            more = f"+{hidden:,} more" if hidden > 0 and line == lines - 1 else ""
            text.append("\n" + more[: _LABEL - 1].ljust(_LABEL), style="dim")
        for node in free[line * per_line : (line + 1) * per_line].tolist():
            for milli in node:
                _append_gauge(text, milli, size)
            text.append(" ")


def _append_gauge(text: Text, free_milli: int, size: _Size) -> None:
    if free_milli <= 0:
        text.append(_WHOLE * size.repeat, style=FULL)
    elif free_milli >= 1000:
        text.append(_WHOLE * size.repeat, style=FREE)
    else:
        # A share never looks empty and never full: those two are what the eye counts.
        level = min(6, max(1, round((1000 - free_milli) * 7 / 1000)))
        text.append(_LEVELS[level] * size.repeat, style=SHARED)
    text.append(size.gap)
