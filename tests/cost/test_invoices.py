"""Invoices with the columns of FOCUS and of the cost and usage report."""

from __future__ import annotations

from decimal import Decimal

import pytest

from shoal.cost.invoices import read_invoice
from shoal.units.calendar_windows import month_window, zone_of
from shoal.units.errors import UserError, Where

OCTOBER = month_window(2026, 10, zone_of("UTC"))
FOCUS = """BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ResourceId
12.5,USD,2026-10-01T00:00:00Z,2026-10-02T00:00:00Z,i-1
-0.25,USD,2026-10-31T23:00:00Z,2026-11-01T00:00:00Z,i-1
99,USD,2026-11-01T00:00:00Z,2026-11-02T00:00:00Z,i-1
"""
REPORT = """lineItem/UsageStartDate,lineItem/UnblendedCost,lineItem/CurrencyCode
2026-10-05T00:00:00Z,1.5E-3,USD
2026-10-05T01:00:00Z,2,USD
"""


def _read(text: str, currency: str = "USD") -> Decimal:
    return read_invoice(text.splitlines(), OCTOBER, currency, Where(file="invoice.csv")).total


def test_the_rows_of_the_window_are_added_with_their_credits() -> None:
    assert _read(FOCUS) == Decimal("12.25")
    found = read_invoice(FOCUS.splitlines(), OCTOBER, "USD", Where())
    assert (found.rows, found.others) == (2, 1)


def test_both_spellings_of_the_cost_and_usage_report_are_read() -> None:
    assert _read(REPORT) == Decimal("2.0015")
    newer = REPORT.replace("lineItem/UsageStartDate", "line_item_usage_start_date")
    newer = newer.replace("lineItem/UnblendedCost", "line_item_unblended_cost")
    assert _read(newer.replace("lineItem/CurrencyCode", "line_item_currency_code")) == Decimal("2.0015")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no column of costs"),
        ("cost,start\n1,2\n", "has no column of costs"),
        (FOCUS.replace("12.5,USD", "12.5,EUR"), 'row 2: is in "EUR"'),
        (FOCUS.replace("12.5,USD", "twelve,USD"), 'row 2: BilledCost: "twelve" is not an amount'),
        (FOCUS.replace("2026-10-01T00:00:00Z", "October"), "row 2: ChargePeriodStart"),
    ],
)
def test_what_is_wrong_is_named_with_its_row(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        _read(text)
