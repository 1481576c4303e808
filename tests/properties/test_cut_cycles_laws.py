"""Laws of cycles that their limit has cut: together they decide what one cycle decides, and what happens between two of
them is taken into account."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import pytest
from msgspec import structs

from build.depth import seeds
from build.fair_share import FairWorld
from build.fair_share import queue as kai_queue
from build.volcano_worlds import World, plugin
from build.volcano_worlds import queue as volcano_queue
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.cycle_state import Step
from shoal.engine.events import PodBound, PodGone, PodRejected, PodStays
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Intention, Plan, Refuse, RefuseGroup
from shoal.engine.profile import NO_PREFERENCES
from shoal.engine.queues.disciplines.kai.fairshare import DEFAULT_ACTIONS, Fairshare
from shoal.engine.queues.disciplines.volcano.configuration import VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.discipline import Volcano
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest
from shoal.engine.queues.disciplines.volcano.session import VolcanoFacts

_FEWEST = 40
NOW_S = 10_000.0


@dataclass
class Kai:
    world: FairWorld
    actions: Sequence[str]

    def __post_init__(self) -> None:
        self.world.discipline.actions = tuple(self.actions)

    @property
    def cluster(self) -> Cluster:
        return self.world.cluster

    @property
    def intake(self) -> Intake:
        return self.world.intake

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.world.discipline.steps()

    def forget(self) -> None:
        """Another process goes on."""
        self.world.discipline = Fairshare(self.world.discipline.queues, self.world.discipline.settings, self.actions)

    def new_job(self, draw: Random, name: str) -> None:
        queues = [queue.name for queue in self.world.discipline.queues if queue.parent]
        self.world.job(name, draw.choice(queues), draw.choice([1, 0.5, 2]), draw.randint(1, 2), minimum=1)

    def change_queue(self, draw: Random) -> None:
        queues = list(self.world.discipline.queues)
        at = draw.randrange(1, len(queues))
        limit = draw.choice([None, 1000, 3000]), None, None
        queues[at] = structs.replace(queues[at], limit=limit, priority=draw.choice([100, 200]))
        self.world.discipline.queues = tuple(queues)


class OfVolcano:
    def __init__(self, world: World, actions: Sequence[str]) -> None:
        self.world = world
        self.cluster, self.intake = world.cluster, world.intake
        self._configuration = VolcanoConfiguration(tuple(actions), world.plugins, world.arguments)
        self.renew()
        self.forget()

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.discipline.steps()

    def renew(self) -> None:
        """Queues and jobs have changed."""
        self._facts = VolcanoFacts(QueueForest(self.world.queues), dict(self.world.jobs))

    def forget(self) -> None:
        self.discipline = Volcano(lambda: self._facts, self._configuration)

    def new_job(self, draw: Random, name: str) -> None:
        pods = [":1"] * draw.randint(1, 2)
        self.world.job(name, draw.choice(self.world.queues).name, *pods, minimum=1, gpus=draw.choice([0, 1]))
        self.renew()

    def change_queue(self, draw: Random) -> None:
        at = draw.randrange(len(self.world.queues))
        changed = {"priority": draw.choice([0, 3]), "weight": draw.choice([1, 3])}
        self.world.queues[at] = structs.replace(self.world.queues[at], **changed)
        self.renew()


Side = Kai | OfVolcano


def kai(draw: Random, actions: Sequence[str] = ("allocate",)) -> Kai:
    queues = [kai_queue("top", quota=None)]
    for at in range(draw.randint(1, 4)):
        quota, limit = draw.choice([0, 1, 2, None]), draw.choice([None, None, 2, 4])
        queues.append(kai_queue(f"q{at}", "top", quota, limit, draw.choice([0, 1, 2]), draw.choice([100, 100, 200])))
    world = FairWorld([draw.randint(1, 4) for _ in range(draw.randint(1, 4))], *queues)
    for at in range(draw.randint(3, 10)):
        pods, size = draw.randint(1, 3), draw.choice([1, 1, 2, 0.5])
        least, priority = draw.randint(1, pods), draw.choice([50, 50, 60, 120])
        world.job(f"j{at}", draw.choice(queues[1:]).name, size, pods, minimum=least, priority=priority)
    return Kai(world, actions)


def volcano(draw: Random, actions: Sequence[str] = ("enqueue", "allocate", "backfill")) -> OfVolcano:
    queues = [
        volcano_queue(f"q{at}", capability=draw.choice([{}, {"gpu": 2}, {"cpu": 6}]), weight=draw.choice([1, 2]))
        for at in range(draw.randint(1, 4))
    ]
    plugins = ["drf", "predicates", draw.choice(["proportion", "capacity"]), "nodeorder"]
    tiers = tuple(map(plugin, ("priority", "gang", "conformance"))), tuple(map(plugin, plugins))
    nodes: dict[str, Mapping[str, float]] = {
        f"n{at}": {"cpu": draw.randint(2, 6), "gpu": draw.randint(0, 3)} for at in range(draw.randint(1, 4))
    }
    world = World(queues, nodes, tiers)
    for at in range(draw.randint(3, 10)):
        pods = [f":{draw.choice([0, 1, 1, 2])}"] * draw.randint(1, 4)
        least, priority = draw.randint(1, len(pods)), draw.choice([0, 0, 5])
        queue = draw.choice(queues).name
        world.job(f"j{at}", queue, *pods, minimum=least, priority=priority, gpus=draw.choice([0, 0, 1]))
    return OfVolcano(world, actions)


def one(side: Side, most: int | None = None, now_s: float = NOW_S) -> Plan:
    placement = Placement(side.cluster, NO_PREFERENCES)
    return cycle(side.cluster, placement, now_s=now_s, seed=0, steps=side.steps, most=most)


def chain(side: Side, most: int, now_s: float = NOW_S) -> list[Intention]:
    """Cycles until none is cut."""
    found: list[Intention] = []
    for _ in range(_FEWEST):
        plan = one(side, most, now_s)
        found += plan.intentions
        if not plan.is_cut:
            return found
    raise AssertionError("cycles follow each other for ever")


ORDERS = (
    ("enqueue", "allocate", "backfill"),
    ("enqueue", "allocate", "backfill", "preempt", "reclaim"),
    ("reclaim", "allocate", "backfill"),
    ("preempt", "enqueue", "allocate", "gangpreempt"),
)


def test_cut_cycles_of_volcano_decide_what_one_cycle_decides_and_so_does_the_cycle_after_them() -> None:
    compared = 0
    for seed in seeds(40):
        draw = Random(seed)
        order, most = draw.choice(ORDERS), draw.randint(1, 3)
        cut, whole = volcano(Random(seed), order), volcano(Random(seed), order)
        assert chain(cut, most) == list(one(whole).intentions), seed
        plan = one(whole, now_s=NOW_S + 1)
        compared += bool(plan.evicted)
        assert one(cut, now_s=NOW_S + 1).intentions == plan.intentions, seed
    assert compared, "some evicted pods"


def test_cut_cycles_of_kai_decide_what_one_cycle_decides() -> None:
    for seed in seeds(40):
        cut, whole = kai(Random(seed)), kai(Random(seed))
        assert chain(cut, Random(seed).randint(1, 3)) == list(one(whole).intentions), seed


def _happens(side: Side, draw: Random, name: str) -> None:
    """Up to two events; the same on equal sides."""
    cluster, apply = side.cluster, side.intake.apply
    for number in range(draw.choice([0, 0, 0, 1, 2])):
        kind, waiting, on_nodes = draw.randint(0, 7), sorted(cluster.pending.in_order()), sorted(cluster.pods)
        if kind == 0:
            side.new_job(draw, f"{name}-{number}")
        elif kind == 1 and waiting:
            apply(PodGone(draw.choice(waiting)))
        elif kind == 2 and on_nodes:
            apply(PodGone(draw.choice(on_nodes)))
        elif kind in (3, 4) and on_nodes:
            key = draw.choice(on_nodes)
            pod = cluster.pods[key]
            if not pod.is_nominated:
                node = cluster.names[pod.row]
                apply(PodBound(key, pod.ask, node, pod.grant, pod.priority, who=pod.who, terminating=kind == 3))
        elif kind == 5 and on_nodes:
            apply(PodRejected(draw.choice(on_nodes)))
        elif kind == 6:
            side.change_queue(draw)
        elif kind == 7 and cluster.terminating:
            apply(PodStays(min(cluster.terminating)))


@pytest.mark.parametrize("made", [kai, volcano])
def test_a_cycle_that_goes_on_places_what_one_of_a_new_process_places(made: Callable[[Random], Side]) -> None:
    for seed in seeds(20):
        most = Random(seed).randint(1, 3)
        old, new = made(Random(seed)), made(Random(seed))
        for number in range(12):
            new.forget()
            plans = [one(side, most, NOW_S + number) for side in (old, new)]
            decided = [
                [each for each in plan.intentions if not isinstance(each, Refuse | RefuseGroup)] for plan in plans
            ]
            assert decided[0] == decided[1], (seed, number)
            refused = [{each.group for each in plan.intentions if isinstance(each, RefuseGroup)} for plan in plans]
            assert refused[0] == refused[1], (seed, number)
            for side in (old, new):
                _happens(side, Random(seed * 100 + number), f"new{number}")


def test_promises_that_are_only_made_again_do_not_cut_cycles_for_ever() -> None:
    for seed in seeds(30):
        chain(kai(Random(seed), ("reclaim", "allocate", "preempt")), 1)
    chain(kai(Random(seed), DEFAULT_ACTIONS), 1)
