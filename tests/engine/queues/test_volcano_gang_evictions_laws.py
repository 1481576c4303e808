"""Gang evictions look at no more victims than they need, and decide as if all were sorted and judged for each job."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from build import plain_gang_evictions
from build.depth import seeds
from build.volcano_worlds import World, plugin, queue
from shoal.engine.cycle import cycle
from shoal.engine.cycle_state import CycleState
from shoal.engine.events import BudgetSeen
from shoal.engine.groups import BudgetFacts, TopologyRequirement
from shoal.engine.placement import Placement
from shoal.engine.plan import Intention, Nominate
from shoal.engine.queues.disciplines.volcano.actions.gang_evictions import gangpreempt, gangreclaim
from shoal.engine.queues.disciplines.volcano.configuration import VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.discipline import Volcano
from shoal.engine.queues.disciplines.volcano.node_scores import volcano_profile
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest
from shoal.engine.queues.disciplines.volcano.session import Session, VolcanoFacts

Action = Callable[[Session], None]
ACTIONS: Mapping[str, tuple[Action, Action]] = {
    "gangpreempt": (gangpreempt, plain_gang_evictions.gangpreempt),
    "gangreclaim": (gangreclaim, plain_gang_evictions.gangreclaim),
}
TIERS: Mapping[str, tuple[tuple[Any, ...], ...]] = {
    "by weight": ((plugin("priority"), plugin("gang"), plugin("conformance"), plugin("proportion")),),
    "by capacity": (
        (plugin("priority"), plugin("gang"), plugin("conformance"), plugin("capacity", also=("Hierarchy",))),
    ),
    "with budgets and shares of jobs": ((plugin("gang"), plugin("drf"), plugin("pdb"), plugin("proportion")),),
    "in two tiers": (
        (plugin("gang"), plugin("conformance"), plugin("drf")),
        (plugin("priority"), plugin("proportion"), plugin("pdb")),
    ),
}


def random_world(seed: int, tiers: str, *, is_unequal: bool = False) -> World:
    """`is_unequal`: one job waits, and it may leave out some of its pods, which are of different sizes."""
    chance = random.Random(seed)
    size = chance.choice((3, 12, 40))
    names = [f"n{at}" for at in range(size)]
    nodes: dict[str, Mapping[str, float]] = {name: {"cpu": 8} for name in names}
    labels = {name: {"rack": f"r{at % 4}"} for at, name in enumerate(names)}
    queues = []
    for at in range(chance.randint(2, 5)):
        said: dict[str, Any] = {"weight": chance.randint(1, 4)}
        if tiers == "by capacity":
            parent = f"q{chance.randrange(at)}" if at and chance.random() < 0.5 else ""
            said = {"deserved": {"cpu": chance.randint(0, 4 * size)}, "parent": parent}
            if chance.random() < 0.3:
                said["guarantee"] = {"cpu": chance.randint(0, size)}
        queues.append(queue(f"q{at}", priority=chance.randint(0, 1), created_s=at, **said))
    made = World(queues, nodes, TIERS[tiers], {}, labels)
    parents = {each.parent for each in queues}
    leaves = [each.name for each in queues if each.name not in parents]
    free = dict.fromkeys(names, 8)
    has_surplus = chance.random() < 0.6
    number = 0
    for name in names:
        while free[name] and chance.random() < 0.95:
            count, cores = chance.randint(1, 3), chance.randint(1, 2)
            pods = [f"{where}:{cores}+{chance.randint(0, 2)}" for where in _places(chance, free, name, count, cores)]
            minimum = chance.randint(0, len(pods)) if has_surplus else len(pods)
            namespace = "kube-system" if chance.random() < 0.1 else "ns"
            is_preemptible = chance.random() < 0.9
            made.job(
                f"runs{number}",
                chance.choice(leaves),
                *pods,
                minimum=minimum,
                priority=chance.randint(0, 2),
                namespace=namespace,
                is_preemptible=is_preemptible,
            )
            number += 1
    for at in range(1 if is_unequal else chance.randint(1, 8)):
        pods = [f":{chance.choice((2, 4, 8))}"] * chance.randint(1, 4)
        if chance.random() < 0.2:
            pods.append(f":{chance.choice((1, 2, 4))}")
        if is_unequal:
            pods = [f":{chance.choice((1, 2, 4, 8))}" for _ in range(chance.randint(2, 6))]
        near = TopologyRequirement(required="rack", closest=True) if chance.random() < 0.3 else TopologyRequirement()
        made.job(
            f"waits{at}",
            chance.choice(leaves),
            *pods,
            # Where unequal pods can replace each other, more departures can lead to a choice that fits worse.
            minimum=chance.randint(1, len(pods))
            if is_unequal
            else len(pods) - (len(set(pods)) == 1 and chance.random() < 0.2),
            priority=chance.randint(1, 4),
            requirement=near,
        )
    for at in range(chance.randint(0, 3)):
        guarded = frozenset(chance.sample(sorted(made.cluster.pods), min(4, len(made.cluster.pods))))
        made.intake.apply(BudgetSeen(BudgetFacts(f"b{at}", "ns", chance.randint(0, 2), guarded)))
    return made


def _places(chance: random.Random, free: dict[str, int], first: str, count: int, cores: int) -> list[str]:
    found = []
    for name in (first, *chance.sample(sorted(free), min(count - 1, len(free)))):
        if free[name] >= cores:
            free[name] -= cores
            found.append(name)
    return found or [""]


def decided(world: World, action: Action) -> tuple[list[Intention], int]:
    """What the action decided, and how many decisions of it are evictions."""
    configuration = VolcanoConfiguration((), world.plugins, {})
    facts = VolcanoFacts(QueueForest(world.queues), world.jobs)
    discipline = Volcano(lambda: facts, configuration)

    def step(state: CycleState) -> None:
        action(discipline.opened(state))

    plan = cycle(
        world.cluster, Placement(world.cluster, volcano_profile(configuration)), now_s=0, seed=0, steps=(step,)
    )
    return list(plan.intentions), len(plan.evicted)


@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.parametrize("tiers", TIERS)
def test_the_victims_are_those_of_the_plainest_search(tiers: str, name: str) -> None:
    evicted = 0
    for seed in seeds(4):
        action, oracle = ACTIONS[name]
        found, count = decided(random_world(seed, tiers), action)
        assert found == decided(random_world(seed, tiers), oracle)[0], seed
        evicted += count
    assert evicted, "the worlds have victims"


@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.parametrize("tiers", TIERS)
def test_a_job_that_may_leave_out_unequal_pods_is_served_as_by_the_plainest_search_with_no_more_victims(
    tiers: str, name: str
) -> None:
    """It may get fewer of the pods beyond its minimum: then fewer victims go for it."""
    for seed in seeds(3):
        action, oracle = ACTIONS[name]
        world = random_world(seed, tiers, is_unequal=True)
        claimant = world.cluster.gangs["ns/waits0"].facts
        assert claimant is not None
        found, count = decided(world, action)
        plain, most = decided(random_world(seed, tiers, is_unequal=True), oracle)
        promised, promised_by_plain = (sum(isinstance(each, Nominate) for each in plan) for plan in (found, plain))
        assert bool(promised) == bool(promised_by_plain), seed
        assert count <= most, seed
        assert promised in (0, promised_by_plain) or claimant.minimum <= promised < promised_by_plain, seed
