"""The page of timelines: when each gang or job waited, started and ran, and a map of how busy its GPUs were."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from shoal.units.calendar_windows import TimeWindow, rfc3339
from shoal.views.dashboard.words import amount, plural
from shoal.views.queue_diff import span
from shoal.views.timelines import GangTimeline, PodUse
from shoal.web.history_answers import TIMELINE_WINDOWS, TimelineAnswer
from shoal.web.markup import Markup, address, element, joined
from shoal.web.page import WebPage
from shoal.web.ports import PageCommands
from shoal.web.tables import DataTable, Heading, TableCell, table_markup
from shoal.web.tile_markup import use_class_of

PATH = "/timelines"
_WIDTH, _HEIGHT = 480.0, 12
_MARK = 3.0
_PHASES = (("p-waits", "waits"), ("p-starts", "starts"), ("p-runs", "runs"), ("p-preempted", "preempted"))
_USES = (("u-low", "below 40 %"), ("u-middle", "40 to 70 %"), ("u-good", "70 to 95 %"), ("u-saturated", "above 95 %"))


def timelines_address(window: str) -> str:
    return f"{PATH}?{urlencode({'window': window})}"


class TimelinesPage:
    def __init__(self, commands: PageCommands) -> None:
        self._commands = commands

    def page(self, window: str, answer: TimelineAnswer) -> WebPage:
        path = timelines_address(window)
        tables = [self._gangs(window, answer), self._uses(window, answer)]
        shown = f"{rfc3339(answer.window.start_ms)} to {rfc3339(answer.window.end_ms)}"
        notes = [element("p", note, class_="waits") for note in answer.notes]
        for count, known, what in (
            (answer.all_gangs, answer.gangs, "gangs and jobs"),
            (answer.all_uses, answer.uses, "pods"),
        ):
            if count > len(known):
                notes.append(element("p", f"The newest {len(known):,} of {count:,} {what} are shown.", class_="empty"))
        phases, uses = _legend("phases", _PHASES), _legend("use", _USES)
        parts = {
            "head": joined((element("h1", "Timelines"), _choices(window), element("p", shown, class_="empty"), *notes)),
            "of-gangs": joined((table_markup(tables[0], path), phases)),
            "of-uses": joined((table_markup(tables[1], path), uses)),
        }
        return WebPage("Timelines", path, parts, "timelines", tables)

    def fault(self, window: str, fault: str) -> WebPage:
        head = joined((element("h1", "Timelines"), _choices(window)))
        parts = {"head": head, "fault": element("p", fault, class_="fault")}
        return WebPage("Timelines", timelines_address(window), parts, "timelines")

    def _gangs(self, window: str, answer: TimelineAnswer) -> DataTable:
        names = [("gang or job", False), ("time", False), ("pods", True), ("GPUs", True), ("waited", True)]
        names += [("ran", True), ("queue", False)]
        rows = [
            [
                TableCell(one.name, address(one.kind, *one.name.split("/", 1)) if one.is_open else ""),
                TableCell(_words(one), drawing=_line(one, answer.window)),
                TableCell(f"{one.pods:,}"),
                TableCell(amount(one.gpus)),
                TableCell(span(one.waited_ms / 1000)),
                TableCell(span(one.ran_ms / 1000)),
                TableCell(one.queue),
            ]
            for one in answer.gangs
        ]
        command = self._commands.table(timelines_address(window), "gangs")
        headings = [Heading(*name) for name in names]
        return DataTable("gangs", "Gangs and jobs", command, headings, rows, "Nothing held or waited for GPUs.")

    def _uses(self, window: str, answer: TimelineAnswer) -> DataTable:
        headings = [Heading("pod"), Heading("use of its GPUs over time"), Heading("mean use", is_number=True)]
        headings.append(Heading("node"))
        rows = []
        for one in answer.uses:
            known = [value for value in one.values if value is not None]
            mean = f"{sum(known) / len(known):.0f} %" if known else ""
            cells = [TableCell(one.pod), TableCell(_values(one), drawing=_map(one)), TableCell(mean)]
            rows.append([*cells, TableCell(one.node)])
        command = self._commands.table(timelines_address(window), "uses")
        return DataTable("uses", "Use of GPUs", command, headings, rows, "No pod held a GPU in this window.")


def _choices(window: str) -> Markup:
    links = (
        element("a", one, href=timelines_address(one), aria_current="true" if one == window else None)
        for one in TIMELINE_WINDOWS
    )
    return element("nav", element("span", "window"), *links, class_="choices", aria_label="Window of the timelines")


def _line(one: GangTimeline, window: TimeWindow) -> Markup:
    scale = _WIDTH / max(1, window.length_ms)
    drawn = [element("rect", width=_WIDTH, height=_HEIGHT, class_="p-none")]
    for stretch in one.stretches:
        width = max(_MARK if stretch.phase == "preempted" else 0.5, (stretch.end_ms - stretch.start_ms) * scale)
        x = min((stretch.start_ms - window.start_ms) * scale, _WIDTH - width)
        classes = f"p-{stretch.phase}"
        drawn.append(element("rect", x=f"{x:.5g}", y=0, width=f"{width:.4g}", height=_HEIGHT, class_=classes))
    return element("svg", *drawn, width=_WIDTH, height=_HEIGHT, role="img", aria_label=_words(one))


def _words(one: GangTimeline) -> str:
    """What the drawing says; also in the CSV."""
    parts = [
        f"{stretch.phase} {rfc3339(stretch.start_ms)}"
        + (f" for {span((stretch.end_ms - stretch.start_ms) / 1000)}" if stretch.phase != "preempted" else "")
        for stretch in sorted(one.stretches, key=lambda stretch: stretch.start_ms)
    ]
    return "; ".join(parts) or plural(one.pods, "pod")


def _map(one: PodUse) -> Markup:
    step = _WIDTH / max(1, len(one.values))
    drawn = [element("rect", width=_WIDTH, height=_HEIGHT, class_="p-none")]
    # One path for each colour: a rectangle for each value takes ten times as long to build.
    paths: dict[str, list[str]] = {}
    for at, value in enumerate(one.values):
        if value is not None:
            paths.setdefault(use_class_of(value), []).append(f"M{at * step:.5g} 0h{step:.4g}v{_HEIGHT}h-{step:.4g}z")
    drawn += [element("path", class_=f"{style} solid", d="".join(steps)) for style, steps in paths.items()]
    known = [value for value in one.values if value is not None]
    label = f"{min(known):.0f} to {max(known):.0f} %" if known else "not measured"
    return element("svg", *drawn, width=_WIDTH, height=_HEIGHT, role="img", aria_label=f"use {label}")


def _values(one: PodUse) -> str:
    return " ".join("·" if value is None else f"{value:.0f}" for value in one.values)


def _legend(name: str, entries: Sequence[tuple[str, str]]) -> Markup:
    items = (
        element(
            "li",
            element("svg", element("rect", width=10, height=10, class_=f"{one} solid"), width=10, height=10),
            words,
        )
        for one, words in entries
    )
    return element("ul", *items, class_="legend always", aria_label=f"Colours of {name}")
