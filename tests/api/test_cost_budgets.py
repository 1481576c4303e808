"""Budgets that let work wait: whom, how long, and in which words."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from shoal.api.budget_report import BudgetKind, BudgetReport, Enforcement, ReportedBudget, check_budget_report
from shoal.api.cost_budgets import (
    NO_BUDGETS,
    VALID_S,
    BudgetOwner,
    CostBudgets,
    SpentBudget,
    owner_of,
    queue_of_pod,
    team_of,
)
from shoal.units.errors import UserError, Where

NOW_S = datetime(2026, 11, 27, 12, tzinfo=UTC).timestamp()
RESETS_S = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
RED = BudgetOwner("red", "red-train", "gpu")


def budget(
    spent: str,
    *,
    forecast: str = "0",
    enforced: Enforcement = "spent",
    subject: tuple[BudgetKind, str] = ("team", "red"),
) -> SpentBudget:
    return SpentBudget(*subject, Decimal(1000), Decimal(spent), Decimal(forecast), enforced)


def budgets(*found: SpentBudget, computed_s: float = NOW_S, resets_s: float = RESETS_S) -> CostBudgets:
    return CostBudgets(found, period="2026-11", computed_s=computed_s, resets_s=resets_s)


@pytest.mark.parametrize(
    ("found", "is_refused"),
    [
        pytest.param(budget("999.99"), False, id="something is left"),
        pytest.param(budget("1000"), True, id="nothing is left"),
        pytest.param(budget("1200", enforced=""), False, id="it is not enforced"),
        pytest.param(budget("10", forecast="1000.01"), False, id="the forecast is not enforced"),
        pytest.param(budget("10", forecast="1000.01", enforced="forecast"), True, id="the forecast exceeds it"),
        pytest.param(budget("10", forecast="1000", enforced="forecast"), False, id="the forecast keeps it"),
        pytest.param(budget("1000", forecast="1", enforced="forecast"), True, id="spent counts with the forecast"),
        pytest.param(budget("1200", subject=("team", "blue")), False, id="the budget of another team"),
        pytest.param(budget("1200", subject=("namespace", "red-train")), True, id="the budget of the namespace"),
        pytest.param(budget("1200", subject=("queue", "gpu")), True, id="the budget of the queue"),
        pytest.param(
            budget("1200", subject=("queue", "red-train/gpu")), True, id="the budget of the queue of the namespace"
        ),
        pytest.param(
            budget("1200", subject=("queue", "lab/gpu")), False, id="the queue of that name of another namespace"
        ),
        pytest.param(budget("1200", subject=("namespace", "red")), False, id="a namespace with the name of the team"),
    ],
)
def test_an_enforced_budget_refuses_the_work_that_it_concerns(found: SpentBudget, is_refused: bool) -> None:
    assert (budgets(found).refusal(RED, NOW_S) is not None) == is_refused


def test_what_is_not_known_any_more_refuses_nothing() -> None:
    used_up = budget("1200")
    assert budgets(used_up).refusal(RED, NOW_S + VALID_S - 1) is not None
    assert budgets(used_up).refusal(RED, NOW_S + VALID_S) is None
    assert NO_BUDGETS.refusal(RED, NOW_S) is None


def test_a_new_period_begins_without_refusals() -> None:
    found = budgets(budget("1200"), computed_s=RESETS_S - 60)
    assert found.until_s == RESETS_S
    assert found.refusal(RED, RESETS_S - 1) is not None
    assert found.refusal(RED, RESETS_S) is None


def test_the_message_has_the_budget_what_was_spent_and_when_it_resets() -> None:
    refused = budgets(budget("1204.1")).refusal(RED, NOW_S)
    assert refused is not None
    assert refused.message == (
        "The budget of team red is spent: 1,204.10 of 1,000.00 USD in 2026-11; it resets at 2026-12-01T00:00:00Z"
    )
    expected = budgets(budget("600", forecast="1300", enforced="forecast")).refusal(RED, NOW_S)
    assert expected is not None
    assert expected.message == (
        "The budget of team red will be exceeded: 600.00 of 1,000.00 USD are spent in 2026-11, and 1,300.00 are "
        "expected; it resets at 2026-12-01T00:00:00Z"
    )


def test_amounts_that_grow_decide_nothing_anew() -> None:
    before = budgets(budget("1200"))
    assert budgets(budget("1300")).refuses_as(before)
    assert not budgets(budget("900")).refuses_as(before)
    assert not budgets(budget("1200"), resets_s=RESETS_S + 1).refuses_as(before)
    assert budgets(budget("1")).refuses_as(NO_BUDGETS)


def test_a_report_with_an_amount_that_is_no_money_is_refused() -> None:
    for text in ("1e30", "-1e30", "NaN", "Infinity"):
        one = ReportedBudget("team", "red", Decimal(1000), Decimal(text), Decimal(0), "spent")
        with pytest.raises(UserError, match="is no amount of money"):
            check_budget_report(BudgetReport(budgets=(one,)), Where())
    most = ReportedBudget("team", "red", Decimal(1), Decimal("999999999999999.99"), Decimal(0), "spent")
    check_budget_report(BudgetReport(budgets=(most,)), Where())
    refused = budgets(budget("999999999999999.99")).refusal(RED, NOW_S)
    assert refused is not None
    assert "999,999,999,999,999.99 of" in refused.message


LABELS = {"kueue.x-k8s.io/local-queue-name": "none", "kai.scheduler/queue": "k", "volcano.sh/queue-name": "v"}


def test_only_labels_that_its_scheduler_reads_name_the_queue_of_a_pod() -> None:
    assert queue_of_pod("volcano", LABELS) == "v"
    assert queue_of_pod("kai-scheduler", LABELS) == "k"
    assert queue_of_pod("shoal", LABELS) == "k"
    assert queue_of_pod("shoal", LABELS, "of-group") == "of-group"
    assert queue_of_pod("volcano", {"kueue.x-k8s.io/queue-name": "x", "kai.scheduler/queue": "k"}) == ""


def test_the_labels_of_pods_name_no_team_of_a_namespace() -> None:
    assert team_of({}, {"team": "red"}, "ns", {"red", "ns"}) == "ns"
    assert team_of({}, {"team": "mine"}, "ns", {"red", "ns"}) == "mine"
    assert owner_of({}, "ns", "q") == BudgetOwner("ns", "ns", "q")
    assert owner_of({"team": "red"}, "ns", "q") == BudgetOwner("red", "ns", "q")


def test_the_label_of_the_namespace_names_the_team_before_that_of_the_pod() -> None:
    assert team_of({"shoal.dev/team": "red"}, {"team": "blue"}, "ns") == "red"
    assert team_of({}, {"team": "blue"}, "ns") == "blue"
    assert team_of({}, {}, "ns") == "ns"
