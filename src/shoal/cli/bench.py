"""`shoal bench`: the figures the project promises, measured here and now, each beside the bar it is held to.

Rejected: failing when a bar is missed. A figure depends on the machine; the ratio is named and people judge.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(help="Measure what the project promises.", no_args_is_help=False)


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
    """A group of one command for now; without this, typer would drop its name."""


@app.command("engine")
def engine(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout and nothing else.")] = False,
) -> None:
    """Measure the decision core: placements a second, growth with the fleet, memory."""
    import msgspec

    from shoal.sim import enginefigures

    def note(text: str) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"{text}\n")

    figures = msgspec.to_builtins(enginefigures.run(note))
    if as_json:
        sys.stdout.write(msgspec.json.encode(figures).decode() + "\n")
        return
    from rich.console import Console

    Console(highlight=False).print(figure_table(figures))


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
        wanted = f">= {bar.least:,g}" if bar.least is not None else f"<= {bar.most:,g}"
        verdict = "[green]met[/]" if met else "[red]missed[/]"
        table.add_row(bar.title, f"{_shown(value)}{bar.unit}", f"{wanted}{bar.unit}", verdict)
    return table


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
