"""The page of capacity: nodes that are alike with their GPUs and price, and pools from which nodes are provisioned."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from shoal.views.dashboard.words import amount
from shoal.views.node_groups import NodeGroup
from shoal.views.scale_plan import PoolView
from shoal.web.markup import Markup, element, joined
from shoal.web.page import WebPage
from shoal.web.ports import PageCommands
from shoal.web.tables import DataTable, Heading, TableCell, table_markup

PATH = "/capacity"
_HOURS = 730
"""Of a month, in price lists."""
_WIDTH = 120.0


class CapacityPage:
    def __init__(self, commands: PageCommands) -> None:
        self._commands = commands

    def page(self, groups: Sequence[NodeGroup], pools: Sequence[PoolView], currency: str, fault: str) -> WebPage:
        """`fault`: why pools cannot be shown; empty if there is nothing wrong."""
        tables = [self._groups(groups, currency), self._pools(pools)]
        notes = [
            element("p", f"The price of {_name(one)} is not known: write in the price file {one.asked}", class_="fault")
            for one in groups
            if one.per_hour is None
        ]
        if fault:
            notes.append(element("p", f"Pools cannot be shown: {fault}", class_="fault"))
        parts = {
            "head": element("h1", "Capacity"),
            "summary": joined((_summary(groups, currency), *notes)),
            **{f"of-{one.key}": table_markup(one, PATH) for one in tables},
        }
        return WebPage("Capacity", PATH, parts, "capacity", tables)

    def refusal(self) -> WebPage:
        words = "Your account may not list nodes (get and list of nodes), so capacity is not shown."
        parts = {"head": joined((element("h1", "Capacity"), element("p", words)))}
        return WebPage("Capacity", PATH, parts, "capacity")

    def _groups(self, groups: Sequence[NodeGroup], currency: str) -> DataTable:
        names = [("pool", False), ("instance type", False), ("bought", False), ("region", False), ("GPU", False)]
        names += [("nodes", True), ("not ready", True), ("GPUs", True), ("held", True), ("free", True)]
        names += [("failed", True), ("use", False), (f"{currency} per hour", True), ("of what is free", True)]
        rows = [
            [
                TableCell(one.pool),
                TableCell(one.instance_type),
                TableCell(one.capacity),
                TableCell(one.region),
                TableCell(one.model),
                TableCell(f"{one.nodes:,}"),
                TableCell(f"{one.not_ready:,}", style="fault" if one.not_ready else ""),
                *(TableCell(amount(value)) for value in (one.gpus, one.held, one.free)),
                TableCell(f"{one.broken:,}", style="fault" if one.broken else ""),
                TableCell(f"{100 * one.held / one.gpus:.0f} %" if one.gpus else "", drawing=_use(one)),
                TableCell("" if one.per_hour is None else f"{one.per_hour:,.2f}"),
                TableCell(_idle(one)),
            ]
            for one in groups
        ]
        headings = [Heading(*name) for name in names]
        command = self._commands.table(PATH, "groups")
        return DataTable("groups", "Nodes", command, headings, rows, "The cluster has no nodes.")

    def _pools(self, pools: Sequence[PoolView]) -> DataTable:
        names = [("pool", False), ("weight", True), ("nodes", True), ("starting", True), ("GPUs", True)]
        names += [("USD per hour", True), ("types", True), ("cheapest", False), ("limits", False), ("fault", False)]
        rows = [
            [
                TableCell(one.name),
                *(TableCell(f"{value:,}") for value in (one.weight, one.nodes, one.starting, one.gpus)),
                TableCell(f"{one.usd_per_hour:,.2f}"),
                TableCell(f"{one.instance_types:,}"),
                TableCell(one.cheapest),
                TableCell(", ".join(f"{name} {left}" for name, left in one.limits.items())),
                TableCell(one.fault, style="fault"),
            ]
            for one in pools
        ]
        command = self._commands.of("shoal scale pools")
        headings = [Heading(*name) for name in names]
        empty = "The cluster has no NodePool, so no nodes are provisioned."
        return DataTable("pools", "Node pools", command, headings, rows, empty)


def _summary(groups: Sequence[NodeGroup], currency: str) -> Markup:
    known = [one.per_hour for one in groups if one.per_hour is not None]
    hourly = sum(known, Decimal(0))
    figures = [
        (f"{sum(one.nodes for one in groups):,}", "nodes"),
        (amount(sum(one.gpus for one in groups)), "GPUs"),
        (amount(sum(one.free for one in groups)), "free"),
        (f"{hourly:,.2f}", f"{currency} per hour" + ("" if len(known) == len(groups) else ", of known prices")),
        (f"{hourly * _HOURS:,.0f}", f"{currency} in {_HOURS} hours"),
    ]
    cells = (element("div", element("strong", value), element("span", words)) for value, words in figures)
    return element("div", *cells, class_="figures")


def _idle(one: NodeGroup) -> str:
    """The part of the price of the GPUs that no pod holds."""
    if one.per_hour is None or not one.gpus:
        return ""
    return f"{one.per_hour * Decimal(one.free) / one.gpus:,.2f}"


def _use(one: NodeGroup) -> Markup | None:
    if not one.gpus:
        return None
    held, broken = (_WIDTH * part / one.gpus for part in (one.held, one.broken))
    parts = [(0.0, _WIDTH, "q-nominal"), (0.0, held, "q-used"), (_WIDTH - broken, broken, "h-failed solid")]
    drawn = [
        element("rect", x=f"{x:.4g}", y=0, width=f"{width:.4g}", height=10, class_=style)
        for x, width, style in parts
        if width > 0
    ]
    label = f"{100 * one.held / one.gpus:.0f} % held"
    return element("svg", *drawn, width=_WIDTH, height=10, role="img", aria_label=label)


def _name(one: NodeGroup) -> str:
    return " ".join(word for word in (one.pool, one.instance_type, one.capacity) if word)
