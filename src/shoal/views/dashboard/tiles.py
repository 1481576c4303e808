"""Nodes as tiles, kind by kind: for each GPU a stretch of blocks in the colour of the team that holds it.

The largest size that fits is taken, so that a few nodes show every MIG instance and a thousand still show how full they
are: there a node is one block, as high as it is full. Nodes that do not fit even so are counted, never cut off
silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from shoal.views.dashboard.colours import AWAY, BROKEN
from shoal.views.dashboard.facts import GpuSlot, NodeFacts, Tile
from shoal.views.dashboard.gpu_use import FREE

_SIZES = (8, 4, 2, 1)
"""Columns of one GPU."""
_BLOCK, _EDGE, _CROSS = "▇", "▋", "X"
"""Seven eighths high, so that lines stay apart; the edge ends a part that has a neighbour on the same GPU."""
_LEVELS = "▁▂▃▄▅▆▇"
_GAP = 3
_KIND = 14
"""Columns of a kind's name where it stands before its nodes."""
Colour = Callable[[str], str]
Glyph = tuple[str, str]
"""A letter and its style."""


def draw_tiles(tiles: Sequence[Tile], colour: Colour, width: int, height: int) -> list[Text]:
    """At most `height` lines, none wider than `width`."""
    groups: dict[str, list[Tile]] = {}
    for tile in tiles:
        groups.setdefault(tile.node.kind, []).append(tile)
    kinds = [_TileKind(members) for members in groups.values()]
    for size in _SIZES:
        grids = [_Grid(kind, size, width) for kind in kinds]
        if all(grid.tile <= width for grid in grids) and sum(1 + grid.lines for grid in grids) <= height:
            return [line for kind, grid in zip(groups, grids, strict=True) for line in grid.draw(kind, colour)]
    return _overview(groups, colour, width, height)


class _TileKind:
    """What tiles of one kind have in common, whatever their size."""

    def __init__(self, tiles: Sequence[Tile]) -> None:
        self.tiles = tiles
        names = [tile.node.name for tile in tiles]
        # What all names begin with says the kind again; a number alone is found quicker.
        self.cut = _shared_words(min(names), max(names))
        self.name = min(16, max(cell_len(name[self.cut :]) for name in names)) + 1
        self.gpus = max(tile.node.gpus for tile in tiles)


class _Grid:
    """Tiles of one kind, all of one size."""

    def __init__(self, kind: _TileKind, size: int, width: int) -> None:
        self._tiles = kind.tiles
        self._size = size
        self._cut, self._name = kind.cut, kind.name
        self._gap = 1 if size > 1 else 0
        self.tile = kind.name + kind.gpus * (size + self._gap)
        self._per_line = max(1, (width + _GAP) // (self.tile + _GAP))

    @property
    def lines(self) -> int:
        return -(-len(self._tiles) // self._per_line)

    def draw(self, kind: str, colour: Colour) -> list[Text]:
        lines = [_kind_line(kind, self._tiles)]
        for at in range(0, len(self._tiles), self._per_line):
            line = Text()
            for tile in self._tiles[at : at + self._per_line]:
                self._append(line, tile, colour)
            lines.append(line)
        return lines

    def _append(self, line: Text, tile: Tile, colour: Colour) -> None:
        ends = line.cell_len + self.tile + _GAP
        line.append(set_cell_size(tile.node.name[self._cut :], self._name - 1) + " ", style=_name_style(tile.node))
        for index, parts in enumerate(tile.parts):
            _append(line, _gpu(tile.node, index, parts, self._size, colour))
            line.append(" " * self._gap)
        line.append(" " * (ends - line.cell_len))


def _shared_words(one: str, other: str) -> int:
    """The length of the words, dash included, that two names begin with."""
    length = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    return one[:length].rfind("-") + 1


def _kind_line(kind: str, tiles: Sequence[Tile]) -> Text:
    line = Text(kind, style="bold")
    away = sum(not tile.node.is_ready for tile in tiles)
    line.append(f"  {len(tiles):,} nodes", style="dim")
    if away:
        line.append(f", {away:,} not ready", style=BROKEN)
    return line


def _append(line: Text, glyphs: Iterable[Glyph]) -> None:
    """Neighbours of one style as one: drawing costs the styles, not the letters."""
    for style, run in groupby(glyphs, key=lambda glyph: glyph[1]):
        line.append("".join(letter for letter, _ in run), style=style)


def _gpu(node: NodeFacts, index: int, parts: Sequence[GpuSlot], size: int, colour: Colour) -> Iterator[Glyph]:
    if index in node.broken:
        yield _CROSS * size, BROKEN
        return
    for column in range(size):
        middle = (column + 0.5) / size
        found = next((part for part in parts if part.start <= middle < part.start + part.width), None)
        owner = found.owner if found is not None else FREE
        ends = found is not None and found.start + found.width < (column + 1.5) / size
        glyph = _EDGE if ends and len(parts) > 1 and column + 1 < size else _BLOCK
        yield glyph, AWAY if owner == FREE and not node.is_ready else colour(owner)


def _name_style(node: NodeFacts) -> str:
    if not node.is_ready:
        return f"bold {BROKEN}"
    return "dim strike" if node.is_cordoned else "dim"


# -- a block for each node -------------------------------------------------------------------------------------------


def _overview(groups: dict[str, list[Tile]], colour: Colour, width: int, height: int) -> list[Text]:
    kinds = list(groups)[: max(1, height)]
    room = max(1, width - _KIND)
    lines: list[Text] = []
    for kind, share in zip(kinds, _shares([-(-len(groups[kind]) // room) for kind in kinds], height), strict=True):
        lines += _blocks(kind, groups[kind], colour, room, share)
    if len(kinds) < len(groups):
        lines[-1] = Text(f"and {len(groups) - len(kinds) + 1} more kinds of node", style="dim")
    return lines


def _shares(wanted: Sequence[int], height: int) -> list[int]:
    """Lines for each kind: what it needs, and the longest give until all fit."""
    lines = list(wanted)
    while sum(lines) > height and max(lines) > 1:
        lines[lines.index(max(lines))] -= 1
    return lines


def _blocks(kind: str, tiles: Sequence[Tile], colour: Colour, room: int, height: int) -> list[Text]:
    hidden = len(tiles) - room * height
    more = f" +{hidden + len(f' +{hidden:,} more'):,} more" if hidden > 0 else ""
    shown = tiles[: room * height - len(more)]
    lines = []
    for at in range(0, len(shown), room):
        line = Text(set_cell_size("" if at else kind, _KIND - 1) + " ", style="bold")
        _append(line, (_block(tile, colour) for tile in shown[at : at + room]))
        lines.append(line)
    lines[-1].append(more, style="dim")
    return lines


def _block(tile: Tile, colour: Colour) -> Glyph:
    """How full a node is, in the colour of the team that holds the most of it."""
    sums = tile.sums
    if not tile.node.is_ready:
        return _CROSS, BROKEN
    if not sums:
        return _LEVELS[0], colour(FREE)
    used = sum(sums.values()) / max(1, tile.node.gpus)
    level = min(len(_LEVELS) - 1, max(0, round(used * len(_LEVELS)) - 1))
    return _LEVELS[level], colour(max(sums, key=lambda owner: sums[owner]))
