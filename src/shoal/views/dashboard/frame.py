"""One frame of the dashboard: how full the fleet is and with which teams, every node, what waits and why, recent
events.

Guarantees: exactly fits the width and height it is given (one line less, for the cursor); the same scene draws the same
frame. Waiting pods and events stand side by side where there is room, one below the other where there is not.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from shoal.views.dashboard.colours import BROKEN, FREE, Colours
from shoal.views.dashboard.facts import DashboardFacts, EventFacts, Fleet, PodFacts
from shoal.views.dashboard.tiles import draw_tiles

_MARGIN = 1
_WIDE = 140
"""Columns from which lists stand side by side."""
_MOST_TEAMS = 8


def draw_frame(scene: DashboardFacts, colours: Colours, width: int, height: int) -> Text:
    inner = max(20, width - 2 * _MARGIN)
    room = max(8, height - 1)
    head = [*_heading(scene, inner), *_bar(scene.fleet, colours, inner), Text()]
    foot = [Text(scene.footer, style="dim")] if scene.footer else []
    lists = _list_lines(room - len(head) - len(foot), len(scene.tiles))
    middle = draw_tiles(scene.tiles, colours.of, inner, room - len(head) - len(foot) - lists - 1)
    lower = _lists(scene, inner, room - len(head) - len(foot) - len(middle) - 1)
    lines = [*head, *middle, Text(), *lower]
    lines += [Text()] * (room - len(foot) - len(lines)) + foot
    for line in lines:
        line.truncate(inner, overflow="ellipsis")
        line.pad_left(_MARGIN)
    return Text("\n", no_wrap=True, overflow="crop").join(lines[:room])


def _list_lines(room: int, nodes: int) -> int:
    """What the lists get at least: a third, so that a large fleet does not push the reasons off the screen."""
    least = room // 3
    return max(5, least) if nodes else room - 2


def _heading(scene: DashboardFacts, width: int) -> list[Text]:
    left = Text(scene.title, style="bold")
    left.append(f"  {len(scene.tiles):,} nodes {scene.fleet.gpus:,} GPUs", style="default")
    counts = f"{scene.running:,} running  {scene.waits:,} waiting  {scene.done:,} done"
    right = Text(counts + (f"  {scene.failed:,} failed" if scene.failed else ""), style="default")
    right.append(f"  {scene.clock}", style="dim")
    left.append(" " * max(1, width - left.cell_len - right.cell_len))
    left.append_text(right)
    return [left]


def _bar(fleet: Fleet, colours: Colours, width: int) -> list[Text]:
    """All GPUs of the fleet as one bar, and the legend below it."""
    gpus, sums = fleet.gpus, fleet.sums
    held = sum(sums.values())
    share = f" {100 * held / max(1, gpus):3.0f} %"
    length = width - len(share)
    bar, used = Text(), 0
    for owner in sorted(sums):
        columns = min(length - used, round(length * sums[owner] / max(1, gpus)))
        used += columns
        bar.append("█" * columns, style=colours.of(owner))
    bar.append("█" * (length - used), style=FREE)
    bar.append(share, style="bold")
    return [bar, _legend(fleet, colours, gpus - held)]


def _legend(fleet: Fleet, colours: Colours, free: float) -> Text:
    legend, sums = Text(), fleet.sums
    for owner in sorted(sums, key=lambda one: (-sums[one], one))[:_MOST_TEAMS]:
        legend.append("■ ", style=colours.of(owner))
        legend.append(f"{owner} {sums[owner]:.4g}   ")
    if len(sums) > _MOST_TEAMS:
        legend.append(f"{len(sums) - _MOST_TEAMS} more   ", style="dim")
    legend.append("■ ", style=FREE)
    legend.append(f"free {free:.4g}", style="dim")
    if fleet.broken:
        legend.append(f"   X failed {fleet.broken}", style=BROKEN)
    return legend


def _lists(scene: DashboardFacts, width: int, height: int) -> list[Text]:
    if height <= 1:
        return []
    if width >= _WIDE:
        half = (width - 3) // 2
        left, right = _waiting(scene, half, height), _events(scene.events, half, height)
        return [
            _beside(one, other, half) for one, other in zip(_padded(left, height), _padded(right, height), strict=True)
        ]
    upper = min(len(scene.waiting) + 1, height // 2) if scene.waiting else 1
    return [*_waiting(scene, width, upper), *_events(scene.events, width, height - upper)]


def _waiting(scene: DashboardFacts, width: int, height: int) -> list[Text]:
    lines = [Text(f"Waiting {scene.waits:,}" if scene.waits else "Nothing waits", style="bold")]
    pods = scene.waiting[: height - 1]
    names = min(34, max((cell_len(_name(pod)) for pod in pods), default=0))
    for pod in pods:
        line = Text(_name(pod) + " " * (names - cell_len(_name(pod))), style="default")
        line.append(f" {pod.gpus:>3g} GPU  ", style="bold")
        line.append(pod.why or "not looked at yet", style="dim")
        line.truncate(width, overflow="ellipsis")
        lines.append(line)
    return lines


def _events(events: Sequence[EventFacts], width: int, height: int) -> list[Text]:
    lines = [Text("Events", style="bold")]
    for one in events[: height - 1]:
        line = Text(f"{one.at[11:19]} ", style="dim")
        line.append(f"{one.reason} ", style=BROKEN if one.is_warning else "bold")
        line.append(f"{one.about}: ", style="default")
        line.append(one.message + (f" (x{one.count})" if one.count > 1 else ""), style="dim")
        line.truncate(width, overflow="ellipsis")
        lines.append(line)
    return lines[:height]


def _name(pod: PodFacts) -> str:
    return f"{pod.namespace}/{pod.name}"


def _padded(lines: list[Text], height: int) -> list[Text]:
    return [*lines, *[Text() for _ in range(height - len(lines))]]


def _beside(left: Text, right: Text, width: int) -> Text:
    line = left.copy()
    line.append(" " * max(0, width - line.cell_len + 3))
    line.append_text(right)
    return line
