"""`shoal cost advise`: what would cost less, with its evidence and the saving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cost_source import CostSource
from shoal.cli.formats import TEXTS, TextOutput, checked
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from shoal.cli.cost_source import CostFacts
    from shoal.cost.advice import CostAdvice


@dataclass(frozen=True, kw_only=True)
class AdviseShown:
    output: TextOutput = TEXTS[0]
    budget: Annotated[
        bool, typer.Option("--budget", help="Print settings for three kinds of budgets, and read no history.")
    ] = False


@with_options
def advise(source: CostSource, shown: AdviseShown) -> None:
    """Advise what would cost less: idle jobs, smaller GPUs, nodes for few pods, commitments, spot capacity."""
    from shoal.cli.formats import console, write
    from shoal.cost.targets import PRESETS
    from shoal.views.cost_advice import show_advice, show_presets

    checked(shown.output, TEXTS)
    if shown.budget:
        if shown.output == "text":
            show_presets(console(), PRESETS)
        else:
            write(list(PRESETS), shown.output)
        return
    facts = source.open()
    found = _advice(facts)
    for note in facts.notes():
        typer.echo(f"shoal: {note}", err=True)
    if shown.output == "text":
        show_advice(console(), found, facts.file.currency)
    else:
        write({"currency": facts.file.currency, "advice": found}, shown.output)


def _advice(facts: CostFacts) -> list[CostAdvice]:
    from shoal.cost.advice import commitment_advice, job_advice, node_advice, spot_advice
    from shoal.cost.share_basis import with_share_basis
    from shoal.cost.statement import dimension, statement
    from shoal.store.history.measured import jobs_with_checkpoints, measured_jobs

    recorded = facts.recorded()
    records = with_share_basis(recorded, facts.file)
    curves, period = facts.curves(records), facts.period(by_day=False)
    by_job = statement(records, curves, period, dimension("job"))
    by_node = statement(records, curves, period, dimension("node"))
    return [
        *job_advice(by_job, measured_jobs(facts.history, recorded, facts.window)),
        *node_advice(by_node, records.machines, facts.window),
        *commitment_advice(records.machines, curves, facts.window),
        *spot_advice(by_job, records, facts.file, jobs_with_checkpoints(records)),
    ]
