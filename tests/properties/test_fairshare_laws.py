"""Laws of the fair-share discipline on random clusters: trees of queues, gangs, shares of GPUs, some of it running."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from build.depth import seeds
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.device_demand import GpuShare, WholeGpus
from shoal.engine.events import GroupSeen, NodeFacts, NodeSeen, PodArrived, PodBound, PodGone
from shoal.engine.groups import GroupFacts
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Plan
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.profile import NO_PREFERENCES
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareSettings
from shoal.engine.queues.disciplines.kai.fair_queues import EACH, FairQueue
from shoal.engine.queues.disciplines.kai.fairshare import Fairshare
from shoal.engine.reasons import Code

GPU = 1000
_MOST_CYCLES = 12


@dataclass
class World:
    """A cluster whose pods end at once when they are told to, and are created again."""

    discipline: Fairshare
    cluster: Cluster = field(default_factory=Cluster)

    def __post_init__(self) -> None:
        self.intake = Intake(self.cluster)
        self.placement = Placement(self.cluster, NO_PREFERENCES)
        self.now_s = 1000.0

    def run(self) -> Plan:
        plan = cycle(self.cluster, self.placement, now_s=self.now_s, seed=0, steps=self.discipline.steps())
        self.now_s += 1
        for place in plan.placed:
            allocation = self.cluster.pods[place.pod]
            self.intake.apply(
                PodBound(place.pod, allocation.ask, place.node, place.grant, allocation.priority, who=allocation.who)
            )
        return plan

    def end(self, plan: Plan) -> None:
        for pod in [evict.pod for evict in plan.evicted] + [move.pod for move in plan.moved]:
            allocation = self.cluster.pods[pod]
            self.intake.apply(PodGone(pod))
            self.intake.apply(PodArrived(pod, allocation.ask, allocation.priority, who=allocation.who))


def world(seed: int) -> World:
    rng = Random(seed)
    queues = _queues(rng)
    parents = {queue.parent for queue in queues}
    leaves = [queue.name for queue in queues if queue.name not in parents]
    made = World(Fairshare(queues, FairshareSettings(stale_grace_s=-1)))
    apply = made.intake.apply
    for at in range(rng.randint(1, 4)):
        apply(NodeSeen(NodeFacts(f"n{at}", {"cpu": 16_000, "memory": 10**9, "pods": 50}, gpus=rng.choice([2, 4, 8]))))
    for number in range(rng.randint(2, 14)):
        _job(made, rng, f"ns/j{number:02}", rng.choice(leaves), float(number + 1))
    return made


def _queues(rng: Random) -> list[FairQueue]:
    found: list[FairQueue] = []

    def add(name: str, parent: str) -> None:
        gpu_quota = rng.choice([0, 0, 1, 2, 4, None])
        gpu_limit = rng.choice([None, None, None, 2, 6])
        found.append(
            FairQueue(
                name,
                parent,
                rng.choice([100, 100, 200]),
                (None if gpu_quota is None else gpu_quota * GPU, None, None),
                (None if gpu_limit is None else gpu_limit * GPU, None, None),
                (rng.choice([0, 1, 1, 2, 3]), 1, 1),
            )
        )

    for top in range(rng.randint(1, 3)):
        add(f"t{top}", "")
        for middle in range(rng.choice([0, 1, 2, 3])):
            add(f"t{top}m{middle}", f"t{top}")
            for leaf in range(rng.choice([0, 0, 2])):
                add(f"t{top}m{middle}l{leaf}", f"t{top}m{middle}")
    return found


def _job(made: World, rng: Random, name: str, queue: str, created_s: float) -> None:
    pods = rng.choice([1, 1, 1, 2, 3, 4])
    minimum = rng.randint(1, pods)
    priority = rng.choice([50, 50, 75, 100])
    share = rng.random() < 0.3
    devices = GpuShare(rng.choice([250, 500, 700])) if share else WholeGpus(rng.choice([1, 1, 2, 3]))
    ask = Ask(requests=(("cpu", 100), ("memory", 1000)), devices=devices)
    is_preemptible = priority < 100
    made.intake.apply(
        GroupSeen(
            GroupFacts(
                name, minimum, priority=priority, is_preemptible=is_preemptible, created_s=created_s, queue=queue
            )
        )
    )
    runs = rng.random() < 0.6
    for at in range(pods):
        who = PodIdentity(group=name, queue=queue, order=at, since_s=created_s, is_preemptible=is_preemptible)
        key = f"{name}-{at}"
        chosen = made.placement.choose(made.cluster.charge(ask), 0, who) if runs else None
        if chosen is None:
            runs = runs and at >= minimum
            made.intake.apply(PodArrived(key, ask, priority, who=who))
            continue
        row, grant = chosen
        made.intake.apply(PodBound(key, ask, made.cluster.names[row], grant, priority, who=who))


def account(made: World) -> dict[str, tuple[list[int], list[int]]]:
    last = made.discipline.last
    assert last is not None
    return {name: (list(node.allocated), list(node.non_preemptible)) for name, node in last.tree.nodes.items()}


@pytest.mark.parametrize("seed", seeds(40))
def test_cycles_come_to_rest_and_what_is_promised_is_kept(seed: int) -> None:
    made = world(seed)
    promised: set[str] = set()
    for _ in range(_MOST_CYCLES):
        before = {pod: allocation.who for pod, allocation in made.cluster.pods.items()}
        held = gpus_of_queues(made)
        plan = made.run()
        _check_account(made)
        _check_bounds(made, held)
        for evict in plan.evicted:
            assert before[evict.pod].is_preemptible or evict.code is Code.STALE
        kept = {place.pod for place in plan.placed} | {nominate.pod for nominate in plan.nominated}
        # Preemption and reclaim may take it for others; to allocate it is taken.
        fresh = {nominate.pod for nominate in plan.nominated} - promised
        assert promised <= kept or fresh, f"{promised - kept} had the promise of a place, and it was given away"
        promised = {nominate.pod for nominate in plan.nominated}
        if not (plan.placed or plan.evicted or plan.moved or plan.nominated):
            return
        made.end(plan)
    pytest.fail(f"still changing: {plan.evicted} {plan.moved} {plan.placed}")


def gpus_of_queues(made: World) -> dict[str, tuple[int, int]]:
    """By queue and ancestor: what pods hold that keep their places, and what of it is never preempted."""
    cluster, parents = made.cluster, {queue.name: queue.parent for queue in made.discipline.queues}
    found = dict.fromkeys(parents, (0, 0))
    for pod, allocation in cluster.pods.items():
        facts = cluster.gangs[allocation.who.group].facts
        assert facts is not None
        milli = 0 if pod in cluster.terminating else allocation.charge.gpu_milli
        name = facts.queue
        while name:
            all_of_it, never = found[name]
            found[name] = all_of_it + milli, never + (0 if facts.is_preemptible else milli)
            name = parents[name]
    return found


def _check_bounds(made: World, before: dict[str, tuple[int, int]]) -> None:
    """No limit is exceeded by what was placed, and no quota by work that is never preempted."""
    after = gpus_of_queues(made)
    for queue in made.discipline.queues:
        limit, quota = queue.limit[0], queue.quota[0]
        assert limit is None or after[queue.name][0] <= max(limit, before[queue.name][0]), queue.name
        assert quota is None or after[queue.name][1] <= max(quota, before[queue.name][1]), queue.name


def _check_account(made: World) -> None:
    """What the discipline accounts for is what is there."""
    cluster, found = made.cluster, account(made)
    last = made.discipline.last
    assert last is not None
    held = {name: [0, 0, 0] for name in found}
    for pod, allocation in cluster.pods.items():
        if pod in cluster.terminating and not any(pod == move for move in _moved(made)):
            continue
        facts = cluster.gangs[allocation.who.group].facts
        leaf = last.tree.leaf(facts.queue) if facts is not None else None
        assert leaf is not None
        for node in leaf.path:
            for at in EACH:
                held[node.name][at] += last.amounts.of(allocation.charge)[at]
    assert {name: amounts for name, (amounts, _) in found.items()} == held


def _moved(made: World) -> set[str]:
    last = made.discipline.last
    assert last is not None
    return {pod for job in last.touched for pod in job.settled}
