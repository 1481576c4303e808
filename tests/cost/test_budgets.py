"""Budgets of a month: what was spent, the forecast, and the months in which clocks change."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest

from shoal.api.budget_report import BudgetKind
from shoal.api.cost_budgets import SpentBudget
from shoal.cost.budgets import MonthSpending, budget_groups, budget_lines, forecast
from shoal.cost.prices.price_file import read_price_file
from shoal.cost.records import Holder, Holding, Machine
from shoal.cost.statement import CostRow
from shoal.units.calendar_windows import HOUR_MS, TimeWindow, day_starts, month_window, zone_of
from shoal.units.errors import UserError
from shoal.units.money import cents

BERLIN = zone_of("Europe/Berlin")


def _month(month: int, days: int, hours: int, daily: list[int]) -> MonthSpending:
    whole = month_window(2026, month, BERLIN)
    now = day_starts(whole, BERLIN)[days][0] + hours * HOUR_MS
    starts = [start for start, _ in day_starts(TimeWindow(whole.start_ms, now + 1), BERLIN)]
    return MonthSpending(starts, now, whole.end_ms, [Decimal(one) for one in daily])


def test_the_rest_of_a_month_costs_what_the_last_seven_whole_days_did() -> None:
    # Ten days: three at 10, seven at 24; 20 more days of November at 24.
    found = forecast(_month(11, 10, 0, [10] * 3 + [24] * 7 + [0]))
    assert found == 30 + 7 * 24 + 20 * 24


def test_a_day_that_is_not_over_counts_as_spent_and_not_as_usual() -> None:
    found = forecast(_month(11, 10, 12, [24] * 10 + [6]))
    assert found == 240 + 6 + Decimal("19.5") * 24


def test_on_the_first_day_the_hours_so_far_are_the_measure() -> None:
    assert forecast(_month(11, 0, 6, [6])) == 720


def test_days_before_the_history_began_are_not_days_without_cost() -> None:
    # Recorded since noon of the 27th: 48 in 12 hours, and 24 in the 6 hours of the day after, which is not over.
    month = _month(11, 27, 6, [0] * 26 + [48, 24])
    since = month.starts_ms[26] + 12 * HOUR_MS
    found = forecast(msgspec.structs.replace(month, since_ms=since))
    assert found == 72 + 72 * Decimal(66) / 18
    # With a whole day, that day is the measure.
    later = _month(11, 28, 6, [0] * 26 + [48, 96, 24])
    assert forecast(msgspec.structs.replace(later, since_ms=since)) == 168 + 96 * Decimal(42) / 24


@pytest.mark.parametrize(("month", "hours"), [(3, 743), (10, 745), (11, 720)])
def test_a_constant_cost_is_forecast_exactly_when_clocks_change(month: int, hours: int) -> None:
    whole = month_window(2026, month, BERLIN)
    starts = [start for start, _ in day_starts(whole, BERLIN)][:21]
    ends = [*starts[1:], starts[-1]]
    amounts = [Decimal(end - start) / HOUR_MS for start, end in zip(starts, ends, strict=True)]
    found = forecast(MonthSpending(starts, starts[-1], whole.end_ms, amounts))
    assert abs(found - hours) < Decimal("1e-20")


def test_budgets_are_kept_at_risk_or_exceeded() -> None:
    file = read_price_file(
        {
            "budgets": [
                {"team": "red", "perMonth": 1000},
                {"team": "blue", "perMonth": 500},
                {"namespace": "lab", "perMonth": "100"},
                {"queue": "q", "perMonth": 10},
                {"team": "green", "perMonth": 100},
                {"team": "gray", "perMonth": 100},
            ]
        },
        "f",
    )
    month = _month(11, 10, 0, [0] * 11)
    rows: dict[BudgetKind, list[CostRow]] = {
        "team": [CostRow("red", day, "startup", Decimal(10)) for day in range(10)]
        + [CostRow("blue", day, "startup", Decimal(20)) for day in range(10)]
        + [CostRow("green", 0, "startup", Decimal(100)), CostRow("gray", 0, "startup", Decimal("99.996"))],
        "namespace": [CostRow("lab", 0, "allocated-idle", Decimal(101))],
    }
    found = budget_lines(file.budgets, rows, month)
    assert [(one.subject, one.state) for one in found] == [
        ("team red", "kept"),
        ("team blue", "at risk"),
        ("namespace lab", "exceeded"),
        ("queue q", "kept"),
        ("team green", "exceeded"),
        ("team gray", "exceeded"),
    ]
    for budget, line in zip(file.budgets, found, strict=True):
        # An enforced budget holds work back in the same cents as it is shown.
        held = SpentBudget("team", "t", budget.per_month, cents(line.spent), cents(line.forecast), "forecast")
        assert (line.state == "exceeded", line.state != "kept") == (held.is_used_up, held.refuses)
    assert found[0].forecast == 300


def test_a_budget_names_one_subject() -> None:
    with pytest.raises(UserError, match="has to name one of team, namespace, queue"):
        read_price_file({"budgets": [{"perMonth": 1}]}, "f")


def test_a_queue_with_its_namespace_is_one_queue_and_a_name_alone_all_that_are_called_so() -> None:
    group_of = budget_groups("queue")
    machine = Machine("n", 0)
    held = [
        Holding(Holder(name, space, queue=queue), "n", 0) for name, space, queue in (("a", "lab", "q"), ("b", "x", "q"))
    ]
    groups = [group_of(one, machine) for one in held]
    rows = [CostRow(group, 0, "startup", Decimal(amount)) for group, amount in zip(groups, (30, 12), strict=True)]
    rows.append(CostRow(group_of(None, machine), 0, "unallocated", Decimal(50)))
    file = read_price_file(
        {"budgets": [{"queue": name, "perMonth": 100} for name in ("lab/q", "x/q", "q", "y/q")]}, "f"
    )
    found = budget_lines(file.budgets, {"queue": rows}, _month(11, 10, 0, [0] * 11))
    assert [(one.subject, int(one.spent)) for one in found] == [
        ("queue lab/q", 30),
        ("queue x/q", 12),
        ("queue q", 42),
        ("queue y/q", 0),
    ]


@pytest.mark.parametrize("name", ["/q", "lab/", "a/b/c"])
def test_a_queue_that_is_neither_a_name_nor_a_namespace_and_a_name_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=r"budgets\[0\].queue.*is no queue"):
        read_price_file({"budgets": [{"queue": name, "perMonth": 1}]}, "f")
