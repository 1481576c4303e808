"""Reads an invoice as a cloud exports it: the columns of FOCUS 1.2, or those of the AWS cost and usage report.

A row counts in the window in which its charge period begins. Amounts may be negative (credits). Every row has to have
the currency of the prices; nothing is converted.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal

import msgspec

from shoal.units.calendar_windows import TimeWindow
from shoal.units.errors import UserError, Where, excerpt

_AMOUNT = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?")
ADJUSTMENT = "invoice-adjustment"


class InvoiceColumns(msgspec.Struct, frozen=True):
    cost: str
    currency: str
    start: str


_KNOWN = (
    InvoiceColumns("BilledCost", "BillingCurrency", "ChargePeriodStart"),
    InvoiceColumns("lineItem/UnblendedCost", "lineItem/CurrencyCode", "lineItem/UsageStartDate"),
    InvoiceColumns("line_item_unblended_cost", "line_item_currency_code", "line_item_usage_start_date"),
)


class Invoice(msgspec.Struct, frozen=True):
    total: Decimal
    """Of the rows in the window."""
    rows: int
    others: int
    """Rows of other times."""


def read_invoice(lines: Iterable[str], window: TimeWindow, currency: str, where: Where) -> Invoice:
    """Raises UserError with the row and the column that is wrong."""
    reader = csv.DictReader(lines)
    columns = next((one for one in _KNOWN if one.cost in (reader.fieldnames or ())), None)
    if columns is None:
        names = " or ".join(one.cost for one in _KNOWN)
        raise UserError("has no column of costs", where=where, fix=f"export it with the column {names}")
    total, counted, others = Decimal(0), 0, 0
    for number, row in enumerate(reader, 2):
        at = Where(file=where.file, row=number)
        moment = _moment(row, columns.start, at)
        if not window.start_ms <= moment < window.end_ms:
            others += 1
            continue
        found = row.get(columns.currency) or ""
        if found != currency:
            fix = f"write currency: {found} in the price file" if found else ""
            raise UserError(f"is in {excerpt(found)}, prices are in {currency}", where=at, fix=fix)
        total += _amount(row, columns.cost, at)
        counted += 1
    return Invoice(total, counted, others)


def _amount(row: Mapping[str, str | None], column: str, where: Where) -> Decimal:
    text = (row.get(column) or "").strip()
    if not _AMOUNT.fullmatch(text):
        raise UserError(f"{excerpt(text)} is not an amount", where=where.with_path(column))
    return Decimal(text)


def _moment(row: Mapping[str, str | None], column: str, where: Where) -> int:
    text = (row.get(column) or "").strip()
    try:
        found = datetime.fromisoformat(text)
        return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise UserError(f"{excerpt(text)} is not a time", where=where.with_path(column)) from None
