"""One round: a plan is handed out, the facts already count it, and the world has the last word."""

from __future__ import annotations

import pytest

from build.nodes import fleet, node
from build.pods import ask
from build.scenario import Scenario
from build.snapshot import facts_of
from shoal.engine.plan import Place, Refuse
from shoal.engine.pod_mix import PodClass, PodMix
from shoal.engine.profile import POLICIES
from shoal.engine.reasons import Code

MIX = PodMix.of([PodClass(2000, 300, 1), PodClass(4000, 0, 0), PodClass(16000, 1000, 2)])


def test_a_plan_says_where_on_which_devices_and_why() -> None:
    plan = Scenario(node("n").gpus(2)).arrive("p", ask().gpus(2)).arrive("q", ask().gpus(1)).round()
    placed, refused = plan.intentions
    assert isinstance(placed, Place)
    assert (placed.pod, placed.node, placed.code) == ("p", "n", Code.PLACED)
    assert placed.grant is not None
    assert placed.grant.devices == (0, 1)
    assert refused == Refuse("q", Code.NOWHERE)


def test_without_nodes_everybody_is_told_that_there_are_none() -> None:
    world = Scenario().arrive("p", ask().gpus(1)).arrive("q", ask().gpus(10)).arrive("r", ask().share(10))
    assert world.round().intentions == tuple(Refuse(key, Code.NO_NODES) for key in "pqr")


@pytest.mark.parametrize("policy", POLICIES)
def test_without_nodes_no_policy_stumbles(policy: str) -> None:
    world = Scenario(policy=policy, mix=MIX)
    for key, wanted in {"a": ask(), "b": ask().gpus(10), "c": ask().share(5), "d": ask().gpus(1).cpu(4)}.items():
        world.arrive(key, wanted)
    assert len(world.round().refused) == 4


@pytest.mark.parametrize("policy", POLICIES)
def test_without_a_mix_no_policy_stumbles(policy: str) -> None:
    world = Scenario(node("n").gpus(8), policy=policy)
    world.arrive("a", ask().gpus(2)).arrive("b", ask().share(300)).arrive("c", ask().cpu(1))
    assert len(world.round().placed) == 3


@pytest.mark.parametrize("policy", POLICIES)
def test_when_every_node_is_gone_again_no_policy_stumbles(policy: str) -> None:
    world = Scenario(node("n").gpus(8), policy=policy, mix=MIX).arrive("a", ask().gpus(2))
    world.confirm(world.round()).lose("n").arrive("b", ask().gpus(2))
    assert world.round().intentions == (Refuse("b", Code.NO_NODES),)


def test_a_placement_whose_node_goes_before_the_world_confirmed_it_is_decided_again() -> None:
    world = Scenario(node("n").cpu(1)).arrive("a", ask().cpu(1)).arrive("b", ask().cpu(1))
    world.round()
    world.lose("n")
    assert world.waiting() == ["a", "b"], "in its old turn"
    assert world.round().intentions == (Refuse("a", Code.NO_NODES),), "b has had its answer"
    world.see(node("m").cpu(1))
    assert [(place.pod, place.node) for place in world.round().placed] == [("a", "m")]


def test_what_a_round_gave_away_the_next_one_does_not_give_again() -> None:
    world = Scenario(node("n").gpus(1)).arrive("a", ask().share(600))
    assert world.round().placed
    world.arrive("b", ask().share(600))
    assert world.round().refused


def test_a_rejected_placement_gives_everything_back() -> None:
    world = Scenario(node("n").cpu(4).gpus(1), policy="BestFit").arrive("a", ask().cpu(1).share(600).port(80))
    before = facts_of(world.cluster)
    world.round()
    world.reject("a")
    assert facts_of(world.cluster) == before


def test_a_rejected_placement_is_answered_again() -> None:
    world = Scenario(node("n").cpu(1)).arrive("a", ask().cpu(1))
    world.round()
    world.bind("thief", ask().cpu(1), "n").reject("a")
    assert world.round().intentions == (Refuse("a", Code.NOWHERE),)


def test_a_quiet_round_changes_nothing() -> None:
    world = Scenario(*fleet(3, node("n").gpus(2))).arrive("a", ask().gpus(2)).arrive("b", ask().gpus(8))
    world.confirm(world.round())
    before = facts_of(world.cluster)
    for _ in range(5):
        assert world.round().intentions == ()
    assert facts_of(world.cluster) == before


def test_a_plan_names_the_version_of_the_facts_it_was_made_for() -> None:
    world = Scenario(node("n")).arrive("a", ask())
    version = world.cluster.version
    assert world.round().version == version
    assert world.cluster.version > version


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_facts_and_seed_make_the_same_plan(policy: str) -> None:
    def run(seed: int) -> list[object]:
        world = Scenario(*fleet(12, node("n").gpus(4)), policy=policy, mix=MIX, seed=seed)
        plans: list[object] = []
        for index in range(30):
            world.arrive(f"p{index}", (ask().gpus(1), ask().share(300), ask().cpu(4))[index % 3])
            if index % 4 == 0:
                plans.append(world.round().intentions)
        return plans

    assert run(1) == run(1)
    if policy == "Random":
        assert run(1) != run(2)
    else:
        assert run(1) == run(2)
