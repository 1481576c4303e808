"""Draws a node as a link with its GPUs inside: MIG instances and replicas as parts of a GPU.

A part has classes for its team, its use, its health and, if it is known, its temperature; the page chooses which of
them gives the colour. Parts with the same classes are one path, because a path for each of 8,000 GPUs takes a second to
build.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.views.dashboard.colours import Colours
from shoal.views.dashboard.facts import GpuSlot, Tile
from shoal.views.dashboard.words import amount, plural
from shoal.web.markup import Markup, address, element, joined
from shoal.web.viewer import OTHERS

_GPU, _GAP, _SLICE_GAP = 12.0, 2.0, 0.5
_HEIGHT = 12
_MOST_CACHED = 20_000
_LOW, _MIDDLE, _SATURATED = 40, 70, 95
_WARM, _HOT, _ALERT = 55, 75, 85
"""Degrees Celsius."""


def use_class(slot: GpuSlot) -> str:
    """Green from 70 to 95 percent, yellow from 40 to 70, red below 40 and above 95."""
    if not slot.owner:
        return "u-free"
    return "u-unknown" if slot.load is None else use_class_of(slot.load)


def use_class_of(percent: float) -> str:
    if percent < _LOW:
        return "u-low"
    if percent < _MIDDLE:
        return "u-middle"
    return "u-good" if percent <= _SATURATED else "u-saturated"


def team_class(owner: str, colours: Colours) -> str:
    if not owner:
        return "t-free"
    return "t-others" if owner == OTHERS else f"t-{colours.of(owner)}"


def tile_id(name: str) -> str:
    return f"node-{name}"


def tile_label(tile: Tile) -> str:
    """One line, also for readers of the screen: what the filter finds the node by."""
    node = tile.node
    words = [f"{node.name}: {amount(tile.held)} of {plural(node.gpus, 'GPU')} held"]
    words += [", ".join(f"{owner} {amount(held)}" for owner, held in sorted(tile.sums.items()))] if tile.sums else []
    words += [f"{len(node.broken)} failed"] if node.broken else []
    return "; ".join([*words, *states(tile), node.kind])


def states(tile: Tile) -> list[str]:
    node = tile.node
    return [*([] if node.is_ready else ["not ready"]), *(["cordoned"] if node.is_cordoned else [])]


def heat_class(degrees: float | None) -> str:
    """Red from where the alert GPUHighTemperature begins."""
    if degrees is None:
        return "k-unknown"
    if degrees < _WARM:
        return "k-cool"
    if degrees < _HOT:
        return "k-warm"
    return "k-hot" if degrees <= _ALERT else "k-alert"


class TileMarkup:
    """Draws tiles; one is drawn again only when it has changed."""

    def __init__(self, colours: Colours) -> None:
        self._colours = colours
        self._known: dict[int, tuple[Tile, Sequence[str], Markup]] = {}

    def of(self, tile: Tile, degrees: Sequence[float | None] = ()) -> Markup:
        """`degrees`: of each GPU, where it was measured."""
        heat = [heat_class(one) for one in degrees]
        known = self._known.get(id(tile))
        if known is not None and known[1] == heat:
            return known[2]
        if len(self._known) >= _MOST_CACHED:
            self._known.clear()
        drawn = self._drawn(tile, heat)
        # The tile is kept, because its id is the key.
        self._known[id(tile)] = tile, heat, drawn
        return drawn

    def _drawn(self, tile: Tile, heat: Sequence[str]) -> Markup:
        node = tile.node
        flaws = states(tile)
        marks = [element("em", flaw) for flaw in flaws]
        return element(
            "a",
            element("b", node.name),
            *marks,
            self.gpus(tile, heat) if node.gpus else element("em", "no GPUs"),
            id=tile_id(node.name),
            class_="tile away" if flaws else "tile",
            href=address("node", node.name),
            aria_label=tile_label(tile),
            data_gpus=node.gpus,
        )

    def gpus(self, tile: Tile, heat: Sequence[str] = ()) -> Markup:
        """`heat`: a class for each GPU."""
        paths: dict[str, list[str]] = {}
        crosses: list[str] = []
        for index, parts in enumerate(tile.parts):
            is_broken = index in tile.node.broken
            left = index * (_GPU + _GAP)
            gap = _SLICE_GAP if len(parts) > 1 else 0.0
            for slot in parts:
                x, width = left + slot.start * _GPU, max(0.4, slot.width * _GPU - gap)
                health = "h-failed" if is_broken else "h-held" if slot.owner else "h-free"
                classes = f"{team_class(slot.owner, self._colours)} {use_class(slot)} {health}"
                if index < len(heat) and heat[index] != heat_class(None):
                    classes += f" {heat[index]}"
                paths.setdefault(classes, []).append(f"M{x:.4g} 0h{width:.4g}v{_HEIGHT}h-{width:.4g}z")
            if is_broken:
                crosses.append(f"M{left:.4g} 0l{_GPU:.4g} {_HEIGHT}m0-{_HEIGHT}l-{_GPU:.4g} {_HEIGHT}")
        drawn = [element("path", class_=classes, d="".join(steps)) for classes, steps in paths.items()]
        drawn += [element("path", class_="cross", d="".join(crosses))] if crosses else []
        width = max(1.0, len(tile.parts) * (_GPU + _GAP) - _GAP)
        return element("svg", joined(drawn), viewBox=f"0 0 {width:.4g} {_HEIGHT}", width=f"{width:.4g}", height=_HEIGHT)
