"""In random months the classes add up to the invoice, and each is what a walk over all steps finds."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction

import pytest

from build.depth import examples
from build.scripted_months import STEP_MS, STEPS, scripted_month, truth
from shoal.cost.statement import Period, dimension, shown, statement, total
from shoal.units.calendar_windows import TimeWindow
from shoal.units.money import cents

CENT = Decimal("0.01")
WINDOW = TimeWindow(0, STEPS * STEP_MS)
DAYS = tuple(range(0, WINDOW.end_ms, 24 * 3_600_000))


@pytest.mark.parametrize("seed", range(examples(20)))
def test_every_class_of_every_team_is_what_the_steps_say(seed: int) -> None:
    month = scripted_month(seed)
    rows = statement(month.records, month.curves, Period(WINDOW, DAYS), dimension("team"))
    expected, invoice = truth(month)
    found: Counter[tuple[str, str]] = Counter()
    for row in rows:
        found[row.group, row.kind] += Fraction(row.amount)  # type: ignore[assignment]
    for key in expected.keys() | found.keys():
        assert abs(found[key] - expected[key]) <= Fraction(1, 10**9), key
    assert cents(total(rows)) == cents(Decimal(invoice.numerator) / invoice.denominator)
    assert sum(row.amount for row in shown(rows)) == cents(total(rows))


@pytest.mark.parametrize("seed", range(examples(5)))
def test_days_and_groups_only_divide_what_the_month_costs(seed: int) -> None:
    month = scripted_month(seed)
    whole = total(statement(month.records, month.curves, Period(WINDOW, (0,)), dimension("node")))
    for period in (Period(WINDOW, DAYS), Period(WINDOW, (0, WINDOW.end_ms // 3 + 7))):
        for by in ("team", "pod", "model", "node"):
            assert abs(total(statement(month.records, month.curves, period, dimension(by))) - whole) < CENT / 1000
