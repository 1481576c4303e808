"""`shoal cost explain JOB`: what a job cost and why: its pods, their devices and times, and its waits."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.cost_source import CostSource
from shoal.cli.formats import TEXTS, TextOutput, checked
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where, excerpt


@with_options
def explain(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The name of a job, gang or pod, or NAMESPACE/NAME.")],
    source: CostSource,
    output: TextOutput = TEXTS[0],
) -> None:
    """Explain what a job cost: its pods, the devices that they held, classes and waits."""
    from shoal.cli.formats import console, write
    from shoal.cost.explanation import job_cost, names_of
    from shoal.views.cost_explanation import show_job

    checked(output, TEXTS)
    facts = source.open()
    records = facts.records()
    curves = facts.curves(records)
    found = job_cost(job, records, curves, facts.period(by_day=False), facts.basis(records.machines).mode)
    if found is None:
        known = sorted({f"{one.holder.namespace}/{one.holder.job}" for one in records.holdings if one.holder.job})
        fix = f"recorded jobs: {', '.join(known[:5])}" if known else "no job was recorded in the window"
        raise UserError(f"no job, gang or pod {excerpt(job)} held anything", where=Where(path="JOB"), fix=fix)
    mine = {held.holder.pod for held in records.holdings if job in names_of(held)}
    waits = [one for one in facts.waits() if one.holder.pod in mine]
    for note in facts.notes():
        typer.echo(f"shoal: {note}", err=True)
    if output == "text":
        show_job(console(), found, waits, facts.file.currency)
    else:
        write(found, output)
