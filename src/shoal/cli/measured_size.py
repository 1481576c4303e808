"""Implements `shoal size --job` and `shoal doctor --history`: the part of a GPU that suffices for a job, from the
history of its use.

The numbers are those of `shoal cost advise`: one function judges what is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from shoal.cost.advice import MeasuredUse, RightSize
    from shoal.policy.diagnosis.cluster_facts import MeasuredSize

_RECENT = "7d"


@dataclass(frozen=True, kw_only=True)
class MeasuredChoice:
    job: Annotated[
        str,
        typer.Option("--job", metavar="NAMESPACE/NAME", help="Size a job by its recorded use instead of a model."),
    ] = ""
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="DIR", help="Its history; by default that of the cluster of shoal up."),
    ] = None
    window: Annotated[
        str, typer.Option("--window", metavar="WINDOW", help="The time of the history, such as 7d or 2026-10.")
    ] = "30d"


def measured_size(choice: MeasuredChoice, output: str) -> None:
    """Raises UserError where nothing is recorded about the job."""
    from shoal.cli.formats import FOR_PROGRAMS, console, write
    from shoal.cost.advice import right_size
    from shoal.units.errors import UserError, Where

    use = _measured(choice)
    found = right_size(use)
    if found is None:
        raise UserError(f"the GPU model {use.model or 'of the job'} is not known", where=Where(path="--job"))
    if output in FOR_PROGRAMS:
        write(_document(choice.job, use, found), output)
        return
    out = console()
    for head, words in (
        ("job", f"{choice.job}, on {found.model.name}"),
        ("measured", f"{found.evidence}, activity of an hour at most {use.activity:.0%} (--window {choice.window})"),
        ("suffices", _words(found)),
    ):
        out.print(f"{head:<9} {words}", markup=False, highlight=False, soft_wrap=True)


def _measured(choice: MeasuredChoice) -> MeasuredUse:
    from shoal.cli.cost_source import CostSource
    from shoal.store.history.measured import measured_jobs
    from shoal.units.errors import UserError, Where, excerpt
    from shoal.units.near_texts import meant_words

    facts = CostSource(window=choice.window, history=choice.history).open()
    uses = measured_jobs(facts.history, facts.recorded(), facts.window)
    if choice.job not in uses:
        what = f"the history has no use of job {excerpt(choice.job)}{meant_words(choice.job, sorted(uses))}"
        fix = "jobs are written NAMESPACE/NAME; shoal cost --by job lists those with costs"
        raise UserError(what, where=Where(path="--job"), fix=fix)
    return uses[choice.job]


def measured_sizes(folder: Path) -> dict[str, MeasuredSize]:
    """By `namespace/pod`, what suffices for the jobs of a history that used a small part of their GPUs.

    Raises UserError for a folder without a history.
    """
    from shoal.cli.cost_source import CostSource
    from shoal.cost.advice import right_size
    from shoal.cost.right_size import is_underused
    from shoal.policy.diagnosis.cluster_facts import MeasuredSize
    from shoal.store.history.measured import measured_jobs

    facts = CostSource(window=_RECENT, history=folder).open()
    records = facts.recorded()
    sizes = {}
    for job, use in measured_jobs(facts.history, records, facts.window).items():
        found = right_size(use) if is_underused(use.utilisation) else None
        if found is not None and (found.instance is not None or found.cheaper is not None):
            evidence = f"the last {_RECENT} of the history: {found.evidence}"
            sizes[job] = MeasuredSize(job, _words(found), evidence)
    held = ((one.holder, f"{one.holder.namespace}/{one.holder.job}") for one in records.holdings)
    return {f"{holder.namespace}/{holder.pod}": sizes[job] for holder, job in held if job in sizes}


def _words(found: RightSize) -> str:
    parts = []
    if found.instance is not None:
        parts.append(f"a MIG instance {found.instance.profile} ({found.instance.per_gpu} fit a GPU)")
    if found.cheaper is not None:
        parts.append(f"a GPU {found.cheaper.name}")
    return " or ".join(parts) or "nothing smaller: the job needs the whole GPU"


def _document(job: str, use: MeasuredUse, found: RightSize) -> dict[str, Any]:
    return {
        "job": job,
        "gpu": found.model.name,
        "utilisation": float(use.utilisation),
        "memoryGib": float(use.memory_gib),
        "activity": float(use.activity),
        "migProfile": found.instance.profile if found.instance is not None else "",
        "perGpu": found.instance.per_gpu if found.instance is not None else 0,
        "cheaperGpu": found.cheaper.name if found.cheaper is not None else "",
    }
