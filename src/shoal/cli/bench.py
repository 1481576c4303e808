"""`shoal bench`: the figures the project promises, measured here and now, each beside the bar it is held to.

Rejected: failing when a bar is missed. A figure depends on the machine; the ratio is named and people judge.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from shoal.cli.command_help import HelpCommand, HelpGroup
from shoal.cli.formats import FOR_PROGRAMS, AsJson, TableOutput, checked, console, write

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from shoal.sim.queuebench import BenchFigure

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    cls=HelpGroup,
    help="Measure the speed of decisions and the quality of packing.",
    no_args_is_help=False,
)


_TABLE = "table"
_FORMATS = (_TABLE, *FOR_PROGRAMS)


class _Bar(NamedTuple):
    key: str
    title: str
    least: float | None
    most: float | None
    unit: str


_ENGINE_BARS = (
    _Bar("placements_per_s", "placements a second, 5,000 nodes x 8 GPUs, one core", 20_000, None, ""),
    _Bar("vs_rescan_5k", "against a rescan of all nodes, 5,000 nodes", 5, None, "x"),
    _Bar("vs_rescan_50k", "against a rescan of all nodes, 50,000 nodes", 50, None, "x"),
    _Bar("growth_50k_over_5k", "cost of a placement, 50,000 nodes over 5,000", None, 1.5, "x"),
    _Bar("rss_mb", "memory, 50,000 nodes x 8 GPUs and 100,000 pods", None, 500, " MB"),
    _Bar("mixed_placements_per_s", "the same, mixed: affinity, spread, MIG, fractions", 10_000, None, ""),
    _Bar("gang_1000_s", "a gang of 1,000 in a block of 128 nodes, of 5,000", None, 0.1, " s"),
    _Bar("gang_1000_exact_s", "the same where exactly 125 nodes are free", None, 0.2, " s"),
    _Bar("preempt_s", "50 gangs of 8 x 8 GPUs by preemption, 1,000 nodes", None, 1, " s"),
    _Bar("why_not_ms", "why one pod fits on none of 50,000 nodes", None, 50, " ms"),
)


@app.callback()
def bench() -> None:
    """Each command prints figures of its own."""


@app.command("engine", cls=HelpCommand)
def engine(
    output: TableOutput = _TABLE,
    as_json: AsJson = False,
) -> None:
    """Measure the decision core: placements a second, growth with the fleet, memory."""
    form = "json" if as_json else checked(output, _FORMATS)
    import msgspec

    from shoal.sim import enginefigures

    figures = msgspec.to_builtins(enginefigures.run(_note))
    if form != _TABLE:
        write(figures, form)
        return
    console(is_folded=True).print(figure_table(figures))


@app.command("queues", cls=HelpCommand)
def queues(
    output: TableOutput = _TABLE,
    as_json: AsJson = False,
    out_of_step: Annotated[
        bool, typer.Option("--out-of-step", help="Work starts at a different moment in every queue.")
    ] = False,
) -> None:
    """Measure the queue discipline: Kueue's own loads in virtual time, and an idle round."""
    form = "json" if as_json else checked(output, _FORMATS)

    from shoal.sim import queuebench

    figures = queuebench.run(_note, out_of_step=out_of_step)
    if form != _TABLE:
        write(figures, form)
        return
    screen = console(is_folded=True)
    for title, rows in queuebench.tables_of(figures):
        screen.print(f"[bold]{title}[/]")
        screen.print(row_table(rows))


def row_table(rows: Iterable[BenchFigure]) -> Table:
    """Figures beside their bars and beside Kueue's."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("figure")
    for heading in ("measured", "bar", "Kueue"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for row in rows:
        wanted = _wanted(row.least, row.most, row.unit)
        theirs = "" if row.kueue is None else f"{_shown(row.kueue)}{row.unit}"
        table.add_row(
            row.title, f"{_shown(row.measured)}{row.unit}", wanted, theirs, _verdict(row.is_met) if wanted else ""
        )
    return table


def figure_table(figures: dict[str, float]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("figure")
    for heading in ("measured", "bar"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for bar in _ENGINE_BARS:
        value = figures[bar.key]
        met = (bar.least is None or value >= bar.least) and (bar.most is None or value <= bar.most)
        table.add_row(bar.title, f"{_shown(value)}{bar.unit}", _wanted(bar.least, bar.most, bar.unit), _verdict(met))
    return table


def _note(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"{text}\n")


def _wanted(least: float | None, most: float | None, unit: str) -> str:
    if least is not None:
        return f">= {least:,g}{unit}"
    return "" if most is None else f"<= {most:,g}{unit}"


def _verdict(met: bool) -> str:
    return "[green]met[/]" if met else "[red]missed[/]"


def _shown(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
