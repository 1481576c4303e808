"""Writes the rows of a report as CSV: Shoal's own columns, or those of FOCUS 1.2.

Amounts add up to the invoice in cents. A value that a spreadsheet would read as a formula has an apostrophe before it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import msgspec

from shoal.cost.report import HELD_KINDS
from shoal.cost.statement import CostRow
from shoal.units.calendar_windows import rfc3339

_OWN = ("day", "group", "class", "amount", "currency", "gpuAmount", "cpuAmount", "memoryAmount", "gpuHours")
_FOCUS = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ResourceId",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "SubAccountId",
    "SubAccountName",
    "Tags",
    "x_ShoalClass",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class ReportPeriods(msgspec.Struct, frozen=True):
    """The days of a report: their begins, and the end of the last."""

    starts_ms: Sequence[int]
    end_ms: int
    names: Sequence[str]
    """Of the days, as in 2026-10-25."""

    def of(self, day: int) -> tuple[int, int]:
        ends = [*self.starts_ms[1:], self.end_ms]
        return self.starts_ms[day], ends[day]


def csv_text(rows: Sequence[CostRow], periods: ReportPeriods, currency: str) -> str:
    """`rows` in cents."""
    table = [
        [
            periods.names[row.day],
            _safe(row.group),
            row.kind,
            f"{row.amount:.2f}",
            currency,
            f"{row.gpu_amount:.2f}",
            f"{row.cpu_amount:.2f}",
            f"{row.memory_amount:.2f}",
            f"{row.gpu_hours:.2f}",
        ]
        for row in rows
    ]
    return _written(_OWN, table)


def focus_text(rows: Sequence[CostRow], periods: ReportPeriods, currency: str, by: str) -> str:
    """`rows` in cents. A row that belongs to no group has an empty SubAccountId."""
    first, end = rfc3339(periods.starts_ms[0]), rfc3339(periods.end_ms)
    table = []
    for row in rows:
        start, until = periods.of(row.day)
        cost, hours = f"{row.amount:.2f}", f"{row.gpu_hours:.2f}"
        about = "held by pods" if row.kind in HELD_KINDS else "not held by pods"
        values = {
            "BilledCost": cost,
            "BillingAccountId": "shoal",
            "BillingAccountName": "Shoal",
            "BillingCurrency": currency,
            "BillingPeriodEnd": end,
            "BillingPeriodStart": first,
            "ChargeCategory": "Usage",
            "ChargeDescription": f"{row.kind}: {about}",
            "ChargeFrequency": "Usage-Based",
            "ChargePeriodEnd": rfc3339(until),
            "ChargePeriodStart": rfc3339(start),
            "ConsumedQuantity": hours,
            "ConsumedUnit": "GPU-Hours",
            "ContractedCost": cost,
            "EffectiveCost": cost,
            "InvoiceIssuerName": "Shoal",
            "ListCost": cost,
            "PricingQuantity": hours,
            "PricingUnit": "GPU-Hours",
            "ProviderName": "Shoal",
            "PublisherName": "Shoal",
            "ResourceType": "GPU cluster",
            "ServiceCategory": "Compute",
            "ServiceName": "GPU cluster",
            "SubAccountId": _safe(row.group),
            "SubAccountName": _safe(row.group),
            "Tags": msgspec.json.encode({by: row.group} if row.group else {}).decode(),
            "x_ShoalClass": row.kind,
        }
        table.append([values.get(name, "") for name in _FOCUS])
    return _written(_FOCUS, table)


def _written(headings: Sequence[str], table: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(table)
    return text.getvalue()


def _safe(value: str) -> str:
    return f"'{value}" if value.startswith(_FORMULA) else value
