"""Laws of reclaim in deep trees of KAI's queues, where all work is single pods of one GPU each."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random

import pytest

from build.depth import seeds
from build.fair_share import GPU, FairWorld, promised, stopped
from build.plain_fair_share import PlainTree, drawn_tree
from shoal.engine.plan import Plan
from shoal.engine.queues.disciplines.kai.fair_queues import FairQueue

LEVELS = (2, 3, 4, 5)
_MOST_CYCLES = 40


class Drawn:
    """A tree, a cluster and its jobs: of some the pod runs."""

    def __init__(self, seed: int, levels: int, *, has_limits: bool = True, has_priorities: bool = True) -> None:
        draw = Random(seed)
        self.plain = drawn_tree(draw, levels, most=6)
        for queue in self.plain.queues.values():
            queue.limit = queue.limit if has_limits else None
            queue.priority = queue.priority if has_priorities else 100
        queues = [
            FairQueue(
                queue.name,
                queue.parent,
                queue.priority,
                (None if queue.quota is None else queue.quota * GPU, None, None),
                (None if queue.limit is None else queue.limit * GPU, None, None),
                (queue.weight, 1, 1),
            )
            for queue in self.plain.queues.values()
        ]
        self.gpus = draw.randint(2, 8)
        self.world = FairWorld([self.gpus], *queues)
        self.free = self.gpus
        self.queue_of: dict[str, str] = {}
        for number in range(draw.randint(4, 16)):
            leaf = draw.choice(self.plain.leaves())
            held = self.held()
            fits = all(
                (limit := self.plain.queues[each].limit) is None or held[each] < limit for each in self.plain.path(leaf)
            )
            runs = self.free > 0 and fits and draw.random() < 0.7
            self.free -= runs
            name = f"j{number}"
            self.world.job(name, leaf, on=["n0"] if runs else [], priority=50)
            self.queue_of[f"{name}-0"] = leaf

    def held(self) -> Counter[str]:
        """GPUs of the pods that have a node and keep it, by queue and ancestor."""
        cluster = self.world.cluster
        running = [pod for pod in cluster.pods if pod not in cluster.terminating]
        return Counter(name for pod in running for name in self.plain.path(self.queue_of[pod]))

    def waiting(self) -> Counter[str]:
        return Counter(leaf for pod, leaf in self.queue_of.items() if pod not in self.world.cluster.pods)

    def shares(self) -> dict[str, int]:
        last = self.world.discipline.last
        assert last is not None
        return {name: node.fair_share[0] // GPU for name, node in last.tree.nodes.items()}


def drawn(count: int) -> list[tuple[int, int]]:
    return [(seed, levels) for levels in LEVELS for seed in seeds(count)]


@pytest.mark.parametrize(("seed", "levels"), drawn(10))
def test_reclaim_takes_no_more_than_it_needs(seed: int, levels: int) -> None:
    """Free GPUs are for allocate to give: nothing is stopped while there are some."""
    made = Drawn(seed, levels, has_limits=False)
    plan = made.world.run("reclaim")
    assert len(stopped(plan)) == max(0, len(promised(plan)) - made.free)


@pytest.mark.parametrize(("seed", "levels"), drawn(10))
def test_under_limits_reclaim_stops_at_most_one_pod_for_each_that_it_gives_a_place(seed: int, levels: int) -> None:
    made = Drawn(seed, levels)
    plan = made.world.run("reclaim")
    assert len(stopped(plan)) <= len(promised(plan))


@pytest.mark.parametrize(("seed", "levels"), drawn(10))
def test_no_limit_is_exceeded_by_what_is_placed_or_nominated(seed: int, levels: int) -> None:
    made = Drawn(seed, levels)
    before = made.held()
    made.world.run()
    after = made.held()
    for name, queue in made.plain.queues.items():
        assert queue.limit is None or after[name] <= max(queue.limit, before[name]), name


@pytest.mark.parametrize(("seed", "levels"), drawn(10))
def test_what_reclaim_gave_to_a_job_is_not_taken_back_while_nothing_arrives(seed: int, levels: int) -> None:
    made = Drawn(seed, levels)
    given: set[str] = set()
    for _ in range(_MOST_CYCLES):
        plan = made.world.run("allocate", "reclaim")
        assert given.isdisjoint(stopped(plan)), f"{given.intersection(stopped(plan))} had to stop again"
        given |= set(promised(plan)) if stopped(plan) else set()
        if not plan.intentions:
            return
        made.world.end(plan)
    pytest.fail("it does not come to rest")


@pytest.mark.parametrize(("seed", "levels"), drawn(10))
def test_at_rest_no_queue_could_reclaim_a_gpu_by_the_rules(seed: int, levels: int) -> None:
    """Also: no queue stays below its share while one above its own has a pod that could be stopped for it. Queues are
    of one priority: what yields to a queue of lower priority would be served before it."""
    made = Drawn(seed, levels, has_priorities=False)
    for _ in range(_MOST_CYCLES):
        plan: Plan = made.world.run("allocate", "reclaim")
        if not (plan.placed or plan.evicted or plan.moved or plan.nominated):
            break
        made.world.end(plan)
    held, shares = made.held(), made.shares()
    running = Counter(made.queue_of[pod] for pod in made.world.cluster.pods)
    for claimant in made.waiting():
        if any(held[name] + 1 > shares[name] for name in made.plain.path(claimant)):
            continue
        for victim in running:
            if victim != claimant:
                assert not may_take(made.plain, claimant, victim, held, shares), f"{claimant} from {victim}"


def may_take(plain: PlainTree, claimant: str, victim: str, held: Counter[str], shares: dict[str, int]) -> bool:
    """Whether one GPU may go from the victim's queue to the claimant's, by the rules written once more."""
    ours, theirs = plain.path(claimant), plain.path(victim)
    above = set(ours) & set(theirs)
    mine, other = [name for name in ours if name not in above], [name for name in theirs if name not in above]
    if any(
        (limit := plain.queues[name].limit) is not None and held[name] + 1 - (name in above) > limit for name in ours
    ):
        return False
    if held[claimant] + 1 > shares[claimant]:
        return False
    top, below = mine[-1], other[-1]
    quota, quota_of_other = plain.queues[top].quota, plain.queues[below].quota
    is_above = _allocatable(plain, below, shares) is not None and held[below] > _allocatable(plain, below, shares)  # type: ignore[operator]
    is_within = quota is None or held[top] + 1 <= quota
    is_beyond = quota_of_other is not None and held[below] > quota_of_other
    if not (is_above or (is_within and is_beyond)):
        return False
    # Only where the ways part a sibling is touched.
    after, left = held[top] + 1, held[below] - 1
    if after <= shares[top] or not shares[below]:
        return True
    return bool(shares[top]) and Fraction(after, shares[top]) < Fraction(left, shares[below])


def _allocatable(plain: PlainTree, name: str, shares: dict[str, int]) -> int | None:
    queue = plain.queues[name]
    if queue.quota is None:
        return queue.limit
    larger = max(queue.quota, shares[name])
    return larger if queue.limit is None else min(larger, queue.limit)
