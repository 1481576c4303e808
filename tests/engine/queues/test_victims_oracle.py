"""What the search answers before flavors are chosen: would anybody yield for this flavor, and whose workloads."""

from __future__ import annotations

from build.asking import LOWER_HERE, LOWER_HERE_RECLAIM_ANY, runs, state_of
from build.queues import amount_of, cluster_queue, cohort, limited, queues, workload
from shoal.engine.queues.facts import PreemptionRules, WorkloadFacts
from shoal.engine.queues.flavors.modes import Mode, PreemptionPossibility
from shoal.engine.queues.state import Queues
from shoal.engine.queues.victims.search import oracle


def answer(world: Queues, queue: str, cores: float, priority: int = 0) -> PreemptionPossibility:
    before = state_of(world)
    ask = oracle(world, 0.0)
    found = ask(
        world.cluster_queues[queue],
        workload("incoming", queue, priority=priority),
        ("default", "cpu"),
        amount_of("cpu", cores),
    )
    assert state_of(world) == before, "a question leaves the state as it was"
    return found


def pair(*workloads: WorkloadFacts) -> Queues:
    return queues(
        cluster_queue("mine", cohort="all", rules=LOWER_HERE_RECLAIM_ANY, cpu=4),
        cluster_queue("theirs", cohort="all", cpu=4),
        *workloads,
    )


def test_only_others_would_have_to_give_back() -> None:
    assert answer(pair(runs("theirs", "theirs", cpu=8)), "mine", 4) == PreemptionPossibility(Mode.RECLAIM, 0)


def test_own_workloads_would_have_to_stop() -> None:
    world = pair(runs("own", "mine", priority=-1, cpu=4), runs("theirs", "theirs", cpu=4))
    assert answer(world, "mine", 4) == PreemptionPossibility(Mode.PREEMPT, 0)


def test_both_together_count_as_stopping_own_workloads() -> None:
    world = pair(runs("own", "mine", priority=-1, cpu=1), runs("theirs", "theirs", cpu=7))
    assert answer(world, "mine", 4) == PreemptionPossibility(Mode.PREEMPT, 0)


def test_nobody_would_yield_and_the_level_is_that_of_now() -> None:
    world = pair(runs("own", "mine", priority=1, cpu=4), runs("theirs", "theirs", cpu=4))
    assert answer(world, "mine", 2) == PreemptionPossibility(Mode.NO_CANDIDATES, 1)


def test_the_level_is_that_after_the_victims_are_gone() -> None:
    """With its own low workload gone it still borrows a core, from the cohort next above and no farther."""
    world = queues(
        cohort("root"),
        cohort("near", parent="root", cpu=1),
        cluster_queue("mine", cohort="near", rules=LOWER_HERE, cpu=4),
        cluster_queue("far", cohort="root", cpu=limited(4)),
        runs("own", "mine", priority=-1, cpu=5),
        runs("far", "far", cpu=4),
    )
    assert answer(world, "mine", 5) == PreemptionPossibility(Mode.PREEMPT, 1)
    assert answer(world, "mine", 4) == PreemptionPossibility(Mode.PREEMPT, 0)


def test_the_stamp_decides_among_equals() -> None:
    world = queues(
        cluster_queue("mine", rules=PreemptionRules(within="LowerOrNewerEqualPriority"), cpu=4),
        runs("own", "mine", created=5, cpu=4),
    )
    queue, facts = world.cluster_queues["mine"], workload("incoming", "mine")
    assert oracle(world, 4.0)(queue, facts, ("default", "cpu"), 1000).mode is Mode.PREEMPT
    assert oracle(world, 5.0)(queue, facts, ("default", "cpu"), 1000).mode is Mode.NO_CANDIDATES
