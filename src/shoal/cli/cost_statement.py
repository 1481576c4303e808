"""Writes the statement of `shoal cost -o html` and of `shoal cost --parquet`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.cli.cost_source import CostFacts
    from shoal.cost.report import CostReport


def write_html(facts: CostFacts, report: CostReport, by: str) -> None:
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
        notes=[*facts.notes(), *report.notes],
    )
    sys.stdout.write(statement_html(found))
