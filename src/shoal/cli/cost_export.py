"""`shoal cost export --parquet TARGET`: the ledger of a history as Parquet files, one for each table and day."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.cost_source import CostSource
from shoal.cli.option_groups import with_options
from shoal.cli.prometheus_options import PrometheusOptions


@dataclass(frozen=True, kw_only=True)
class ExportOptions(PrometheusOptions):
    parquet: Annotated[str, typer.Option(metavar="TARGET", help="The folder of the files, or s3://BUCKET/PREFIX.")]
    window: Annotated[
        str, typer.Option(metavar="WINDOW", help="Whose days are written, as for shoal cost; days are those of UTC.")
    ] = "30d"
    history: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the history; by default that of the cluster of shoal up."),
    ] = None


@with_options
def export(options: ExportOptions) -> None:
    """Write what pods held, waits, nodes and gaps as Parquet files, one for each day."""
    from shoal.store.history.file_targets import file_target
    from shoal.store.history.ledger_files import export_days

    put = file_target(options.parquet)
    given = {name: value for name, value in vars(options).items() if name != "parquet"}
    facts = CostSource(**given).open()
    try:
        found = export_days(facts.history, facts.window, put)
        for note in facts.notes():
            typer.echo(f"shoal: {note}", err=True)
    finally:
        facts.history.close()
    if not found.days:
        typer.echo("no day of the window was recorded")
        return
    days = f"{found.days[0]} to {found.days[-1]}"
    typer.echo(f"{found.files:,} files with {found.rows:,} rows of {len(found.days):,} days, {days}")
