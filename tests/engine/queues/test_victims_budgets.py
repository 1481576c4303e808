"""Disruption budgets hold over all who end: the victims of one workload, and those that are stopping already."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import settings as bounds
from hypothesis import strategies as st
from msgspec.structs import replace

from build.depth import examples
from build.queues import admitted, cluster_queue, queues, workload
from shoal.engine.queues.facts import BudgetUse, PreemptionRules, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.victims.budgets import are_within

RULES = PreemptionRules(within="LowerPriority", reclaim="LowerPriority")
KEPT = Settings(respect_budgets=True)
FAIR = Settings(respect_budgets=True, fair_sharing=True)
BOTH = pytest.mark.parametrize("settings", [KEPT, FAIR], ids=["classical", "fair"])


def runs(name: str, gpu: int, *budgets: BudgetUse, since: float = 0.0, queue: str = "a") -> WorkloadFacts:
    return replace(admitted(workload(name, queue, gpu=gpu), queue, at=since), budgets=budgets)


def gone(settings: Settings, wants: int, *running: WorkloadFacts) -> list[str]:
    """Who is told to stop for a workload of so many GPUs; all that there are run something."""
    gpus = sum(each.pod_sets[0].requests["nvidia.com/gpu"] for each in running)
    found = Kueue(queues(cluster_queue("a", rules=RULES, gpu=gpus), *running, settings=settings))
    found.put_workload(workload("wants", "a", gpu=wants, priority=1), 100.0)
    return sorted(each.workload.removeprefix("default/") for done in found.run(100.0) for each in done.preempted)


def of(name: str, pods: int = 1, allowed: int = 1) -> BudgetUse:
    return BudgetUse(f"default/{name}", pods, allowed)


@BOTH
def test_two_of_one_budget_are_not_taken_where_it_lets_one_go(settings: Settings) -> None:
    pair = [runs(f"v{index}", 4, of("pair")) for index in range(2)]
    assert gone(settings, 8, *pair) == []
    assert gone(replace(settings, respect_budgets=False), 8, *pair) == ["v0", "v1"]
    assert len(gone(settings, 4, *pair)) == 1


@BOTH
def test_whom_a_used_up_budget_covers_is_passed_over_for_the_next(settings: Settings) -> None:
    pair = [runs(f"v{index}", 2, of("pair"), since=50) for index in range(2)]
    assert gone(settings, 4, *pair, runs("free", 2)) == ["free", "v0"]


@BOTH
def test_pods_are_counted_and_not_workloads(settings: Settings) -> None:
    running = [runs("wide", 2, of("all", pods=2, allowed=3), since=9), runs("slim", 2, of("all", pods=1, allowed=3))]
    assert gone(settings, 4, *running) == ["slim", "wide"]
    assert gone(settings, 6, *running, runs("third", 2, of("all", pods=1, allowed=3))) == []


@BOTH
def test_whoever_is_stopping_already_uses_the_budget(settings: Settings) -> None:
    stopping = replace(runs("stopping", 2, of("pair")), evicted_s=99.0, evicted_why="Preempted")
    assert gone(settings, 4, stopping, runs("other", 2, of("pair"))) == []
    assert gone(settings, 4, stopping, runs("other", 2, of("another"))) == ["other"]


def test_what_one_cycle_took_is_missing_to_the_next() -> None:
    pair = [runs(f"v{index}", 4, of("pair")) for index in range(2)]
    found = Kueue(queues(cluster_queue("a", rules=RULES, gpu=8), *pair, settings=KEPT))
    for name in ("one", "two"):
        found.put_workload(workload(name, "a", gpu=4, priority=1), 100.0)
    assert len([each for done in found.run(100.0) for each in done.preempted]) == 1


def test_a_set_of_victims_can_be_judged_as_a_whole() -> None:
    pair = [runs(f"v{index}", 4, of("pair")) for index in range(2)]
    for settings, together in ((KEPT, False), (Settings(), True)):
        world = queues(cluster_queue("a", gpu=8), *pair, settings=settings)
        held = list(world.held.values())
        assert are_within(world, held[:1])
        assert are_within(world, held) is together
        held[0].evicted = True
        assert are_within(world, held[:1])
        assert are_within(world, held[1:]) is together


uses = st.builds(
    lambda name, pods: BudgetUse(name, pods, {"x": 2, "y": 3}[name]), st.sampled_from("xy"), st.integers(1, 3)
)
holders = st.lists(
    st.tuples(st.integers(1, 3), st.lists(uses, max_size=2, unique_by=lambda use: use.name)),
    min_size=1,
    max_size=8,
)


@bounds(max_examples=examples(60), deadline=None)
@given(holders, st.integers(1, 12), st.booleans())
def test_no_budget_is_ever_overdrawn(given_: list[tuple[int, list[BudgetUse]]], wants: int, is_fair: bool) -> None:
    running = [runs(f"w{index}", gpu, *budgets) for index, (gpu, budgets) in enumerate(given_)]
    settings = replace(KEPT, fair_sharing=is_fair)
    told = [running[index] for index in range(len(running)) if f"w{index}" in gone(settings, wants, *running)]
    used: Counter[str] = Counter()
    for facts in told:
        used.update({use.name: use.pods for use in facts.budgets})
    assert all(used[name] <= allowed for name, allowed in {"x": 2, "y": 3}.items())
    wide = [replace(facts, budgets=tuple(replace(use, allowed=99) for use in facts.budgets)) for facts in running]
    assert gone(settings, wants, *wide) == gone(Settings(fair_sharing=is_fair), wants, *running)
