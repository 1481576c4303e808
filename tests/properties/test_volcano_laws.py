"""Laws of Volcano's discipline over random worlds: no quota is exceeded, gangs are whole, nothing is taken in vain."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from build.depth import seeds
from build.snapshot import facts_of
from build.volcano_worlds import World, plugin, queue
from shoal.engine.queues.disciplines.volcano.plugins.proportion import Proportion

ACTIONS = ("enqueue", "allocate", "preempt", "reclaim", "backfill", "gangpreempt", "gangreclaim")
WEIGHTS = (
    plugin("priority"),
    plugin("gang", off=("Preemptable",)),
    plugin("conformance"),
    plugin("proportion"),
    plugin("nodeorder"),
)
CAPACITY = (*WEIGHTS[:3], plugin("capacity", also=("Hierarchy",)), WEIGHTS[4])


def random_world(seed: int, *, is_tree: bool) -> World:
    chance = random.Random(seed)
    nodes: dict[str, Mapping[str, float]] = {
        f"n{number}": {"cpu": chance.randint(2, 8)} for number in range(chance.randint(1, 4))
    }
    queues = []
    for number in range(chance.randint(2, 4)):
        parent = f"q{chance.randrange(number)}" if is_tree and number and chance.random() < 0.5 else ""
        said: dict[str, Any] = (
            {"deserved": {"cpu": chance.randint(0, 6)}} if is_tree else {"weight": chance.randint(0, 4)}
        )
        if chance.random() < 0.5:
            said["capability"] = {"cpu": chance.randint(1, 12)}
        queues.append(queue(f"q{number}", parent=parent, priority=chance.randint(0, 1), created_s=number, **said))
    made = World(queues, nodes, (CAPACITY if is_tree else WEIGHTS,))
    free: dict[str, float] = {name: has["cpu"] for name, has in nodes.items()}
    parents = {each.parent for each in queues}
    leaves = [each.name for each in queues if each.name not in parents]
    for number in range(chance.randint(2, 8)):
        pods = []
        for _ in range(chance.randint(1, 4)):
            cores = chance.randint(1, 3)
            place = chance.choice(["", *nodes])
            if place and free[place] >= cores:
                free[place] -= cores
            else:
                place = ""
            pods.append(f"{place}:{cores}+{chance.randint(0, 2)}")
        made.job(
            f"j{number}",
            chance.choice(leaves),
            *pods,
            minimum=chance.randint(1, len(pods)),
            priority=chance.randint(0, 3),
            is_preemptible=chance.random() < 0.8,
        )
    return made


def parametrized(count: int) -> list[tuple[int, bool]]:
    return [(seed, is_tree) for seed in seeds(count) for is_tree in (False, True)]


@pytest.mark.parametrize(("seed", "is_tree"), parametrized(40))
def test_no_node_and_no_capability_is_exceeded_and_what_starts_is_whole(seed: int, is_tree: bool) -> None:
    made = random_world(seed, is_tree=is_tree)
    over_before = over_capability(made)
    found = made.run(*ACTIONS)
    made.carry_out(found.plan)
    assert (made.cluster.free[: made.cluster.rows, :3] >= 0).all()
    assert over_capability(made) <= over_before
    robbed = {found.session.pods[pod].job for pod in found.evicted}
    for name, job in found.session.jobs.items():
        if name not in robbed and any(pod in found.bound for pod in job.ready):
            assert len(job.ready) + len(job.best_effort) >= job.minimum


@pytest.mark.parametrize(("seed", "is_tree"), parametrized(20))
def test_no_capability_is_exceeded_by_what_stays_while_victims_leave_slowly(seed: int, is_tree: bool) -> None:
    """Volcano counts a pod that is being deleted no more, although it still has its node: its queue may start others
    elsewhere, and exceeds its capability by no more than what leaves. What stays or is promised is within it."""
    made = random_world(seed, is_tree=is_tree)
    over_before = over_capability(made)
    for _ in range(3):
        made.place(made.run(*ACTIONS).plan)
        assert over_capability(made) <= over_before


def over_capability(made: World) -> set[str]:
    """Queues whose pods on nodes, and promised pods, use more than their capability, without those that leave."""
    used: dict[str, float] = {}
    forest = {each.name: each for each in made.queues}
    for key, holding in made.cluster.pods.items():
        if key in made.cluster.terminating:
            continue
        at = holding.who.queue
        while at in forest:
            used[at] = used.get(at, 0) + holding.ask.request("cpu")
            at = forest[at].parent
    return {name for name, amount in used.items() if amount > forest[name].capability.get("cpu", amount)}


@pytest.mark.parametrize(("seed", "is_tree"), parametrized(20))
def test_no_pod_is_evicted_for_nothing(seed: int, is_tree: bool) -> None:
    found = random_world(seed, is_tree=is_tree).run(*ACTIONS)
    helped = {found.session.pods[pod].job for pod in found.promised}
    assert {evict.beneficiary for evict in found.plan.evicted} <= helped
    if found.evicted:
        assert found.promised


@pytest.mark.parametrize(("seed", "is_tree"), parametrized(20))
def test_the_same_world_has_the_same_plan(seed: int, is_tree: bool) -> None:
    plans = [random_world(seed, is_tree=is_tree).run(*ACTIONS).plan.intentions for _ in range(2)]
    assert plans[0] == plans[1]


@pytest.mark.parametrize("seed", seeds(40))
def test_what_was_reclaimed_by_weight_is_not_reclaimed_back_at_once(seed: int) -> None:
    made = random_world(seed, is_tree=False)
    first = made.run("allocate", "reclaim")
    made.carry_out(first.plan)
    second = made.run("allocate", "reclaim")
    assert not second.evicted & first.promised


@pytest.mark.parametrize("seed", seeds(40))
def test_a_queue_below_its_share_does_not_wait_while_a_single_pod_could_be_reclaimed(seed: int) -> None:
    """Pods of one core on one node, no minima: no queue with waiting pods is below its share while another is above."""
    chance = random.Random(seed)
    queues = [queue(f"q{number}", weight=chance.randint(1, 3)) for number in range(3)]
    plugins = (plugin("gang", off=("Reclaimable",)), plugin("proportion"), plugin("conformance"))
    made = World(queues, {"n1": {"cpu": 12}}, (plugins,))
    left = 12
    for each in queues:
        running = min(chance.randint(0, 8), left)
        left -= running
        waiting = chance.randint(0, 6)
        pods = ["n1"] * running + [""] * waiting
        for number, pod in enumerate(pods):
            made.job(f"{each.name}-{number}", each.name, pod)
    found = made.run("allocate", "reclaim")
    accounts, (proportion,) = found.session.accounts, found.session.having("Overused")
    assert isinstance(proportion, Proportion)
    waits = {job.queue for job in found.session.jobs.values() if job.pending}
    share = {each.name: proportion.deserved.get(each.name, {}).get("cpu", 0) for each in queues}
    used = {each.name: accounts.allocated(each.name).get("cpu", 0) for each in queues}
    below = {name for name in waits if used[name] + 1000 <= share[name]}
    above = {
        job.queue
        for job in found.session.jobs.values()
        if used[job.queue] > share[job.queue] and any(pod.amounts.get("cpu") for pod in job.ready.values())
    }
    assert not (below and above)


@pytest.mark.parametrize(("seed", "is_tree"), parametrized(20))
def test_a_cycle_that_fails_leaves_the_facts_as_they_were(seed: int, is_tree: bool) -> None:
    made = random_world(seed, is_tree=is_tree)
    before = facts_of(made.cluster)
    session = made.run("shuffle").session
    mark = session.mark()
    for job in session.jobs.values():
        for pod in [each for each in job.ready.values() if each.is_preemptible]:
            session.state.ledger.evict(pod.key)
            session.note_evicted(pod)
    session.rollback(mark)
    assert facts_of(made.cluster) == before
    assert {name: len(job.ready) for name, job in session.jobs.items()} == {
        name: len(session.cluster.gangs[name].running) for name in session.jobs
    }
