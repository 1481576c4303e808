"""Nodes as tiles, kind by kind: for each GPU a stretch of blocks in the colour of the team that holds it.

The most telling form that fits is taken: a line for each node with its holders, several nodes in a line, or one block
for each node, as high as the node is full. A GPU that is held, free, idle or failed has a letter of its own, so that
they are distinguishable without colours too. Nodes that do not fit even so are counted, never cut off silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from shoal.views.dashboard.colours import AWAY, BROKEN, FREE
from shoal.views.dashboard.facts import DashboardNode, GpuSlot, Tile
from shoal.views.dashboard.words import amount, plural

_SIZES = (8, 4, 2, 1)
"""Columns of one GPU."""
_BLOCK, _EDGE, _IDLE, _EMPTY, _CROSS, _AWAY = "▇", "▋", "▁", "·", "X", "-"
"""Seven eighths high, so that lines stay apart; the edge ends a part that has a neighbour on the same GPU."""
_LEVELS = "▁▂▃▄▅▆▇"
_IDLE_PERCENT = 10
"""A GPU that is held and less busy than this is drawn as idle."""
_GAP = 3
_KIND = 14
"""Columns of the name of a kind, in front of its nodes."""
_LONGEST_NAME = 32
_HOLDERS = 40
"""Columns that the holders of a node need beside its tile."""
Colour = Callable[[str], str]
Glyph = tuple[str, str]
"""A letter and its style."""


class Pen(msgspec.Struct, frozen=True):
    """How tiles are drawn."""

    colour: Colour
    """Of a team."""
    selected: str = ""
    """The node under the cursor."""


class DrawnTiles(msgspec.Struct, frozen=True):
    lines: list[Text]
    per_line: int
    """Nodes side by side."""


def draw_tiles(tiles: Sequence[Tile], pen: Pen, width: int, height: int) -> DrawnTiles:
    """At most `height` lines, none wider than `width`."""
    groups: dict[str, list[Tile]] = {}
    for tile in tiles:
        groups.setdefault(tile.node.kind, []).append(tile)
    if len(tiles) + len(groups) <= height:
        kinds = [_TileKind(members) for members in groups.values()]
        size = next((size for size in _SIZES if all(kind.width(size) <= width - _HOLDERS for kind in kinds)), 0)
        if size:
            drawn = zip(groups, (_Table(kind, size) for kind in kinds), strict=True)
            return DrawnTiles([line for name, table in drawn for line in table.draw(name, pen)], 1)
    # Not even two letters for each node would fit: sizes need not be tried.
    are_too_many = len(tiles) * 2 > width * height
    for is_cut in () if are_too_many else (False, True):
        kinds = [_TileKind(members, is_cut=is_cut) for members in groups.values()]
        for size in _SIZES:
            grids = [_Grid(kind, size, width) for kind in kinds]
            if all(grid.tile <= width for grid in grids) and sum(1 + grid.lines for grid in grids) <= height:
                lines = [line for name, grid in zip(groups, grids, strict=True) for line in grid.draw(name, pen)]
                return DrawnTiles(lines, max((grid.per_line for grid in grids), default=1))
    return DrawnTiles(_overview(groups, pen, width, height), max(1, width - _KIND))


class _TileKind:
    """What tiles of one kind have in common, whatever their size."""

    def __init__(self, tiles: Sequence[Tile], *, is_cut: bool = False) -> None:
        """`is_cut`: without what all names begin with, where full names take too much room."""
        self.tiles = tiles
        names = [tile.node.name for tile in tiles]
        self.cut = _shared_words(min(names), max(names)) if is_cut else 0
        self.name = min(_LONGEST_NAME, max(cell_len(name[self.cut :]) for name in names)) + 1
        self.gpus = max(tile.node.gpus for tile in tiles)

    def width(self, size: int) -> int:
        return self.name + self.gpus * (size + _gap(size))

    def append(self, line: Text, tile: Tile, size: int, pen: Pen) -> None:
        """Its name and its GPUs, padded to the width of the kind."""
        ends = line.cell_len + self.width(size)
        line.append(set_cell_size(tile.node.name[self.cut :], self.name - 1), style=_name_style(tile.node, pen))
        line.append(" ")
        for index, parts in enumerate(tile.parts):
            _append(line, _gpu(tile.node, index, parts, size, pen.colour))
            line.append(" " * _gap(size))
        line.append(" " * (ends - line.cell_len))


class _Table:
    """A line for each node, with its holders."""

    def __init__(self, kind: _TileKind, size: int) -> None:
        self._kind, self._size = kind, size

    def draw(self, kind: str, pen: Pen) -> list[Text]:
        lines = [_kind_line(kind, self._kind.tiles)]
        for tile in self._kind.tiles:
            line = Text()
            self._kind.append(line, tile, self._size, pen)
            line.append(f" {f'{amount(tile.held)}/{tile.node.gpus}':>7}  ")
            _append_state(line, tile.node)
            for owner in sorted(tile.sums):
                line.append(f"{owner} {amount(tile.sums[owner])}  ", style=pen.colour(owner))
            lines.append(line)
        return lines


def _append_state(line: Text, node: DashboardNode) -> None:
    states = [
        *(["not ready"] if not node.is_ready else []),
        *(["cordoned"] if node.is_cordoned else []),
        *(["leaving"] if node.is_leaving else []),
        *([f"{plural(len(node.broken), 'GPU')} failed"] if node.broken else []),
    ]
    if states:
        line.append(", ".join(states) + "  ", style=BROKEN)


class _Grid:
    """Tiles of one kind, all of one size, as many in a line as fit."""

    def __init__(self, kind: _TileKind, size: int, width: int) -> None:
        self._kind, self._size = kind, size
        self.tile = kind.width(size)
        self.per_line = max(1, (width + _GAP) // (self.tile + _GAP))

    @property
    def lines(self) -> int:
        return -(-len(self._kind.tiles) // self.per_line)

    def draw(self, kind: str, pen: Pen) -> list[Text]:
        tiles = self._kind.tiles
        lines = [_kind_line(kind, tiles)]
        for at in range(0, len(tiles), self.per_line):
            line = Text()
            for tile in tiles[at : at + self.per_line]:
                self._kind.append(line, tile, self._size, pen)
                line.append(" " * _GAP)
            line.rstrip()
            lines.append(line)
        return lines


def _gap(size: int) -> int:
    return 1 if size > 1 else 0


def _shared_words(one: str, other: str) -> int:
    """The length of the words, dash included, that two names begin with."""
    length = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    return one[:length].rfind("-") + 1


def _kind_line(kind: str, tiles: Sequence[Tile]) -> Text:
    line = Text(kind, style="bold")
    away = sum(not tile.node.is_ready for tile in tiles)
    line.append(f"  {plural(len(tiles), 'node')}", style="dim")
    if away:
        line.append(f", {away:,} not ready", style=BROKEN)
    return line


def _append(line: Text, glyphs: Iterable[Glyph]) -> None:
    """Neighbours of one style as one: drawing costs the styles, not the letters."""
    for style, run in groupby(glyphs, key=lambda glyph: glyph[1]):
        line.append("".join(letter for letter, _ in run), style=style)


def _gpu(node: DashboardNode, index: int, parts: Sequence[GpuSlot], size: int, colour: Colour) -> Iterator[Glyph]:
    if index in node.broken:
        yield _CROSS * size, BROKEN
        return
    if size == 1 and len(parts) > 1:
        yield _mixed(node, parts, colour)
        return
    for column in range(size):
        middle = (column + 0.5) / size
        part = next((part for part in parts if part.start <= middle < part.start + part.width), None)
        if part is None or not part.owner:
            yield _unheld(node)
            continue
        ends = part.start + part.width < (column + 1.5) / size and len(parts) > 1 and column + 1 < size
        is_idle = part.load is not None and part.load < _IDLE_PERCENT
        yield _EDGE if ends else _IDLE if is_idle else _BLOCK, colour(part.owner)


def _unheld(node: DashboardNode) -> Glyph:
    return (_EMPTY, FREE) if node.is_ready and not node.is_cordoned else (_AWAY, AWAY)


def _mixed(node: DashboardNode, parts: Sequence[GpuSlot], colour: Colour) -> Glyph:
    """A GPU of several parts in one column: as high as it is full, in the colour of the team that holds most of it."""
    sums: dict[str, float] = {}
    for part in parts:
        if part.owner:
            sums[part.owner] = sums.get(part.owner, 0.0) + part.width
    if not sums:
        return _unheld(node)
    used = sum(sums.values()) / sum(part.width for part in parts)
    # The lowest block is for idle GPUs.
    return _LEVELS[max(1, round(used * len(_LEVELS)) - 1)], colour(max(sums, key=lambda owner: sums[owner]))


def _name_style(node: DashboardNode, pen: Pen) -> str:
    style = f"bold {BROKEN}" if not node.is_ready else "strike" if node.is_cordoned else ""
    return f"{style} reverse" if node.name == pen.selected else style or "dim"


# -- a block for each node -------------------------------------------------------------------------------------------


def _overview(groups: dict[str, list[Tile]], pen: Pen, width: int, height: int) -> list[Text]:
    kinds = list(groups)[: max(1, height)]
    room = max(1, width - _KIND)
    lines: list[Text] = []
    for kind, share in zip(kinds, _shares([-(-len(groups[kind]) // room) for kind in kinds], height), strict=True):
        lines += _blocks(kind, groups[kind], pen, room, share)
    if len(kinds) < len(groups):
        lines[-1] = Text(f"and {len(groups) - len(kinds) + 1} more kinds of node", style="dim")
    return lines


def _shares(wanted: Sequence[int], height: int) -> list[int]:
    """Lines for each kind: what it needs, and the longest give until all fit."""
    lines = list(wanted)
    while sum(lines) > height and max(lines) > 1:
        lines[lines.index(max(lines))] -= 1
    return lines


def _blocks(kind: str, tiles: Sequence[Tile], pen: Pen, room: int, height: int) -> list[Text]:
    hidden = len(tiles) - room * height
    more = f" +{hidden + len(f' +{hidden:,} more'):,} more" if hidden > 0 else ""
    shown = tiles[: room * height - len(more)]
    lines = []
    for at in range(0, len(shown), room):
        line = Text(set_cell_size("" if at else kind, _KIND - 1) + " ", style="bold")
        _append(line, (_block(tile, pen) for tile in shown[at : at + room]))
        lines.append(line)
    lines[-1].append(more, style="dim")
    return lines


def _block(tile: Tile, pen: Pen) -> Glyph:
    """How full a node is, in the colour of the team that holds the most of it."""
    cursor = " reverse" if tile.node.name == pen.selected else ""
    if not tile.node.is_ready:
        return _CROSS, BROKEN + cursor
    if not tile.held:
        return _EMPTY, FREE + cursor
    used = tile.held / max(1, tile.node.gpus)
    level = min(len(_LEVELS) - 1, max(0, round(used * len(_LEVELS)) - 1))
    return _LEVELS[level], pen.colour(tile.main_owner) + cursor
