"""What is told without trying: what stands in the way whatever else is done; and when the search ends."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from build.asking import runs
from build.helped import KEY, Help, asked, portrait, world
from build.queues import (
    cluster_queue,
    cohort,
    flavor,
    quotas,
    workload,
)
from shoal.api.selectors import LabelSelector, Selector
from shoal.engine.queues.facts import FlavorFacts, LocalQueueFacts, PreemptionRules
from shoal.engine.queues.remedies import Effect, FieldChange, Remedy, RemedyKind, SearchLimit, remedies
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact


def test_who_only_waits_for_a_turn_needs_nothing() -> None:
    here = world(cluster_queue("a", gpu=8), workload("incoming", "a", gpu=3)).kueue()
    assert remedies(here, KEY) == [Remedy(RemedyKind.TURN, Effect.ADMITTED)]


def test_a_workload_behind_one_that_waits_in_a_strict_queue_has_to_wait_for_it() -> None:
    here = world(cluster_queue("a", gpu=8, strict=True), workload("incoming", "a", gpu=3)).kueue()
    here.put_workload(workload("first", "a", gpu=9, priority=1), 0.0)
    here.cycle(0.0)
    first = FieldChange("ClusterQueue", "a", "queueingStrategy", "StrictFIFO", holders=("default/first",))
    assert remedies(here, KEY) == [Remedy(RemedyKind.TURN, Effect.UNTRIED, (first,))]


def test_the_first_workload_of_a_strict_queue_waits_for_no_other() -> None:
    here = world(cluster_queue("a", gpu=8, strict=True), workload("incoming", "a", gpu=3)).kueue()
    here.put_workload(workload("second", "a", gpu=1, created=1.0), 0.0)
    assert remedies(here, KEY) == [Remedy(RemedyKind.TURN, Effect.ADMITTED)]


OBSTACLES: dict[str, tuple[list[Fact], str, str, str]] = {
    "a queue that is not there": ([], "LocalQueue", "default/a", ""),
    "a stopped local queue": (
        [cluster_queue("a", gpu=1), LocalQueueFacts("default/a", "a", "Hold")],
        "LocalQueue",
        "default/a",
        "stopPolicy",
    ),
    "a local queue to nowhere": ([LocalQueueFacts("default/a", "b")], "ClusterQueue", "b", ""),
    "a stopped cluster queue": ([cluster_queue("a", gpu=1, stop="Hold")], "ClusterQueue", "a", "stopPolicy"),
    "a missing check": ([cluster_queue("a", gpu=1, checks=["quota-ok"])], "AdmissionCheck", "quota-ok", ""),
    "a missing topology": (
        [flavor("default", topology="dc"), cluster_queue("a", gpu=1)],
        "Topology",
        "dc",
        "",
    ),
    "a cohort that is its own ancestor": (
        [cohort("x", parent="y"), cohort("y", parent="x"), cluster_queue("a", cohort="x", gpu=1)],
        "Cohort",
        "x",
        "parentName",
    ),
    "no namespace selector": (
        [cluster_queue("a", gpu=1, namespaces=Selector.NOTHING)],
        "ClusterQueue",
        "a",
        "namespaceSelector",
    ),
    "another namespace": (
        [cluster_queue("a", gpu=1, namespaces=LabelSelector({"team": "x"}).selector())],
        "Namespace",
        "default",
        "labels",
    ),
    "a resource that is not covered": ([cluster_queue("a", cpu=1)], "ClusterQueue", "a", "coveredResources"),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_what_stands_in_the_way_is_named(name: str) -> None:
    facts, kind, object_name, field = OBSTACLES[name]
    (found,) = asked(Help(facts, [], workload("incoming", "a", gpu=1)))
    assert found.kind is RemedyKind.CORRECT
    assert found.message
    assert [(each.object, each.name, each.field) for each in found.changes] == [(kind, object_name, field)]


def test_a_missing_flavor_is_named() -> None:
    kueue = Help([cluster_queue("a", quotas("h100", gpu=1))], [], workload("incoming", "a", gpu=1)).kueue()
    kueue.queues.drop(FlavorFacts, "h100")
    (found,) = remedies(kueue, KEY)
    assert [(each.object, each.name) for each in found.changes] == [("ResourceFlavor", "h100")]


def test_pods_that_are_not_ready_hold_back_everybody() -> None:
    late = replace(runs("late", "a", gpu=1), pods_ready=False)
    setting = Settings(wait_for_pods_ready=True, block_admission=True)
    (found,) = asked(world(cluster_queue("a", gpu=8), late, workload("incoming", "a", gpu=1), settings=setting))
    assert "default/late" in found.message


def test_who_would_delay_a_promised_start_is_told_so() -> None:
    old = replace(runs("old", "a", gpu=4), duration_s=100.0)
    here = world(cluster_queue("a", gpu=8), old, workload("incoming", "a", gpu=4), settings=Settings(reservations=True))
    kueue = here.kueue()
    kueue.put_workload(workload("big", "a", gpu=8, priority=1), 0.0)
    kueue.cycle(0.0)
    (found,) = remedies(kueue, KEY)
    assert (found.kind, found.effect) == (RemedyKind.TURN, Effect.UNTRIED)
    assert "default/big" in found.message


def test_asking_later_does_not_bring_accounts_of_use_up_to_date() -> None:
    """They are a sum of parts of the past: read twice, they differ in the last bits from read once."""
    rules = PreemptionRules(within="LowerPriority")
    setting = Settings(usage_half_life_s=60.0)
    facts = [cluster_queue("a", gpu=8, by_usage=True, rules=rules)]
    holders = [runs("one", "a", gpu=4), runs("two", "a", gpu=4)]
    kueue = Help(list(facts), [], workload("incoming", "a", gpu=2, priority=1), setting).kueue()
    for each in holders:
        kueue.put_workload(each, 0.0)
    before = portrait(kueue)
    assert [each.kind for each in remedies(kueue, KEY, now_s=7.0)] == [RemedyKind.TURN]
    assert portrait(kueue) == before


def test_of_who_does_not_wait_nothing_is_told() -> None:
    here = world(cluster_queue("a", gpu=8), runs("old", "a", gpu=6), workload("incoming", "a", gpu=6)).kueue()
    assert remedies(here, "default/old") == []
    assert remedies(here, "default/nobody") == []


# Bounds


def test_no_more_trials_are_made_than_allowed_and_what_was_found_is_told() -> None:
    here = world(cluster_queue("a", gpu=8), runs("old", "a", gpu=6), workload("incoming", "a", gpu=6))
    whole = remedies(here.kueue(), KEY)
    for most in range(40):
        found = remedies(here.kueue(), KEY, budget=SearchLimit(most))
        assert set(found) <= set(whole)
        asks = [0]

        def go_on(asks: list[int] = asks, most: int = most) -> bool:
            asks[0] += 1
            return asks[0] <= most

        assert remedies(here.kueue(), KEY, budget=SearchLimit(go_on=go_on)) == found
        assert asks[0] <= most + 1
    assert found == whole
