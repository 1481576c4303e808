"""Budgets of namespaces beside those of the price file."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from shoal.api.budget_report import BudgetReport, ReportedBudget, check_budget_report
from shoal.api.meta import ObjectMeta
from shoal.cost.prices.price_file import Budget, PriceFile
from shoal.store.history.file_tables import open_for_writing
from shoal.store.history.history import UsageHistory
from shoal.store.history.memory_tables import MemoryTables
from shoal.store.history.team_budgets import BudgetedNamespace, budgeted, with_team_budgets
from shoal.units.errors import Where


@pytest.fixture(params=["memory", "file"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UsageHistory]:
    found = UsageHistory(MemoryTables() if request.param == "memory" else open_for_writing(tmp_path))
    yield found
    found.close()


def namespace(name: str, team: str, amount: str, enforced: str = "") -> BudgetedNamespace:
    annotations = {"shoal.dev/budget-per-month": amount}
    if enforced:
        annotations["shoal.dev/budget-enforced"] = enforced
    return BudgetedNamespace(name, {"shoal.dev/team": team} if team else {}, annotations)


def budgets(file: PriceFile, *found: BudgetedNamespace) -> list[tuple[str, str, str]]:
    return [(one.team, str(one.per_month), one.enforce) for one in with_team_budgets(file, found).budgets]


def test_a_team_has_the_sum_of_its_namespaces_and_is_enforced_if_one_of_them_is() -> None:
    found = budgets(PriceFile(), namespace("a", "red", "100"), namespace("b", "red", "20.50", "spent"))
    assert found == [("red", "120.50", "spent")]


def test_a_team_is_enforced_as_its_strictest_namespace_says_whatever_the_others_say() -> None:
    spent, forecast = namespace("b", "red", "1", "spent"), namespace("c", "red", "1", "forecast")
    assert budgets(PriceFile(), namespace("a", "red", "1", "yes"), spent) == [("red", "2", "spent")]
    assert budgets(PriceFile(), spent, forecast, namespace("d", "red", "1")) == [("red", "3", "forecast")]
    # An annotation that enforces counts beside the budgets of the team, not beside an amount of another form.
    assert budgets(PriceFile(), namespace("a", "red", "a lot", "forecast"), spent) == [("red", "1", "spent")]


def test_budgets_that_are_too_large_together_leave_the_report_of_all_budgets_valid() -> None:
    large = "999999999999999"
    found = with_team_budgets(PriceFile(), [namespace("a", "red", large), namespace("b", "red", large, "spent")])
    reported = tuple(ReportedBudget("team", one.team, one.per_month, Decimal(1), Decimal(1)) for one in found.budgets)
    check_budget_report(BudgetReport(budgets=reported), Where())
    assert [(one.team, str(one.per_month), one.enforce) for one in found.budgets] == [("red", large, "spent")]


def test_the_price_file_replaces_the_budget_of_the_same_team_alone() -> None:
    file = PriceFile(budgets=(Budget(team="red", per_month=Decimal(7)), Budget(queue="q", per_month=Decimal(1))))
    found = budgets(file, namespace("a", "red", "100", "spent"), namespace("b", "blue", "50", "forecast"))
    assert found == [("red", "7", ""), ("", "1", ""), ("blue", "50", "forecast")]


def test_an_annotation_of_another_form_and_a_namespace_without_team_are_no_budgets() -> None:
    odd = [
        namespace("a", "red", "a lot"),
        namespace("b", "", "5"),
        namespace("c", "green", "-1"),
        namespace("d", "g", ""),
    ]
    assert budgets(PriceFile(), *odd) == []
    assert budgets(PriceFile(), namespace("a", "red", "9", "always")) == [("red", "9", "")]


def test_the_history_has_the_budgets_that_namespaces_have_now(history: UsageHistory) -> None:
    first, second = namespace("a", "red", "100"), namespace("b", "blue", "5", "spent")
    assert history.team_budgets.read() == []
    history.team_budgets.write([first, second], 1000)
    assert history.team_budgets.read() == [first, second]
    raised = namespace("b", "blue", "9", "spent")
    history.team_budgets.write([raised], 2000)
    assert history.team_budgets.read() == [raised]
    # What is deleted of a namespace includes its budget.
    history.forget("b")
    assert history.team_budgets.read() == []


def test_of_a_namespace_only_its_team_and_its_budget_are_kept() -> None:
    labels = {"shoal.dev/team": "red", "owner": "ann"}
    annotations = {"shoal.dev/budget-per-month": "7", "note": "private"}
    found = budgeted([ObjectMeta("a", labels=labels, annotations=annotations), ObjectMeta("b", labels=labels)])
    assert found == [namespace("a", "red", "7")]
