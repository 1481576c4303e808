"""Trees of three to five levels of Volcano's queues: capabilities, guarantees, deserved amounts and classes of devices,
against plain second implementations, over all actions that evict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import inf
from random import Random
from typing import Any

import pytest

from build.depth import seeds
from build.dra import device, own, pool, seen, wants
from build.volcano_worlds import Outcome, World, amounts, plugin, queue
from shoal.engine.queues.disciplines.volcano.plugins.capacity import real_capabilities
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest, VolcanoQueue

LEVELS = (3, 4, 5)
PLUGINS = (
    plugin("priority"),
    plugin("gang"),
    plugin("conformance"),
    plugin("capacity", also=("Hierarchy",)),
    plugin("nodeorder"),
)


def cases(count: int) -> list[tuple[int, int]]:
    return [(seed, levels) for levels in LEVELS for seed in seeds(count)]


def drawn_queues(draw: Random, levels: int) -> dict[str, VolcanoQueue]:
    """Some leaf is so many levels below the root."""
    found: dict[str, VolcanoQueue] = {}

    def add(parent: str, depth: int) -> None:
        name = f"q{len(found)}"
        said: dict[str, Any] = {"deserved": {"cpu": draw.randint(0, 6)}}
        if draw.random() < 0.4:
            said["capability"] = {"cpu": draw.randint(1, 12)}
        if draw.random() < 0.4:
            said["guarantee"] = {"cpu": draw.randint(1, 3)}
        found[name] = queue(name, parent=parent, created_s=len(found), **said)
        if depth < levels:
            for at in range(draw.choice([0, 1, 2])):
                add(name, depth + 1 if at or draw.random() < 0.9 else levels)

    while not found or max(len(path(found, name)) for name in found) < levels:
        add("", 1)
    return found


def path(queues: Mapping[str, VolcanoQueue], name: str) -> list[str]:
    found = []
    while name:
        found.append(name)
        name = queues[name].parent
    return found


def children(queues: Mapping[str, VolcanoQueue], name: str) -> list[VolcanoQueue]:
    return [each for each in queues.values() if each.parent == name]


def plain_capability(queues: Mapping[str, VolcanoQueue], name: str, total: float) -> float:
    """Of cores: the smaller of the own capability and the parent's without the guarantees of the siblings."""
    parent = queues[name].parent
    siblings = sum(each.guarantee.get("cpu", 0) for each in children(queues, parent) if each.name != name)
    if parent:
        above = plain_capability(queues, parent, total)
    else:
        promised = sum(each.guarantee.get("cpu", 0) for each in children(queues, ""))
        above = total if promised else inf
    return min(queues[name].capability.get("cpu", inf), max(above - siblings, 0.0))


@pytest.mark.parametrize(("seed", "levels"), cases(6))
def test_the_real_capability_of_every_queue_is_the_plain_one(seed: int, levels: int) -> None:
    draw = Random(seed)
    queues, total = drawn_queues(draw, levels), draw.randint(1, 20)
    found = real_capabilities(QueueForest(queues.values()), amounts({"cpu": total}), is_tree=True)
    for name in queues:
        assert found[name].get("cpu", inf) == plain_capability(queues, name, total * 1000), name


# -- what is evicted ---------------------------------------------------------------------------------------------------


class Drawn:
    def __init__(self, seed: int, levels: int) -> None:
        draw = Random(seed)
        self.queues = drawn_queues(draw, levels)
        leaves = [name for name in self.queues if not children(self.queues, name)]
        free = {f"n{at}": draw.randint(2, 6) for at in range(draw.randint(1, 3))}
        self.total = sum(free.values())
        self.made = World(
            list(self.queues.values()), {name: {"cpu": cores} for name, cores in free.items()}, (PLUGINS,)
        )
        for number in range(draw.randint(3, 9)):
            pods = []
            for _ in range(draw.randint(1, 3)):
                cores, node = draw.randint(1, 2), draw.choice(["", *free])
                node = node if node and free[node] >= cores else ""
                free[node] = free.get(node, 0) - cores
                pods.append(f"{node}:{cores}")
            self.made.job(f"j{number}", draw.choice(leaves), *pods, minimum=draw.randint(1, len(pods)))
        self.before = self.used()

    def used(self) -> Counter[str]:
        """Cores by queue and ancestor, of pods that have a node and keep it."""
        found: Counter[str] = Counter()
        for key, pod in self.made.cluster.pods.items():
            if key not in self.made.cluster.terminating:
                for name in path(self.queues, pod.who.queue):
                    found[name] += pod.ask.request("cpu")
        return found

    def evicted(self, found: Outcome) -> Counter[str]:
        """Cores that were taken from each queue for jobs of queues that are not below it."""
        gone: Counter[str] = Counter()
        for evict in found.plan.evicted:
            pod = self.made.cluster.pods[evict.pod]
            beneficiary = path(self.queues, found.session.jobs[evict.beneficiary].queue)
            for name in path(self.queues, pod.who.queue):
                gone[name] += 0 if name in beneficiary else pod.ask.request("cpu")
        return gone


@pytest.mark.parametrize(("seed", "levels"), cases(6))
@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_no_queue_is_reclaimed_below_its_guarantee(action: str, seed: int, levels: int) -> None:
    drawn = Drawn(seed, levels)
    gone = drawn.evicted(drawn.made.run(action))
    for name, each in drawn.queues.items():
        guarantee = each.guarantee.get("cpu", 0)
        assert drawn.before[name] - gone[name] >= min(guarantee, drawn.before[name]) or not gone[name], name


@pytest.mark.parametrize(("seed", "levels"), cases(6))
@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_who_reclaims_stays_within_what_its_queue_deserves_and_within_every_capability(
    action: str, seed: int, levels: int
) -> None:
    drawn = Drawn(seed, levels)
    found = drawn.made.run(action)
    gained: Counter[str] = Counter()
    for pod in found.promised:
        waiting = drawn.made.cluster.pods[pod]
        for name in path(drawn.queues, waiting.who.queue):
            gained[name] += waiting.ask.request("cpu")
    gone = drawn.evicted(found)
    for name in gained:
        after = drawn.before[name] + gained[name] - gone[name]
        assert after <= max(plain_capability(drawn.queues, name, drawn.total * 1000), drawn.before[name])
        if not children(drawn.queues, name):
            assert after <= max(drawn.queues[name].deserved["cpu"], drawn.queues[name].guarantee.get("cpu", 0))


@pytest.mark.parametrize(("seed", "levels"), cases(6))
@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_what_was_reclaimed_in_a_tree_is_not_reclaimed_back_at_once(action: str, seed: int, levels: int) -> None:
    drawn = Drawn(seed, levels)
    first = drawn.made.run("allocate", action)
    drawn.made.carry_out(first.plan)
    second = drawn.made.run("allocate", action)
    assert not second.evicted & first.promised


@pytest.mark.parametrize(("seed", "levels"), cases(6))
@pytest.mark.parametrize("action", ["reclaim", "gangreclaim", "gangpreempt", "preempt"])
def test_a_promise_costs_no_more_pods_than_it_is_large(action: str, seed: int, levels: int) -> None:
    """Jobs are single pods of one core."""
    draw = Random(seed)
    queues = drawn_queues(draw, levels)
    leaves = [name for name in queues if not children(queues, name)]
    made, free = World(list(queues.values()), {"n1": {"cpu": 6}}, (PLUGINS,)), 6
    used: Counter[str] = Counter()
    for number in range(draw.randint(4, 14)):
        leaf = draw.choice(leaves)
        fits = all(used[name] + 1 <= plain_capability(queues, name, 6000) / 1000 for name in path(queues, leaf))
        runs = free > 0 and fits and draw.random() < 0.7
        free -= runs
        used.update(path(queues, leaf) if runs else ())
        made.job(f"j{number}", leaf, "n1" if runs else "", priority=draw.randint(0, 2), minimum=1)
    found = made.run(action)
    assert len(found.evicted) <= len(found.promised)


# -- classes of devices ------------------------------------------------------------------------------------------------

OF_CLASS = "deviceclass/gpus"


def claiming(*queues: VolcanoQueue) -> World:
    """A node with four devices of the class `gpus`."""
    made = World(list(queues), {"n1": {"cpu": 16}}, (PLUGINS,))
    for event in seen(pool(*(device(f"g{at}") for at in range(4)), at="n1"), **{"class gpus": _ALL}):
        made.intake.apply(event)
    return made


_ALL = [f"gpu.test/n1/g{at}" for at in range(4)]


def claims(count: int) -> Any:
    return (own(wants(count, "class gpus")),)


def test_a_queue_starts_no_more_claims_on_a_class_of_devices_than_its_capability_counts() -> None:
    made = claiming(queue("top", capability={OF_CLASS: 3}), queue("mid", parent="top"), queue("leaf", parent="mid"))
    made.job("a", "leaf", "", claims=claims(2)).job("b", "leaf", "", claims=claims(2)).job("c", "leaf", "")
    assert made.run("allocate").bound == {"a-0", "c-0"}


def test_minimum_resources_count_classes_of_devices_at_every_ancestor() -> None:
    made = claiming(queue("top", capability={OF_CLASS: 3}), queue("leaf", parent="top"))
    for name in "ab":
        made.job(name, "leaf", "", claims=claims(2), min_resources={OF_CLASS: 2}, is_enqueued=False, reserves=True)
    assert list(made.run("enqueue").session.enqueued) == ["ns/a"]


@pytest.mark.parametrize(("seed", "levels"), cases(4))
def test_classes_of_devices_are_counted_at_every_ancestor_and_no_more_waits_than_has_to(seed: int, levels: int) -> None:
    draw = Random(seed)
    names = [f"q{at}" for at in range(levels + 3)]
    parents = {name: "" if at == 0 else names[min(draw.randrange(at), levels - 1)] for at, name in enumerate(names)}
    bounds = {name: draw.randint(0, 4) for name in names if draw.random() < 0.6}
    queues = [
        queue(name, parent=parents[name], capability={OF_CLASS: bounds[name]} if name in bounds else {})
        for name in names
    ]
    leaves = sorted(set(names) - set(parents.values()))
    made, asked = claiming(*queues), {}
    for at in range(draw.randint(2, 8)):
        asked[f"j{at}-0"] = draw.choice(leaves), draw.randint(1, 2)
        made.job(f"j{at}", asked[f"j{at}-0"][0], "", claims=claims(asked[f"j{at}-0"][1]))
    bound = made.run("allocate").bound
    used: Counter[str] = Counter()
    for pod in bound:
        for name in _path(asked[pod][0], parents):
            used[name] += asked[pod][1]
    assert all(used[name] <= most for name, most in bounds.items())
    left = 4 - sum(asked[pod][1] for pod in bound)
    for pod in asked.keys() - bound:
        leaf, count = asked[pod]
        is_full = any(name in bounds and used[name] + count > bounds[name] for name in _path(leaf, parents))
        assert is_full or count > left, pod


def _path(name: str, parents: Mapping[str, str]) -> list[str]:
    return [name, *_path(parents[name], parents)] if name else []
