"""Cost budgets in queues: workloads over their budget wait outside of the queue, and return by themselves."""

from __future__ import annotations

from decimal import Decimal

from msgspec.structs import replace

from build.queues import admitted, cluster_queue, queues, workload
from shoal.api.budget_report import BudgetKind
from shoal.api.cost_budgets import VALID_S, CostBudgets, SpentBudget
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.reasons import Wait

RESETS_S = 1_000_000.0


def spent(amount: int, subject: tuple[BudgetKind, str] = ("team", "red"), computed_s: float = 0.0) -> CostBudgets:
    one = SpentBudget(*subject, Decimal(100), Decimal(amount), Decimal(0), "spent")
    return CostBudgets((one,), period="2026-11", computed_s=computed_s, resets_s=RESETS_S)


def of_red(budgets: CostBudgets, *names: str) -> Kueue:
    found = Kueue(queues(cluster_queue("a", strict=True, cpu=2)))
    found.queues.put_namespace("default", {"shoal.dev/team": "red"})
    found.queues.put_cost_budgets(budgets)
    for name in names:
        found.put_workload(workload(name, "a", cpu=1), 0)
    return found


def admitted_at(found: Kueue, now_s: float) -> list[str]:
    return [each.workload.removeprefix("default/") for cycle in found.run(now_s) for each in cycle.admitted]


def why(found: Kueue, name: str) -> Wait:
    return next(each.why for each in found.states() if each.workload == f"default/{name}")


def test_a_workload_over_budget_waits_with_its_reason_and_blocks_no_strict_queue() -> None:
    found = of_red(spent(100, ("namespace", "default")), "w")
    found.queues.put_namespace("other", {})
    found.put_workload(replace(workload("after", "a", cpu=1), key="other/after", queue="default/a"), 0)
    assert [each.workload for cycle in found.run(1) for each in cycle.admitted] == ["other/after"]
    assert why(found, "w") is Wait.OVER_BUDGET
    assert found.over_budget("default/w").startswith("The budget of namespace default is spent: 100.00 of 100.00 USD")
    assert found.over_budget("other/after") == ""


def test_a_larger_budget_lets_the_workload_go_on() -> None:
    found = of_red(spent(100), "w")
    assert admitted_at(found, 1) == []
    found.queues.put_cost_budgets(spent(99))
    assert not found.is_idle
    assert admitted_at(found, 2) == ["w"]


def test_the_end_of_the_period_lets_the_workload_go_on_without_an_event() -> None:
    found = of_red(spent(100, computed_s=RESETS_S - 5), "w")
    assert admitted_at(found, RESETS_S - 4) == []
    assert found.next_s() == RESETS_S
    assert admitted_at(found, RESETS_S) == ["w"]


def test_facts_that_the_history_renews_keep_the_workload_waiting_and_facts_that_it_does_not_release_it() -> None:
    found = of_red(spent(100), "w")
    assert admitted_at(found, 1) == []
    found.queues.put_cost_budgets(spent(120, computed_s=600.0))
    assert admitted_at(found, VALID_S) == []
    assert why(found, "w") is Wait.OVER_BUDGET
    assert admitted_at(found, VALID_S + 600) == ["w"]


def test_a_report_that_comes_after_the_last_one_expired_refuses_the_work_that_has_returned_to_its_queue() -> None:
    found = of_red(spent(100), "first", "second", "third")
    assert admitted_at(found, 1) == []
    assert admitted_at(found, VALID_S) == ["first", "second"]
    found.queues.put_cost_budgets(spent(120, computed_s=VALID_S - 5))
    for name in ("first", "second"):
        found.queues.release(f"default/{name}", is_over=True)
    assert admitted_at(found, VALID_S + 20) == []
    assert why(found, "third") is Wait.OVER_BUDGET


def test_an_admitted_workload_keeps_its_quota_when_the_budget_is_used_up() -> None:
    runs = admitted(workload("runs", "a", cpu=1), "a")
    found = Kueue(queues(cluster_queue("a", cpu=2), runs))
    found.queues.put_namespace("default", {"team": "red"})
    found.queues.put_cost_budgets(spent(500))
    found.put_workload(workload("new", "a", cpu=1), 0)
    assert admitted_at(found, 1) == []
    assert list(found.queues.held) == ["default/runs"]


def test_the_budget_of_a_queue_counts_by_the_name_of_the_local_queue() -> None:
    assert admitted_at(of_red(spent(100, ("queue", "a")), "w"), 1) == []
    assert admitted_at(of_red(spent(100, ("queue", "b")), "w"), 1) == ["w"]


def test_a_namespace_without_a_team_is_its_own_team() -> None:
    found = of_red(spent(100, ("team", "default")))
    found.put_workload(workload("of-red", "a", cpu=1), 0)
    assert admitted_at(found, 1) == ["of-red"]
    found.queues.put_namespace("default", {})
    found.put_workload(workload("of-default", "a", cpu=1), 0)
    assert admitted_at(found, 2) == []
