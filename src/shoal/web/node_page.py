"""The page of one node: its GPUs with their health, use and holders, the pods on it, conditions and labels; and of the
history, the Xid errors of its GPUs and the pods that held these before."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote as quoted

from shoal.devices.xids import xid_of
from shoal.units.calendar_windows import rfc3339
from shoal.units.errors import one_line
from shoal.views.dashboard.facts import DashboardFacts, GpuSlot, NodeDetail
from shoal.views.dashboard.words import age, amount, plural
from shoal.web.fleet_page import held_words
from shoal.web.history_answers import NodeHistory
from shoal.web.markup import Markup, address, element, joined
from shoal.web.page import WebPage
from shoal.web.ports import PageCommands
from shoal.web.tables import DataTable, Heading, TableCell, table_markup
from shoal.web.tile_markup import TileMarkup, heat_class, states, use_class
from shoal.web.viewer import OTHERS


class NodePage:
    def __init__(self, tiles: TileMarkup, commands: PageCommands) -> None:
        self._tiles = tiles
        self._commands = commands

    def page(
        self, facts: DashboardFacts, detail: NodeDetail, history: NodeHistory, degrees: Sequence[float | None] = ()
    ) -> WebPage:
        """`degrees`: of each GPU, where it was measured."""
        tile = detail.tile
        name = tile.node.name
        path = address("node", name)
        state = ", ".join(states(tile)) or "ready"
        heat = [heat_class(one) for one in degrees]
        faults = [element("p", one, class_="fault") for one in detail.conditions]
        head = joined(
            (
                element("h1", "Node ", name),
                element(
                    "p", f"{tile.node.kind}, {held_words(tile)}, {state}", class_="fault" if states(tile) else None
                ),
                *faults,
                element("div", self._tiles.gpus(tile, heat), class_="large") if tile.node.gpus else None,
            )
        )
        tables = [self._gpus(detail, degrees), self._pods(facts, detail)]
        tables += [self._xids(name, history), self._former(name, history)]
        tables += [self._events(facts, name), self._labels(detail)]
        parts = {"node": head, **{f"of-{table.key}": table_markup(table, path) for table in tables}}
        parts["of-former"] = joined((parts["of-former"], _history_notes(history)))
        return WebPage(name, path, parts, "fleet", tables)

    def hover(self, detail: NodeDetail) -> Markup:
        """A line for each part of a GPU."""
        tile = detail.tile
        lines = [
            element("li", f"GPU {index}{_share(slot, len(parts))}: {_state(detail, index, slot)}", data_gpu=index)
            for index, parts in enumerate(tile.parts)
            for slot in parts
        ]
        return joined((element("b", tile.node.name), element("ul", *lines)))

    def _command(self, name: str, key: str) -> str:
        return self._commands.table(address("node", name), key)

    def _gpus(self, detail: NodeDetail, degrees: Sequence[float | None]) -> DataTable:
        headings = [Heading("GPU", is_number=True), Heading("part", is_number=True), Heading("health")]
        headings += [Heading("use", is_number=True), Heading("°C", is_number=True), Heading("held by")]
        headings.append(Heading("device"))
        rows = []
        for index, parts in enumerate(detail.tile.parts):
            for slot in parts:
                health = _health(detail, index)
                hot = degrees[index] if index < len(degrees) else None
                rows.append(
                    [
                        TableCell(f"{index}"),
                        TableCell("" if len(parts) == 1 else f"{100 * slot.width:.0f} %"),
                        TableCell(health, style="" if health == "healthy" else "fault"),
                        TableCell("" if slot.load is None else f"{slot.load} %", style=f"text-{use_class(slot)}"),
                        TableCell("" if hot is None else f"{hot:.0f}", style=f"text-{heat_class(hot)}"),
                        TableCell(slot.pod or slot.owner, _pod_address(slot.pod)),
                        TableCell("" if slot.device.startswith("#") else one_line(slot.device)),
                    ]
                )
        command = self._command(detail.tile.node.name, "gpus")
        return DataTable("gpus", "GPUs", command, headings, rows, "The node has no GPUs.")

    def _pods(self, facts: DashboardFacts, detail: NodeDetail) -> DataTable:
        headings = [Heading("pod"), Heading("GPUs", is_number=True), Heading("phase"), Heading("age"), Heading("gang")]
        rows = [
            [
                TableCell(pod.full_name, _pod_address(pod.full_name)),
                TableCell(amount(pod.gpus)),
                TableCell(pod.phase),
                TableCell(age(pod.created, facts.now_s)),
                TableCell(pod.gang, address("gang", *pod.gang.split("/", 1)) if pod.gang else ""),
            ]
            for pod in detail.pods
        ]
        command = self._command(detail.tile.node.name, "pods")
        return DataTable("pods", "Pods that hold GPUs", command, headings, rows, "No pod holds a GPU of this node.")

    def _xids(self, name: str, history: NodeHistory) -> DataTable:
        headings = [Heading("time"), Heading("GPU", is_number=True), Heading("Xid", is_number=True)]
        headings += [Heading("meaning"), Heading("held by then"), Heading("what to do")]
        rows = []
        for one in history.past.xids:
            xid = xid_of(one.number)
            pods = [*one.pods, *([OTHERS] if one.unnamed else [])]
            rows.append(
                [
                    TableCell(f"{'at the latest ' if one.is_first else ''}{rfc3339(one.at_ms)}"),
                    TableCell(f"{one.gpu}"),
                    TableCell(f"{one.number}", style="fault" if xid.marks_unhealthy() else "waits"),
                    TableCell(xid.meaning),
                    TableCell(", ".join(pods)),
                    TableCell(xid.advice),
                ]
            )
        empty = history.fault or "The history has no Xid error of its GPUs."
        return DataTable("xids", "Xid errors of the last 7 days", self._command(name, "xids"), headings, rows, empty)

    def _former(self, name: str, history: NodeHistory) -> DataTable:
        past = history.past
        headings = [Heading("pod"), Heading("GPUs"), Heading("from"), Heading("until")]
        headings += [Heading("GPU hours", is_number=True), Heading("gang or job"), Heading("end")]
        rows = [
            [
                TableCell(one.pod),
                TableCell(", ".join(one.gpus)),
                TableCell(rfc3339(one.start_ms)),
                TableCell(rfc3339(one.end_ms)),
                TableCell(f"{one.gpu_hours:,.2f}"),
                TableCell(one.job),
                TableCell("preempted" if one.is_preempted else "", style="fault"),
            ]
            for one in past.former
        ]
        if past.unnamed:
            named = TableCell(f"{OTHERS}: {plural(past.unnamed, 'pod')}")
            hours = TableCell(f"{past.unnamed_gpu_hours:,.2f}")
            rows.append([named, *(TableCell("") for _ in range(3)), hours, TableCell(""), TableCell("")])
        empty = history.fault or "The history has no pod that held GPUs of this node before."
        title = "What held its GPUs before, of the last 7 days"
        return DataTable("former", title, self._command(name, "former"), headings, rows, empty)

    def _events(self, facts: DashboardFacts, name: str) -> DataTable:
        headings = [Heading("age"), Heading("reason"), Heading("message")]
        rows = [
            [
                TableCell(age(event.at, facts.now_s)),
                TableCell(event.reason, style="fault" if event.is_warning else ""),
                TableCell(event.message),
            ]
            for event in facts.events
            if event.about == f"node/{name}"
        ]
        command = self._command(name, "events")
        return DataTable("events", "Events", command, headings, rows, "No Event of this node is known.")

    def _labels(self, detail: NodeDetail) -> DataTable:
        headings = [Heading("label"), Heading("value")]
        rows = [[TableCell(one_line(key)), TableCell(one_line(value))] for key, value in detail.labels]
        command = self._commands.of(f"shoal get nodes {quoted(detail.tile.node.name)} -o yaml")
        return DataTable("labels", "Labels", command, headings, rows, "The node has no labels.")


def _history_notes(history: NodeHistory) -> Markup:
    notes = list(history.notes)
    shown, known = len(history.past.former), history.past.all_former
    if known > shown:
        notes.append(f"The newest {shown:,} of {known:,} pods are shown.")
    if history.past.xids:
        notes.append("An Xid that occurs twice in a row is listed once; times before the last hour are of 5 minutes.")
    return joined(element("p", note, class_="empty") for note in notes)


def _health(detail: NodeDetail, index: int) -> str:
    return detail.faults.get(index, "unhealthy") if index in detail.tile.node.broken else "healthy"


def _state(detail: NodeDetail, index: int, slot: GpuSlot) -> str:
    health = _health(detail, index)
    holder = slot.pod or slot.owner
    load = "" if slot.load is None else f", {slot.load} % used"
    return f"{holder or 'free'}{load}" if health == "healthy" else f"{health}{f', {holder}' if holder else ''}"


def _share(slot: GpuSlot, parts: int) -> str:
    return "" if parts == 1 else f" ({100 * slot.width:.0f} %)"


def _pod_address(name: str) -> str:
    return address("pod", *name.split("/", 1)) if name and name != OTHERS else ""
