"""`shoal cost`: what GPUs cost, by team, namespace, queue, job, model or label, from the recorded history."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.command_help import HelpCommand, HelpGroup
from shoal.cli.completion_values import one_of
from shoal.cli.cost_charges import ChargeOptions, charged, write_charges
from shoal.cli.cost_source import CostSource
from shoal.cli.formats import FOR_PROGRAMS, output_option
from shoal.cli.known_names import check_known
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.cli.cost_source import CostFacts
    from shoal.cost.report import CostReport

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Show what GPUs cost, by team, namespace, queue, job, model or label.",
    cls=HelpGroup,
    subcommand_metavar="[COMMAND] [ARGS]...",
)
_OF_DAYS = ("csv", "focus", "html", "parquet")
_FORMATS = ("table", *FOR_PROGRAMS, *_OF_DAYS)
_MOST_BYTES = 512 << 20
_BY = ("team", "namespace", "queue", "job", "gang", "pod", "model", "node", "label:")


@dataclass(frozen=True, kw_only=True)
class CostShown:
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="DIMENSION",
            help="team, namespace, queue, job, gang, pod, model, node or label:KEY.",
            autocompletion=one_of(_BY),
        ),
    ] = _BY[0]
    output: Annotated[
        str,
        output_option(
            _FORMATS,
            "table, json, yaml, csv or parquet (rows of days), focus (that of FOCUS 1.2), or html (a statement).",
        ),
    ] = _FORMATS[0]
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="DIMENSION=VALUE",
            help="Only the costs of pods with this property, as namespace=lab or label:app=chat. Can be repeated.",
        ),
    ] = None
    invoice: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="An invoice as CSV, FOCUS 1.2 or AWS CUR; a line has the difference from it."
        ),
    ] = None

    def check(self, charges: ChargeOptions) -> None:
        check_known(self.output, _FORMATS, "format", Where(path="--output"))
        charges.check()
        if self.filters and (charges.charge or self.invoice is not None):
            other = "--charge" if charges.charge else "--invoice"
            raise UserError(f"--filter does not go with {other}, which needs all costs", fix="leave out one of the two")
        if charges.charge and self.invoice is not None:
            raise UserError("--charge does not go with --invoice", fix="leave out one of the two")
        if charges.charge and self.output in _OF_DAYS:
            raise UserError(f"--charge does not go with -o {self.output}", fix="write -o json")


@app.callback(invoke_without_command=True)
@with_options
def cost(called: typer.Context, source: CostSource, shown: CostShown, charges: ChargeOptions) -> None:
    """Show what GPUs cost, by team, namespace, queue, job, model or label.

    Every second of every node has one class, and the sum is the invoice. The history is what shoal up records, or shoal
    run with --history.
    """
    if called.invoked_subcommand is not None:
        if source != CostSource() or shown != CostShown() or charges != ChargeOptions():
            raise UserError("options of a command stand behind its name", where=Where(path="shoal cost"))
        return
    from shoal.cost.cost_filter import CostFilter
    from shoal.cost.report import cost_report
    from shoal.cost.statement import dimension

    shown.check(charges)
    group_of = dimension(shown.by)
    facts = source.open()
    if charges.charge:
        report = charged(facts, charges, shown.by)
        _complain(facts, report)
        write_charges(facts, report, charges, shown.by, shown.output)
        return
    by_day = shown.output in _OF_DAYS
    records = facts.records(by_day=by_day)
    chosen = CostFilter(shown.filters) if shown.filters else None
    if chosen is not None:
        group_of = chosen.grouped(group_of)
    report = cost_report(records, facts.period(by_day=by_day), group_of, facts.basis(records.machines))
    if chosen is not None:
        report = chosen.kept(report)
    if shown.invoice is not None:
        report = _with_invoice(facts, report, shown.invoice)
    _complain(facts, report)
    if shown.output == "html":
        from shoal.cli.cost_statement import write_html

        write_html(facts, report, shown.by, _notes(facts, report))
    elif shown.output == "parquet":
        from shoal.cli.cost_statement import write_parquet

        write_parquet(facts, report, shown.by)
    elif by_day:
        _write_rows(facts, report, shown)
    else:
        _write_totals(facts, report, shown)


def _with_invoice(facts: CostFacts, report: CostReport, path: Path) -> CostReport:
    from shoal.api.files import read_whole
    from shoal.cost.invoices import read_invoice
    from shoal.cost.report import adjusted

    text = read_whole(path.expanduser(), _MOST_BYTES).decode("utf-8-sig", errors="replace")
    found = read_invoice(text.splitlines(), facts.window, facts.file.currency, Where(file=str(path)))
    if not found.rows:
        raise UserError("has no row in the window", where=Where(file=str(path)), fix="name its month with --window")
    return adjusted(report, found.total)


def _complain(facts: CostFacts, report: CostReport) -> None:
    from shoal.units.errors import one_line

    for note in _notes(facts, report):
        typer.echo(f"shoal: {one_line(note)}", err=True)


def _notes(facts: CostFacts, report: CostReport) -> list[str]:
    from shoal.cost.prices.machine_prices import missing_note

    missing = missing_note(report.missing)
    return [*([missing] if missing else []), *facts.notes(), *report.notes]


def _write_rows(facts: CostFacts, report: CostReport, shown: CostShown) -> None:
    from shoal.cost.statement import shown as in_cents
    from shoal.views.cost_files import ReportPeriods, csv_text, focus_text

    days = facts.days()
    periods = ReportPeriods([start for start, _ in days], facts.window.end_ms, [day.isoformat() for _, day in days])
    rows, currency = in_cents(report.rows), facts.file.currency
    text = csv_text(rows, periods, currency) if shown.output == "csv" else focus_text(rows, periods, currency, shown.by)
    typer.echo(text, nl=False)


def _write_totals(facts: CostFacts, report: CostReport, shown: CostShown) -> None:
    from shoal.cli.formats import console, write
    from shoal.cost.report import group_totals
    from shoal.units.calendar_windows import rfc3339
    from shoal.views.cost_tables import CostDocument, document_of, in_cents, missing_prices, show_costs

    groups = in_cents(group_totals(report.rows))
    if shown.output == "table":
        show_costs(console(), groups, shown.by, facts.file.currency, is_partial=report.is_partial)
        return
    named, others = document_of(groups)
    document = CostDocument(
        window=[rfc3339(facts.window.start_ms), rfc3339(facts.window.end_ms)],
        currency=facts.file.currency,
        by=shown.by,
        groups=named,
        others=others,
        total=f"{report.invoice:.2f}",
        unknown_hours=f"{report.unknown_hours:.2f}",
        notes=_notes(facts, report),
        partial=report.is_partial,
        missing_prices=missing_prices(report.missing),
    )
    write(document, shown.output)


def _explain() -> None:
    from shoal.cli.cost_explain import explain

    app.command("explain", cls=HelpCommand)(explain)


def _advise() -> None:
    from shoal.cli.cost_advise import advise

    app.command("advise", cls=HelpCommand)(advise)


def _calculate() -> None:
    from shoal.cli.cost_calculate import calculate

    app.command("calculate", cls=HelpCommand)(calculate)


def _budget() -> None:
    from shoal.cli.cost_budget import budget

    app.command("budget", cls=HelpCommand)(budget)


def _forget() -> None:
    from shoal.cli.cost_forget import forget

    app.command("forget", cls=HelpCommand)(forget)


def _backfill() -> None:
    from shoal.cli.cost_backfill import backfill

    app.command("backfill", cls=HelpCommand)(backfill)


def _export() -> None:
    from shoal.cli.cost_export import export

    app.command("export", cls=HelpCommand)(export)


def _serve() -> None:
    from shoal.cli.cost_serve import serve

    app.command("serve", cls=HelpCommand)(serve)


_explain()
_advise()
_calculate()
_budget()
_forget()
_serve()
_backfill()
_export()
