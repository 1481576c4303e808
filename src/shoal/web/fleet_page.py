"""The page of the fleet: how much of it is held and by which team, and a tile for every node.

As a table (`?as=table`) it has the same nodes in rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.views.dashboard.colours import Colours
from shoal.views.dashboard.facts import DashboardFacts, Tile
from shoal.views.dashboard.words import amount, plural
from shoal.web.markup import Markup, address, element, joined
from shoal.web.page import TileGroup, WebPage
from shoal.web.ports import PageCommands
from shoal.web.tables import DataTable, Heading, TableCell, copies, table_markup
from shoal.web.tile_markup import TileMarkup, states, team_class, tile_id
from shoal.web.viewer import OTHERS

PATH = "/"
_COLOURINGS = (("team", "team"), ("use", "use"), ("health", "health"), ("temperature", "temperature"))
Degrees = Mapping[str, Sequence[float | None]]
"""By node, of each GPU in order, as far as they were measured."""
_USES = (
    ("u-free", "free"),
    ("u-low", "below 40 %"),
    ("u-middle", "40 to 70 %"),
    ("u-good", "70 to 95 %"),
    ("u-saturated", "above 95 %"),
    ("u-unknown", "held, use unknown"),
)
_HEALTHS = (("h-free", "free"), ("h-held", "held"), ("h-failed", "failed, crossed out"))
_HEATS = (
    ("k-cool", "below 55 °C"),
    ("k-warm", "55 to 75 °C"),
    ("k-hot", "75 to 85 °C"),
    ("k-alert", "above 85 °C"),
    ("k-unknown", "not measured"),
)
_BAR = 1000


class FleetPage:
    def __init__(self, colours: Colours, tiles: TileMarkup, commands: PageCommands) -> None:
        self._colours = colours
        self._tiles = tiles
        self._commands = commands

    def page(
        self, facts: DashboardFacts, *, is_table: bool, may_list_nodes: bool, degrees: Degrees | None = None
    ) -> WebPage:
        for owner in sorted(facts.fleet.sums):
            # In one order, whichever tile is drawn first.
            if owner != OTHERS:
                self._colours.of(owner)
        summary = self._summary(facts)
        if not may_list_nodes:
            words = "Your account may not list nodes (get and list of nodes), so only the sums are shown."
            return WebPage("Fleet", PATH, {"summary": summary, "refusal": element("p", words)}, "fleet")
        table = self.table(facts)
        if is_table:
            parts = {"summary": summary, "nodes": joined((_views(is_table=True), table_markup(table, PATH)))}
            return WebPage("Fleet", f"{PATH}?as=table", parts, "fleet", [table])
        bar = joined((_views(is_table=False), self._legend(facts), copies(table, PATH)))
        parts = {"summary": summary, "legend": bar}
        if not facts.tiles:
            parts["empty"] = element("p", "The cluster has no nodes yet.", class_="empty")
        return WebPage("Fleet", PATH, parts, "fleet", [table], self._groups(facts.tiles, degrees or {}))

    def _groups(self, tiles: Sequence[Tile], degrees: Degrees) -> list[TileGroup]:
        kinds: dict[str, dict[str, Markup]] = {}
        for tile in tiles:
            name = tile.node.name
            kinds.setdefault(tile.node.kind, {})[tile_id(name)] = self._tiles.of(tile, degrees.get(name, ()))
        return [TileGroup(kind or "other nodes", found) for kind, found in kinds.items()]

    def table(self, facts: DashboardFacts) -> DataTable:
        names = (("node", False), ("kind", False), ("GPUs", True), ("held", True), ("whole free", True))
        headings = [Heading(name, is_number) for name, is_number in (*names, ("failed", True))]
        headings += [Heading("state"), Heading("held by")]
        rows = [_row(tile) for tile in facts.tiles]
        return DataTable(
            "nodes", "Nodes", self._commands.of("shoal get nodes -o wide"), headings, rows, "The cluster has no nodes."
        )

    def _summary(self, facts: DashboardFacts) -> Markup:
        fleet = facts.fleet
        name, most = fleet.most_free
        figures = [
            (f"{amount(fleet.held)} / {amount(fleet.gpus)}", "GPUs held"),
            (amount(fleet.free), "free"),
            (f"{most:,}", "free on one node at most", address("node", name) if name else ""),
            (f"{fleet.broken:,}", "failed"),
            (f"{facts.running:,}", "pods running"),
            (f"{facts.all_waiting:,}", "waiting", "/workloads"),
        ]
        cells = [_figure(*figure) for figure in figures]
        note = element("p", facts.note, class_="fault") if facts.note else None
        return joined((element("h1", "Fleet"), element("div", *cells, class_="figures"), self._bar(facts), note))

    def _bar(self, facts: DashboardFacts) -> Markup:
        fleet = facts.fleet
        x, parts = 0.0, []
        for owner, held in sorted(fleet.sums.items()):
            width = _BAR * held / max(1, fleet.gpus)
            classes = f"{team_class(owner, self._colours)} solid"
            parts.append(element("rect", x=f"{x:.4g}", y=0, width=f"{width:.4g}", height=10, class_=classes))
            x += width
        label = ", ".join(f"{owner} {amount(held)}" for owner, held in sorted(fleet.sums.items()))
        words = f"GPUs by team: {label or 'none is held'}"
        box = f"0 0 {_BAR} 10"
        # The caption says it; screen readers need not read it twice.
        drawn = element("svg", *parts, viewBox=box, preserveAspectRatio="none", class_="bar", aria_hidden="true")
        return element("figure", drawn, element("figcaption", words))

    def _legend(self, facts: DashboardFacts) -> Markup:
        owners = sorted(facts.fleet.sums)
        teams = [(team_class(owner, self._colours), f"{owner} {amount(facts.fleet.sums[owner])}") for owner in owners]
        teams.append(("t-free", f"free {amount(facts.fleet.free)}"))
        lists = (("team", teams), ("use", _USES), ("health", _HEALTHS), ("temperature", _HEATS))
        return joined(_legend_of(name, entries) for name, entries in lists)


def _row(tile: Tile) -> list[TableCell]:
    node = tile.node
    holders = ", ".join(f"{owner} {amount(held)}" for owner, held in sorted(tile.sums.items()))
    return [
        TableCell(node.name, address("node", node.name)),
        TableCell(node.kind),
        TableCell(f"{node.gpus}"),
        TableCell(amount(tile.held)),
        TableCell(f"{tile.whole_free}"),
        TableCell(f"{len(node.broken)}", style="fault" if node.broken else ""),
        TableCell(", ".join(states(tile)) or "ready", style="fault" if states(tile) else ""),
        TableCell(holders),
    ]


def _figure(value: str, words: str, href: str = "") -> Markup:
    inside = joined((element("strong", value), element("span", words)))
    return element("a", inside, href=href) if href else element("div", inside)


def _views(*, is_table: bool) -> Markup:
    buttons = [
        element("button", f"by {words}", type="button", data_colouring=name, aria_pressed="false")
        for name, words in _COLOURINGS
    ]
    href, words = (PATH, "as tiles") if is_table else ("/?as=table", "as a table")
    return element("div", *([] if is_table else buttons), element("a", words, href=href), class_="views")


def _legend_of(name: str, entries: Sequence[tuple[str, str]]) -> Markup:
    items = (
        element(
            "li",
            element("svg", element("rect", width=10, height=10, class_=f"{one} solid"), width=10, height=10),
            words,
        )
        for one, words in entries
    )
    return element("ul", *items, class_=f"legend of-{name}", aria_label=f"Colours by {name}")


def held_words(tile: Tile) -> str:
    return f"{amount(tile.held)} of {plural(tile.node.gpus, 'GPU')} held"
