"""Writes the statements of `shoal cost -o html` and `shoal cost -o parquet`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.cli.cost_source import CostFacts
    from shoal.cost.report import CostReport

_COLUMNS = {
    "day": "day",
    **dict.fromkeys(("start", "end"), "moment"),
    **dict.fromkeys(("by", "group", "class"), "text"),
    "amount": "amount",
    "currency": "text",
    **dict.fromkeys(("gpu_amount", "cpu_amount", "memory_amount", "gpu_hours"), "amount"),
}
"""Amounts are exact decimals, whose sum is the invoice."""


def write_html(facts: CostFacts, report: CostReport, by: str, notes: Sequence[str]) -> None:
    from shoal.cost.day_totals import day_totals
    from shoal.cost.report import group_totals
    from shoal.views.cost_statement import CostStatement, statement_html
    from shoal.views.cost_tables import in_cents

    days = facts.days()
    found = CostStatement(
        window=facts.window,
        zone=facts.zone,
        zone_name=facts.source.time_zone,
        by=by,
        currency=facts.file.currency,
        groups=in_cents(group_totals(report.rows)),
        days=days,
        of_days=day_totals(report.rows, len(days)),
        unknown_hours=report.unknown_hours,
        notes=list(notes),
    )
    sys.stdout.write(statement_html(found))


def write_parquet(facts: CostFacts, report: CostReport, by: str) -> None:
    """The rows of `-o csv` to standard output."""
    from shoal.cost.statement import shown
    from shoal.store.history.ledger_files import parquet_bytes
    from shoal.units.errors import UserError, Where

    if sys.stdout.isatty():
        fix = "write it to a file with > october.parquet"
        raise UserError("is not for a terminal", where=Where(path="--output"), fix=fix)
    days = facts.days()
    ends = [*(start for start, _ in days[1:]), facts.window.end_ms]
    rows = [
        {
            "day": days[row.day][1],
            "start": days[row.day][0],
            "end": ends[row.day],
            "by": by,
            "group": row.group,
            "class": row.kind,
            "amount": row.amount,
            "currency": facts.file.currency,
            "gpu_amount": row.gpu_amount,
            "cpu_amount": row.cpu_amount,
            "memory_amount": row.memory_amount,
            "gpu_hours": row.gpu_hours,
        }
        for row in shown(report.rows)
    ]
    sys.stdout.buffer.write(parquet_bytes(_COLUMNS, rows))
    sys.stdout.flush()
