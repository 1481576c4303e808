"""In which order workloads are asked to yield."""

from __future__ import annotations

from msgspec.structs import replace

from build.asking import LOWER_HERE_RECLAIM_ANY, named, runs, search, want_of
from build.queues import amount_of, cluster_queue, queues
from shoal.engine.queues.facts import ClusterQueueFacts, PreemptionRules, WorkloadFacts
from shoal.engine.queues.reasons import Yield
from shoal.engine.queues.victims.order import OWN, PRIORITY, Source, in_order

CPU = ("default", "cpu")
ANY_HERE = PreemptionRules(within="LowerPriority", reclaim="Any")


def order_of(*workloads: WorkloadFacts, used: dict[str, float] | None = None, by_usage: bool = False) -> list[str]:
    """In which order all of them are asked, when `mine` asks."""
    mine = cluster_queue("mine", cohort="all", cpu=100, by_usage=by_usage)
    world = queues(mine, cluster_queue("other", cohort="all", by_usage=by_usage, cpu=0), *workloads)
    own, other = world.cluster_queues["mine"], world.cluster_queues["other"]
    sources = [
        Source(list(own.held.values()), OWN, Yield.IN_CLUSTER_QUEUE),
        Source(list(other.held.values()), PRIORITY, Yield.RECLAIM),
    ]
    usage = None if used is None else (lambda queue: used.get(queue.partition("/")[2], 0.0))
    want = want_of(world, "mine", {CPU: 1}, local_usage=usage)
    return [held.key.partition("/")[2] for held, _ in in_order(sources, want)]


def of_local(facts: WorkloadFacts, local_queue: str) -> WorkloadFacts:
    return replace(facts, queue=f"default/{local_queue}")


def test_lower_priority_comes_first() -> None:
    assert order_of(runs("high", "mine", priority=10), runs("low", "mine", priority=-10)) == ["low", "high"]


def test_whoever_is_going_anyway_comes_first() -> None:
    found = order_of(runs("low", "other", priority=-10), runs("going", "mine", priority=9, evicted=True))
    assert found == ["going", "low"]


def test_other_queues_come_before_the_own() -> None:
    assert order_of(runs("own", "mine", priority=-10), runs("theirs", "other", priority=10)) == ["theirs", "own"]


def test_whoever_started_last_comes_first() -> None:
    assert order_of(runs("old", "mine", at=1), runs("new", "mine", at=3), runs("mid", "mine", at=2)) == [
        "new",
        "mid",
        "old",
    ]


def test_ties_are_broken_by_identity() -> None:
    first = replace(runs("z", "mine"), uid="1")
    second = replace(runs("a", "mine"), uid="2")
    assert order_of(second, first) == ["z", "a"]


def test_the_local_queue_that_used_most_comes_before_priority() -> None:
    found = order_of(
        of_local(runs("modest", "mine", priority=-5), "little"),
        of_local(runs("greedy", "mine", priority=5), "much"),
        used={"little": 1.0, "much": 2.0},
        by_usage=True,
    )
    assert found == ["greedy", "modest"]


def test_usage_is_not_compared_across_queues_nor_with_who_is_going() -> None:
    found = order_of(
        of_local(runs("own-little", "mine"), "little"),
        of_local(runs("own-much", "mine"), "much"),
        of_local(runs("going", "mine", evicted=True), "little"),
        of_local(runs("theirs", "other", priority=9), "none"),
        used={"little": 1.0, "much": 2.0},
        by_usage=True,
    )
    assert found == ["going", "theirs", "own-much", "own-little"]


def test_usage_does_not_count_in_a_queue_that_does_not_admit_by_it() -> None:
    found = order_of(
        of_local(runs("modest", "mine", priority=-5), "little"),
        of_local(runs("greedy", "mine", priority=5), "much"),
        used={"little": 1.0, "much": 2.0},
    )
    assert found == ["modest", "greedy"]


def test_a_search_asks_the_greedy_local_queue_first() -> None:
    facts: ClusterQueueFacts = cluster_queue("mine", rules=LOWER_HERE_RECLAIM_ANY, cpu=4, by_usage=True)
    world = queues(
        facts,
        of_local(runs("modest", "mine", priority=-5, cpu=2), "little"),
        of_local(runs("greedy", "mine", priority=-1, cpu=2), "much"),
    )
    usage = {"default/little": 1.0, "default/much": 2.0}
    want = want_of(world, "mine", {CPU: amount_of("cpu", 2)}, local_usage=usage.__getitem__)
    assert list(named(search(world, want))) == ["greedy"]
