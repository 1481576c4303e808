"""Draws line charts as SVG text; matplotlib would be the largest dependency of the package, for two axes.

One picture holds a title, a legend and panels one below the other on a shared x axis. Each line is labelled with its
last value where it ends, labels never overlap, and the colours follow the reader's light or dark ground.

Guarantees: same values, same bytes; any text is escaped; coordinates stay inside the frame whatever the values are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from shoal.views.palette import Shade, shade

_WIDTH = 960
_LEFT, _RIGHT = 70, 784
_HEAD = 142
_GAP = 70
_FOOT = 58
_LABEL_STEP = 17.0
_LINE_SPACING = 48
_FONT = "-apple-system, 'Segoe UI', 'Inter', 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class Line:
    """One named curve; `bold` for the one the picture is about."""

    name: str
    points: Sequence[tuple[float, float]]
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """A frame of lines; `hint` says which way is good, `ideal` is a dashed line that no curve can pass."""

    title: str
    hint: str
    lines: Sequence[Line]
    height: int
    ideal: Sequence[tuple[float, float]] = ()
    ideal_label: str = ""
    floor: float | None = None
    ceiling: float | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    title: str
    subtitle: str
    x_title: str
    x_range: tuple[float, float]
    panels: Sequence[Panel]


def draw(picture: Picture) -> str:
    """The whole SVG document."""
    names = list(dict.fromkeys(line.name for panel in picture.panels for line in panel.lines))
    classes = {name: f"c{k}" for k, name in enumerate(names)}
    bold = {line.name for panel in picture.panels for line in panel.lines if line.bold}
    height = _HEAD + sum(panel.height for panel in picture.panels) + _GAP * (len(picture.panels) - 1) + _FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"',
        f'role="img" font-family="{_FONT}">',
        f"<title>{escape(picture.title)}</title>",
        _style([(classes[name], shade(name)) for name in names]),
        f'<rect class="card" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="12"/>',
        f'<text class="ink" x="28" y="42" font-size="20" font-weight="650">{escape(picture.title)}</text>',
        f'<text class="soft" x="28" y="66" font-size="13.5">{escape(picture.subtitle)}</text>',
        *_legend(names, classes, bold),
    ]
    top = _HEAD
    for panel in picture.panels:
        parts += _panel(panel, picture.x_range, top, classes)
        top += panel.height + _GAP
    parts.append(
        f'<text class="soft" x="{(_LEFT + _RIGHT) / 2:.0f}" y="{height - 14}" font-size="13" '
        f'text-anchor="middle">{escape(picture.x_title)}</text></svg>\n'
    )
    return "\n".join(parts)


def _style(shades: Sequence[tuple[str, Shade]]) -> str:
    def rules(ground: str, rim: str, ink: str, soft: str, grid: str, shown: Sequence[tuple[str, str]]) -> str:
        return "".join(
            [
                f".card{{fill:{ground};stroke:{rim}}}.ink{{fill:{ink}}}.soft{{fill:{soft}}}",
                f".grid{{stroke:{grid}}}.axis{{stroke:{soft}}}.ideal{{stroke:{soft}}}",
                *(f".l{name}{{stroke:{colour}}}.f{name}{{fill:{colour}}}" for name, colour in shown),
            ]
        )

    light = rules("#ffffff", "#d8dee4", "#1f2328", "#59636e", "#e7ebef", [(n, s.light) for n, s in shades])
    dark = rules("#0d1117", "#30363d", "#e6edf3", "#9198a1", "#21262d", [(n, s.dark) for n, s in shades])
    return f"<style>{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"


def _legend(names: Sequence[str], classes: dict[str, str], bold: set[str]) -> list[str]:
    parts = []
    x = 28.0
    for name in names:
        width, weight = (4.5, 650) if name in bold else (2.5, 400)
        parts.append(
            f'<line class="l{classes[name]}" x1="{x:.1f}" y1="93" x2="{x + 20:.1f}" y2="93" '
            f'stroke-width="{width}" stroke-linecap="round"/>'
            f'<text class="ink" x="{x + 28:.1f}" y="97.5" font-size="13" font-weight="{weight}">{escape(name)}</text>'
        )
        x += 52 + _text_width(name)
    return parts


def _text_width(text: str) -> float:
    """About how wide 13 px letters run; an SVG cannot ask the font."""
    return sum(4.2 if c in "fijlrt.' " else 9.6 if c.isupper() or c in "mw" else 7.4 for c in text)


def _panel(panel: Panel, x_range: tuple[float, float], top: int, classes: dict[str, str]) -> list[str]:
    low, high, step = _y_scale(panel)
    bottom = top + panel.height
    x_low, x_high = x_range

    def at(x: float, y: float) -> tuple[float, float]:
        across = (min(max(x, x_low), x_high) - x_low) / (x_high - x_low)
        up = (min(max(y, low), high) - low) / (high - low)
        return _LEFT + across * (_RIGHT - _LEFT), bottom - up * panel.height

    parts = [
        f'<text class="ink" x="{_LEFT}" y="{top - 13}" font-size="14" font-weight="600">{escape(panel.title)}',
        f'<tspan class="soft" dx="10" font-size="12.5" font-weight="400">{escape(panel.hint)}</tspan></text>',
    ]
    for k in range(round((high - low) / step) + 1):
        _, y = at(x_low, low + k * step)
        parts.append(
            f'<line class="{"axis" if k == 0 else "grid"}" x1="{_LEFT}" y1="{y:.1f}" x2="{_RIGHT}" y2="{y:.1f}"/>'
            f'<text class="soft" x="{_LEFT - 9}" y="{y + 4.5:.1f}" font-size="12.5" text-anchor="end">'
            f"{low + k * step:g} %</text>"
        )
    for tick in _ticks(x_low, x_high):
        x, _ = at(tick, low)
        parts.append(
            f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>'
            f'<text class="soft" x="{x:.1f}" y="{bottom + 19}" font-size="12.5" text-anchor="middle">{tick:g} %</text>'
        )
    parts += _ideal(panel, [at(x, y) for x, y in panel.ideal if x_low <= x <= x_high])
    ends = []
    for line in sorted(panel.lines, key=lambda each: each.bold):
        inside = [(x, y) for x, y in line.points if x_low <= x <= x_high]
        if not inside:
            continue
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in inside))
        width = 3.6 if line.bold else 2
        parts.append(
            f'<polyline class="l{classes[line.name]}" points="{path}" fill="none" stroke-width="{width}" '
            'stroke-linejoin="round" stroke-linecap="round"/>'
        )
        ends.append((at(*inside[-1]), line, inside[-1][1]))
    return parts + _end_labels(ends, top, bottom, classes)


def _ideal(panel: Panel, points: Sequence[tuple[float, float]]) -> list[str]:
    if len(points) < 2:
        return []
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    # The label is in the corner above the climb, which no curve can reach.
    x, y = points[len(points) * 3 // 10]
    return [
        f'<polyline class="ideal" points="{path}" fill="none" stroke-width="1.4" stroke-dasharray="2 5"',
        'stroke-linecap="round"/>',
        f'<text class="soft" x="{x - 14:.1f}" y="{y - 6:.1f}" font-size="12.5" text-anchor="end">',
        f"{escape(panel.ideal_label)}</text>",
    ]


def _end_labels(
    ends: Sequence[tuple[tuple[float, float], Line, float]], top: float, bottom: float, classes: dict[str, str]
) -> list[str]:
    """Name and last value beside each line end, pushed apart until none covers another."""
    ordered = sorted(ends, key=lambda end: end[0][1])
    heights = _spread([y for (_, y), _, _ in ordered], top, bottom)
    parts = []
    for ((x, y), line, value), label_y in zip(ordered, heights, strict=True):
        name, weight = classes[line.name], 650 if line.bold else 450
        elbow = _RIGHT + 10
        parts.append(
            f'<circle class="f{name}" cx="{x:.1f}" cy="{y:.1f}" r="{4.2 if line.bold else 3}"/>'
            f'<polyline class="l{name}" points="{x:.1f},{y:.1f} {elbow},{label_y:.1f} {elbow + 7},{label_y:.1f}" '
            'fill="none" stroke-width="1" opacity="0.55"/>'
            f'<text class="f{name}" x="{elbow + 12}" y="{label_y + 4.5:.1f}" font-size="13" font-weight="{weight}">'
            f'{escape(line.name)}<tspan dx="6">{value:.1f} %</tspan></text>'
        )
    return parts


def _spread(wanted: Sequence[float], top: float, bottom: float) -> list[float]:
    """Heights one label apart with the least squared distance to the wanted ones: labels too close form a block."""
    blocks: list[tuple[float, int]] = []
    for k, y in enumerate(wanted):
        mean, size = y - k * _LABEL_STEP, 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    loose = [mean for mean, size in blocks for _ in range(size)]
    last = bottom - (len(loose) - 1) * _LABEL_STEP
    return [max(min(y, last), top) + k * _LABEL_STEP for k, y in enumerate(loose)]


def _y_scale(panel: Panel) -> tuple[float, float, float]:
    values = [y for line in panel.lines for _, y in line.points if math.isfinite(y)] or [0.0, 1.0]
    low = min(values) if panel.floor is None else panel.floor
    high = max(values) if panel.ceiling is None else panel.ceiling
    step = _nice_step(max(high - low, 1.0) * _LINE_SPACING / panel.height)
    low, high = math.floor(low / step) * step, math.ceil(high / step - 1e-9) * step
    return low, max(high, low + step), step


def _ticks(low: float, high: float) -> list[float]:
    step = _nice_step((high - low) / 8)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _nice_step(rough: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below the rough step."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
