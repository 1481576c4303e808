"""Whom Shoal spares, and whose end costs least, where that is configured."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from build.queues import admitted, cluster_queue, queues, workload
from shoal.engine.queues.facts import BudgetUse, PreemptionRules, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.settings import Settings

RULES = PreemptionRules(within="LowerPriority")
NOW = 1000.0


def gone(settings: Settings, *running: WorkloadFacts) -> list[str]:
    """Who is told to stop for a workload of two GPUs; four are there and all in use."""
    found = Kueue(queues(cluster_queue("a", rules=RULES, gpu=4), *running, settings=settings))
    found.put_workload(workload("wants", "a", gpu=2, priority=1), NOW)
    return [each.workload.removeprefix("default/") for done in found.run(NOW) for each in done.preempted]


def runs(name: str, since: float, saved_s: float | None = None) -> WorkloadFacts:
    return replace(admitted(workload(name, "a", gpu=2), "a", at=since), saved_s=saved_s)


OLD_SAVED = runs("old-saved", 100, saved_s=990.0)
YOUNG_UNSAVED = runs("young-unsaved", 900)


@pytest.mark.parametrize(
    ("settings", "expected"), [(Settings(), ["young-unsaved"]), (Settings(lost_work=True), ["old-saved"])]
)
def test_with_lost_work_a_fresh_checkpoint_outweighs_age(settings: Settings, expected: list[str]) -> None:
    assert gone(settings, OLD_SAVED, YOUNG_UNSAVED) == expected


def test_lost_work_counts_gpus() -> None:
    settings = Settings(lost_work=True)
    found = Kueue(
        queues(
            cluster_queue("a", rules=RULES, gpu=10),
            admitted(workload("wide", "a", gpu=8), "a", at=800),
            admitted(workload("slim", "a", gpu=2), "a", at=500),
            settings=settings,
        )
    )
    found.put_workload(workload("wants", "a", gpu=2, priority=1), NOW)
    assert [each.workload for done in found.run(NOW) for each in done.preempted] == ["default/slim"]


def test_priority_comes_before_lost_work() -> None:
    assert gone(Settings(lost_work=True), OLD_SAVED, replace(YOUNG_UNSAVED, priority=-1)) == ["young-unsaved"]


def test_nobody_goes_before_the_least_run_time() -> None:
    assert gone(Settings(min_runtime_s=200), OLD_SAVED, YOUNG_UNSAVED) == ["old-saved"]
    assert gone(Settings(min_runtime_s=2000), OLD_SAVED, YOUNG_UNSAVED) == []


def test_a_disruption_budget_is_respected_if_that_is_wished() -> None:
    shielded = replace(YOUNG_UNSAVED, budgets=(BudgetUse("default/all", 2, 1),))
    assert gone(Settings(), OLD_SAVED, shielded) == ["young-unsaved"]
    assert gone(Settings(respect_budgets=True), OLD_SAVED, shielded) == ["old-saved"]
