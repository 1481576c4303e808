"""Scattered room is gathered: who moves where, and when nobody does."""

from __future__ import annotations

import pytest

from build.nodes import NodeBuilder, fleet, node
from build.pods import ask
from build.yielding import Yielding, gpus, is_quiet
from shoal.engine.events import TopologySeen
from shoal.engine.groups import TopologyFacts, TopologyRequirement
from shoal.engine.plan import Plan
from shoal.engine.preemption.policy import VictimPolicy
from shoal.engine.steps.allocate import allocate
from shoal.engine.steps.consolidate import consolidate
from shoal.engine.steps.preempt import preempt

ONE, TWO, THREE = gpus(1), gpus(2), gpus(3)


def cluster_of(*nodes: NodeBuilder, policy: VictimPolicy | None = None) -> Yielding:
    policy = policy or VictimPolicy()
    return Yielding(*nodes, steps=(allocate, consolidate(policy), preempt(policy)))


def scattered(count: int = 2, gpus_each: int = 4, **more: VictimPolicy) -> Yielding:
    """Nodes of four GPUs with one pod of two on each, p0 the oldest."""
    world = cluster_of(*fleet(count, node("n").gpus(gpus_each)), **more)
    for index in range(count):
        world.runs(f"p{index}", f"n{index}", TWO, since_s=float(index))
    return world


def moves(plan: Plan) -> list[tuple[str, str, str]]:
    return sorted((move.pod, move.source, move.target) for move in plan.moved)


class TestAPodMoves:
    def test_so_that_another_fits(self) -> None:
        plan = scattered().waits("new", THREE).round()
        assert moves(plan) == [("p1", "n1", "n0")]
        assert [(n.pod, n.node) for n in plan.nominated] == [("new", "n1")]
        assert plan.evicted == []
        assert {move.beneficiary for move in plan.moved} == {"new"}

    def test_to_another_device_of_its_node(self) -> None:
        world = cluster_of(node("n").gpus(2))
        world.bind("a", ask().share(500), "n", (0,)).bind("b", ask().share(500), "n", (1,))
        plan = world.waits("new", ONE).round()
        assert [(move.pod, move.source, move.target) for move in plan.moved] == [("b", "n", "n")]
        grant = plan.moved[0].grant
        assert grant is not None
        assert grant.devices == (0,)

    def test_rather_than_yields_to_a_better_one(self) -> None:
        plan = scattered().waits("new", THREE, 9).round()
        assert len(plan.moved) == 1
        assert plan.evicted == []

    def test_and_then_all_is_quiet(self) -> None:
        world = scattered().waits("new", THREE)
        first, second, *rest = world.play(7)
        assert len(first.moved) == 1
        assert sorted((p.pod, p.node) for p in second.placed) == [("new", "n1"), ("p1", "n0")]
        assert all(map(is_quiet, rest))

    def test_for_a_gang_as_for_a_pod(self) -> None:
        world = cluster_of(*fleet(4, node("n").gpus(4)))
        for index in range(8):
            world.runs(f"p{index}", f"n{index % 4}", ONE, since_s=float(index))
        world.gang("new", 2).waits("new-0", THREE, group="new")
        plan = world.waits("new-1", THREE, group="new").round()
        assert [pod for pod, _, _ in moves(plan)] == ["p6", "p7"]
        assert sorted(n.node for n in plan.nominated) == ["n2", "n3"]

    def test_within_the_limit_only(self) -> None:
        policy = VictimPolicy(most_moves=1)
        world = cluster_of(*fleet(3, node("n").gpus(4)), policy=policy)
        for index in range(6):
            world.runs(f"p{index}", f"n{index % 3}", ONE)
        assert moves(world.waits("new", gpus(4)).round()) == []


class TestNobodyMoves:
    @pytest.mark.parametrize(
        ("case", "wanted"),
        [("when the claimant fits anyway", TWO), ("when there is not enough room in all", gpus(5))],
    )
    def test_in_vain(self, case: str, wanted: object) -> None:
        assert scattered().waits("new", wanted).round().moved == [], case  # type: ignore[arg-type]

    def test_when_it_would_have_nowhere_to_go(self) -> None:
        world = cluster_of(node("a").gpus(4), node("b").gpus(4).label("pool", "b"))
        world.runs("p", "a", TWO).runs("q", "b", ask().gpus(2).select("pool", "In", "b"))
        assert world.waits("new", ask().gpus(4).select("pool", "In", "b")).round().moved == []

    def test_if_somebody_more_important_could_seize_the_room_on_the_way(self) -> None:
        world = cluster_of(node("a").gpus(2), node("b").gpus(4)).runs("p", "b", TWO)
        world.steps = (allocate, consolidate())
        world.gang("more", 3, priority=1).waits("new", THREE)
        for index in range(3):
            world.waits(f"more-{index}", TWO, 1, "more")
        assert world.round().moved == []

    def test_who_never_yields(self) -> None:
        world = cluster_of(*fleet(2, node("n").gpus(2)))
        world.runs("a", "n0", ONE, is_preemptible=False).runs("b", "n1", ONE, is_preemptible=False)
        assert world.waits("new", TWO).round().moved == []

    def test_whom_a_budget_keeps(self) -> None:
        world = scattered().budget("b", 0, "p0", "p1")
        assert world.waits("new", THREE).round().moved == []

    def test_before_its_minimum_runtime(self) -> None:
        world = scattered(policy=VictimPolicy(min_runtime_s=2000.0))
        assert world.waits("new", THREE).round().moved == []


class TestAGang:
    def test_at_its_minimum_moves_whole(self) -> None:
        world = cluster_of(*fleet(3, node("n").gpus(4))).gang("g", 2)
        world.runs("g-0", "n0", TWO, group="g").runs("g-1", "n0", TWO, group="g")
        world.runs("p", "n1", ONE, is_preemptible=False).runs("q", "n2", ONE, is_preemptible=False)
        # Nobody else can move, so the gang does, to where there is room beside others.
        plan = world.waits("new", gpus(4)).round()
        assert [pod for pod, _, _ in moves(plan)] == ["g-0", "g-1"]
        assert {target for _, _, target in moves(plan)} == {"n1", "n2"}

    def test_keeps_its_place_in_line(self) -> None:
        world = cluster_of(*fleet(3, node("n").gpus(4))).gang("g", 2).waits("first", gpus(5))
        world.runs("g-0", "n0", TWO, group="g").runs("g-1", "n0", TWO, group="g").waits("g-2", gpus(5), group="g")
        world.runs("p", "n1", ONE, is_preemptible=False).runs("q", "n2", ONE, is_preemptible=False)
        before = world.cluster.gangs["g"].turn
        assert [pod for pod, _, _ in moves(world.waits("new", gpus(4)).round())] == ["g-0", "g-1"]
        assert world.cluster.gangs["g"].turn == before

    def test_that_must_be_together_stays_together(self) -> None:
        racks = [node(f"n{index}").gpus(4).label("rack", f"r{index // 2}") for index in range(4)]
        world = cluster_of(*racks)
        world.apply(TopologySeen(TopologyFacts("t", ("rack",))))
        world.gang("g", 2, requirement=TopologyRequirement("t", required="rack"))
        world.runs("g-0", "n0", TWO, group="g").runs("g-1", "n0", TWO, group="g")
        world.runs("p", "n1", THREE, is_preemptible=False).runs("q", "n2", ONE, is_preemptible=False).runs(
            "r", "n3", ONE, is_preemptible=False
        )
        plan = world.waits("new", gpus(4)).round()
        assert {target for _, _, target in moves(plan)} == {"n2", "n3"}
