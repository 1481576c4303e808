"""Prints a readiness report: a row for each check, then what has to be done, with its evidence."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shoal.policy.readiness.outcomes import ReadinessItem, ReadinessReport, ReadinessState
from shoal.units.errors import one_line
from shoal.units.visible_text import visible

_STYLES: dict[ReadinessState, str] = {
    "pass": "green",
    "fail": "bold red",
    "manual": "yellow",
    "not applicable": "dim",
    "not run": "yellow",
}
_INDENT = "   "


def show_readiness(console: Console, report: ReadinessReport) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("SECTION", "CHECK", "STATE", "WHAT"):
        table.add_column(heading, overflow="fold")
    section = ""
    for item in report.items:
        table.add_row(
            item.section if item.section != section else "",
            item.id,
            Text(item.state, _STYLES[item.state]),
            Text(_reason(item)),
        )
        section = item.section
    console.print(table)
    for state, heading in (("fail", "To correct:"), ("manual", "To check by hand:")):
        items = [item for item in report.items if item.state == state]
        if items:
            console.print(Text(f"\n{heading}", "bold"))
            for item in items:
                _steps(console, item)
    console.print(Text(f"\n{counted(report)}", "bold"))


def counted(report: ReadinessReport) -> str:
    """`12 pass, 3 fail, 5 manual`."""
    return ", ".join(f"{count} {state}" for state, count in report.counts.items() if count)


def _reason(item: ReadinessItem) -> str:
    return visible(one_line("; ".join(item.evidence) or item.title))


def _steps(console: Console, item: ReadinessItem) -> None:
    console.print(Text(f"{_INDENT}{item.id}: {visible(one_line(item.fix or item.title))}"), soft_wrap=True)
    for command in item.commands:
        console.print(Text(f"{_INDENT}  $ {visible(one_line(command))}", "cyan"), soft_wrap=True)
