"""The page of one node: its GPUs with their health, use and holders, the pods on it, conditions and labels."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote as quoted

from shoal.units.errors import one_line
from shoal.views.dashboard.facts import DashboardFacts, GpuSlot, NodeDetail
from shoal.views.dashboard.words import age, amount
from shoal.web.fleet_page import held_words
from shoal.web.markup import Markup, address, element, joined
from shoal.web.page import WebPage
from shoal.web.ports import Addressing
from shoal.web.tables import DataTable, Heading, TableCell, table_markup
from shoal.web.tile_markup import TileMarkup, heat_class, states, use_class
from shoal.web.viewer import OTHERS


class NodePage:
    def __init__(self, tiles: TileMarkup, addressed: Addressing) -> None:
        self._tiles = tiles
        self._addressed = addressed

    def page(self, facts: DashboardFacts, detail: NodeDetail, degrees: Sequence[float | None] = ()) -> WebPage:
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
        tables += [self._events(facts, name), self._labels(detail)]
        parts = {"node": head, **{f"of-{table.key}": table_markup(table, path) for table in tables}}
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
        command = self._addressed(f"shoal get nodes {quoted(detail.tile.node.name)} -o wide")
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
        name = detail.tile.node.name
        command = self._addressed(f"shoal get pods -A --field-selector spec.nodeName={quoted(name)}")
        return DataTable("pods", "Pods that hold GPUs", command, headings, rows, "No pod holds a GPU of this node.")

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
        # Events are printed by the dashboard in the terminal.
        command = self._addressed("shoal top --watch")
        return DataTable("events", "Events", command, headings, rows, "No Event of this node is known.")

    def _labels(self, detail: NodeDetail) -> DataTable:
        headings = [Heading("label"), Heading("value")]
        rows = [[TableCell(one_line(key)), TableCell(one_line(value))] for key, value in detail.labels]
        command = self._addressed(f"shoal get nodes {quoted(detail.tile.node.name)} -o yaml")
        return DataTable("labels", "Labels", command, headings, rows, "The node has no labels.")


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
