"""Tables of teams, of requests for quota, and of the isolation of a team."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shoal.policy.tenants.isolation import IsolationRow, IsolationState
from shoal.policy.tenants.team_rows import TeamRow
from shoal.units.errors import one_line
from shoal.units.visible_text import visible

_STYLES: dict[IsolationState, str] = {
    "refused": "green",
    "allowed": "green",
    "open": "bold red",
    "blocked": "bold red",
    "not run": "yellow",
}


def show_teams(console: Console, rows: Sequence[TeamRow]) -> None:
    if not rows:
        console.print("no team; create one with shoal tenant apply")
        return
    table = _table("TEAM", "NAMESPACE", "DEVICES", "BUDGET", "GRANT UNTIL", "REQUESTS")
    for row in rows:
        devices = ", ".join(f"{name} {amount}" for name, amount in row.devices.items()) or "-"
        _add(table, row.team, row.namespace, devices, row.budget, row.granted_until, str(row.open_requests))
    console.print(table)


def show_requests(console: Console, rows: Iterable[tuple[str, ...]]) -> None:
    table = _table("NAMESPACE", "REQUEST", "STATE", "DEVICES", "ASKED BY", "UNTIL", "REASON")
    for row in rows:
        _add(table, *row)
    if not table.row_count:
        console.print("no request")
        return
    console.print(table)


def show_isolation(console: Console, rows: Sequence[IsolationRow]) -> None:
    table = _table("GROUP", "ATTEMPT", "RESULT", "EVIDENCE")
    group = ""
    for row in rows:
        shown = row.group if row.group != group else ""
        table.add_row(_text(shown), _text(row.what), Text(row.state, _STYLES[row.state]), _text(row.evidence))
        group = row.group
    console.print(table)
    for row in rows:
        if row.is_wrong:
            console.print(Text(f"{row.state}: {visible(row.what)}; {visible(row.fix)}", "bold red"), soft_wrap=True)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _add(table: Table, *cells: str) -> None:
    table.add_row(*(_text(cell or "-") for cell in cells))


def _text(text: str) -> Text:
    return Text(visible(one_line(text)))
