"""One frame of the dashboard: the state of the cluster in four lines, then the view or the page that the user chose.

Guarantees: exactly fits the width and height it is given (one line less, for the cursor); the same facts and the same
state draw the same frame. Warnings that the user has not acknowledged are in every frame.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.text import Text

from shoal.views.dashboard import lists, rows
from shoal.views.dashboard.colours import BROKEN, FREE, Colours
from shoal.views.dashboard.details import detail_lines
from shoal.views.dashboard.facts import DashboardFacts, Fleet
from shoal.views.dashboard.help_page import help_lines
from shoal.views.dashboard.screen_state import VIEWS, FrameLayout, ScreenState, View
from shoal.views.dashboard.tiles import Pen, draw_tiles
from shoal.views.dashboard.words import amount, plural, sparkline

_MARGIN = 1
_WIDE = 140
"""Columns from which lists stand side by side."""
_SPARKS, _MOST_WARNINGS, _LEAST_PANEL = 30, 5, 3
_KEYS = "q quit  ? help  / filter  s sort  Tab view  Enter open  p pause  a acknowledge"


class Frame(msgspec.Struct, frozen=True):
    text: Text
    layout: FrameLayout


def draw_frame(
    facts: DashboardFacts, colours: Colours, size: tuple[int, int], state: ScreenState | None = None
) -> Frame:
    """`size`: columns and lines of the terminal."""
    state = state or ScreenState()
    for owner in sorted(facts.fleet.sums):
        colours.of(owner)
    inner = max(20, size[0] - 2 * _MARGIN)
    room = max(8, size[1] - 1)
    head = [_heading(facts, inner), _bar(facts, colours, inner), _legend(facts.fleet, colours, inner)]
    head += [_tabs(facts, state, inner)]
    foot = _footer(facts, state, inner)
    body, layout = _body(facts, state, colours, (inner, room - len(head) - len(foot)))
    lines = [*head, *body]
    lines += [Text() for _ in range(room - len(foot) - len(lines))] + foot
    for line in lines:
        line.truncate(inner, overflow="ellipsis")
        line.pad_left(_MARGIN)
    return Frame(Text("\n", no_wrap=True, overflow="crop").join(lines[:room]), layout)


def _body(
    facts: DashboardFacts, state: ScreenState, colours: Colours, size: tuple[int, int]
) -> tuple[list[Text], FrameLayout]:
    width, height = size
    if state.is_helping:
        return help_lines(facts.footer)[:height], FrameLayout(page=height)
    warnings = rows.warnings(state, facts)
    lower = lists.warning_lines(facts, warnings, (width, _MOST_WARNINGS)) if warnings else []
    # Few lines: one for the newest warning, so that the view keeps its place.
    lower = lower[: max(0, min(len(lower), height // 4))] if height >= 8 else []
    room = height - len(lower)
    subject = state.subject
    if subject is not None:
        page = detail_lines(subject, facts, colours, width)
        most = max(0, len(page) - room)
        start = min(state.scroll, most)
        body, layout = page[start : start + room], FrameLayout(page=room, most_scroll=most)
    elif state.view is View.NODES:
        body, layout = _overview(facts, state, colours, (width, room))
    else:
        body, layout = _list(facts, state, (width, room)), FrameLayout(page=max(1, room - 2))
    return [*body, *(Text() for _ in range(room - len(body))), *lower], layout


def _list(facts: DashboardFacts, state: ScreenState, size: tuple[int, int]) -> list[Text]:
    selected = state.selected.get(state.view, "")
    if state.view is View.WAITING:
        found = rows.waiting(state, facts)
        return lists.waiting_table(facts, found, size, selected) if found else _none(state, "Nothing waits.")
    if state.view is View.QUEUES:
        queues = rows.queues(state, facts)
        empty = "The cluster has no queues of Kueue, Volcano or KAI that are in use."
        return lists.queue_table(queues, size, selected) if queues else _none(state, empty)
    if state.view is View.GANGS:
        gangs = rows.gangs(state, facts)
        return lists.gang_table(facts, gangs, size, selected) if gangs else _none(state, "The cluster has no gangs.")
    events = rows.events(state, facts)
    return lists.event_table(facts, events, size, selected) if events else _none(state, "No Events yet.")


def _none(state: ScreenState, text: str) -> list[Text]:
    return [Text(f"No row contains {state.needle!r}. Esc removes the filter." if state.needle else text, style="dim")]


def _overview(
    facts: DashboardFacts, state: ScreenState, colours: Colours, size: tuple[int, int]
) -> tuple[list[Text], FrameLayout]:
    """The nodes, and below them as much of the other views as fits."""
    width, height = size
    tiles = rows.nodes(state, facts)
    least = max(5, height // 3) if tiles else height
    pen = Pen(colours.of, state.selected.get(View.NODES, ""))
    drawn = draw_tiles(tiles, pen, width, max(1, height - least - 1))
    top = drawn.lines if tiles else _none(state, "The cluster has no nodes yet.")
    top += [Text(line, style="dim") for line in facts.node_lines[: max(0, least - _LEAST_PANEL)]]
    lower = _panels(facts, state, (width, height - len(top) - 1))
    return [*top, Text(), *lower], FrameLayout(drawn.per_line, page=max(1, len(top)))


def _panels(facts: DashboardFacts, state: ScreenState, size: tuple[int, int]) -> list[Text]:
    """What waits, queues and Events: side by side where there is room."""
    width, height = size
    if height <= 0:
        return []
    waiting, queues, events = rows.waiting(state, facts), rows.queues(state, facts), rows.events(state, facts)
    gangs = rows.gangs(state, facts)

    def left(width: int, height: int) -> list[Text]:
        some = min(len(queues) + 2, max(height // 2, height - 3)) if queues and height >= 2 * _LEAST_PANEL else 0
        none = f"Nothing that waits contains {state.needle!r}." if state.needle else "Nothing waits."
        shown = [Text(none, style="dim")]
        if waiting:
            shown = lists.waiting_table(facts, waiting, (width, height - some), is_counted=False)
        shown += _spaced(lists.queue_table(queues, (width, some - 1), is_counted=False)) if some else []
        rest = height - len(shown)
        if gangs and rest > _LEAST_PANEL:
            shown += _spaced(lists.gang_table(facts, gangs, (width, rest - 1)))
        return shown

    def newest(width: int, height: int) -> list[Text]:
        return lists.event_table(facts, events, (width, height), is_counted=False) if events else []

    if width >= _WIDE:
        half = (width - 3) // 2
        return _beside(left(half, height), newest(half, height), half)
    upper = left(width, max(1, 2 * height // 3))
    return [*upper, *newest(width, height - len(upper))]


def _spaced(lines: list[Text]) -> list[Text]:
    return [Text(), *lines]


def _beside(left: Sequence[Text], right: Sequence[Text], width: int) -> list[Text]:
    lines = []
    for number in range(max(len(left), len(right))):
        line = left[number].copy() if number < len(left) else Text()
        line.append(" " * max(0, width - line.cell_len + 3))
        lines.append(line.append_text(right[number]) if number < len(right) else line)
    return lines


def _heading(facts: DashboardFacts, width: int) -> Text:
    fleet = facts.fleet
    line = Text(f"  {plural(len(facts.tiles), 'node')}")
    line.append(f" +{facts.starting:,}" if facts.starting else "", style="green")
    line.append(f" -{facts.leaving:,}" if facts.leaving else "", style="yellow")
    line.append("  ")
    line.append(f"{amount(round(fleet.held, 1))}/{plural(fleet.gpus, 'GPU')} held", style="bold")
    counts = f"{facts.running:,} running  {facts.all_waiting:,} waiting  {facts.done:,} done"
    right = Text(counts + (f"  {facts.failed:,} failed" if facts.failed else ""))
    right.append(f"  {facts.clock}", style="dim")
    room = width - line.cell_len - 1
    title = Text(facts.title, style="bold")
    if title.cell_len + right.cell_len > room:
        failed = f" {facts.failed:,} failed" if facts.failed else ""
        right = Text(f"{facts.running:,} run {facts.all_waiting:,} wait{failed}  {facts.clock}")
    # A long name of a cluster is cut before a number.
    title.truncate(max(5, room - right.cell_len), overflow="ellipsis")
    return _apart(Text().append_text(title).append_text(line), right, width)


def _bar(facts: DashboardFacts, colours: Colours, width: int) -> Text:
    """All GPUs of the fleet as one bar, the share that is held, and how that share was in the last minutes."""
    fleet = facts.fleet
    gpus, sums = fleet.gpus, fleet.sums
    share = f" {100 * fleet.held / max(1, gpus):3.0f} % "
    sparks = sparkline(facts.history, min(_SPARKS, width // 5))
    length = width - len(share) - max(0, min(_SPARKS, width // 5))
    bar, used = Text(), 0
    for owner in sorted(sums):
        columns = min(length - used, round(length * sums[owner] / max(1, gpus)))
        used += columns
        bar.append("█" * columns, style=colours.of(owner))
    bar.append("·" * (length - used), style=FREE)
    bar.append(share, style="bold")
    bar.append(sparks, style="dim")
    return bar


def _legend(fleet: Fleet, colours: Colours, width: int) -> Text:
    """Teams by name, also those that hold nothing now: so a name stays where it is."""
    tail = Text("· ", style=FREE)
    tail.append(f"free {amount(fleet.free)}", style="dim")
    if fleet.broken:
        tail.append(f"   X failed {fleet.broken}", style=BROKEN)
    legend = Text()
    owners = sorted(colours.owners())
    for number, owner in enumerate(owners):
        part = Text.assemble(("■ ", colours.of(owner)), (f"{owner} {amount(fleet.sums.get(owner, 0.0))}   ", ""))
        more = len(owners) - number
        if legend.cell_len + part.cell_len + tail.cell_len + (len(f"{more:,} more   ") if more > 1 else 0) > width:
            legend.append(f"{more:,} more   ", style="dim")
            break
        legend.append_text(part)
    return legend.append_text(tail)


def _tabs(facts: DashboardFacts, state: ScreenState, width: int) -> Text:
    counts = {
        View.NODES: len(facts.tiles),
        View.WAITING: facts.all_waiting,
        View.QUEUES: len(facts.queues),
        View.GANGS: len(facts.gangs),
    }
    line = Text()
    for number, view in enumerate(VIEWS, 1):
        style = "bold reverse" if view is state.view else "dim"
        line.append(f" {number} {view} {counts[view]:,} " if view in counts else f" {number} {view} ", style=style)
        line.append(" ")
    parts = [("PAUSED", "bold reverse")] if state.is_paused else []
    parts += [(f"filter {state.needle}", "bold")] if state.needle else []
    selected = state.selected.get(View.NODES, "") if state.view is View.NODES else ""
    parts += [(f"> {selected}", "bold")] if selected else []
    parts += [(f"sort {state.sort(state.view)}", "dim")]
    # The most important first; what does not fit beside the views is left out.
    right = Text()
    for text, style in parts:
        if not right or line.cell_len + right.cell_len + len(text) + 3 <= width:
            right = Text.assemble(right, "  " if right else "", (text, style))
    return _apart(line, right, width)


def _footer(facts: DashboardFacts, state: ScreenState, width: int) -> list[Text]:
    if state.draft is not None:
        return [Text.assemble(("/", "bold"), state.draft, ("█", "dim"), ("   Enter keeps it, Esc cancels", "dim"))]
    if facts.note:
        return [Text(facts.note, style=BROKEN), Text(_KEYS, style="dim")]
    if not facts.footer:
        return [Text(_KEYS, style="dim")]
    together = f"{_KEYS}   {facts.footer}"
    return (
        [Text(together, style="dim")]
        if len(together) <= width
        else [Text(facts.footer, style="dim"), Text(_KEYS, style="dim")]
    )


def _apart(left: Text, right: Text, width: int) -> Text:
    """At both ends of a line; what is left is cut first."""
    left.truncate(max(0, width - right.cell_len - 1), overflow="ellipsis")
    left.append(" " * max(1, width - left.cell_len - right.cell_len), style="default")
    return left.append_text(right)
