"""Why nobody yields, and what would help, as answers that can be checked."""

from __future__ import annotations

import pytest

from build.nodes import fleet, node
from build.pods import ask
from build.snapshot import facts_of
from build.yielding import Yielding, gpus
from shoal.engine.fitter import Fitter
from shoal.engine.ledger import Ledger
from shoal.engine.preemption.evidence import GPU_COMPUTE, NodeShortage, hindrance, what_would_help
from shoal.engine.preemption.policy import VictimPolicy
from shoal.engine.preemption.preemptor import Preemptor, gang_preemptor, pod_preemptor
from shoal.engine.reasons import Code

ONE, TWO = gpus(1), gpus(2)


def claim_of(world: Yielding, name: str = "new") -> Preemptor:
    gang = world.cluster.gangs.find(name)
    claim = pod_preemptor(world.cluster, name) if gang is None else gang_preemptor(world.cluster, gang)
    assert claim is not None
    return claim


def fitter_of(world: Yielding) -> Fitter:
    return Fitter(world.placement, Ledger(world.cluster), 0)


def code(world: Yielding, policy: VictimPolicy | None = None) -> Code | None:
    before = facts_of(world.cluster)
    found = hindrance(fitter_of(world), claim_of(world), policy or VictimPolicy(), world.now_s)
    assert facts_of(world.cluster) == before
    return found


def helps(world: Yielding, name: str = "new") -> tuple[NodeShortage, ...]:
    before = facts_of(world.cluster)
    found = what_would_help(fitter_of(world), claim_of(world, name), world.now_s)
    assert facts_of(world.cluster) == before
    return found


def full() -> Yielding:
    return Yielding(node("n").gpus(2)).runs("a", "n", ONE, 1).runs("b", "n", ONE, 3, since_s=900)


class TestNobodyYields:
    def test_where_preemption_helps_there_is_nothing_to_say(self) -> None:
        assert code(full().waits("new", ONE, 2)) is None

    def test_to_one_that_never_asks(self) -> None:
        assert code(full().waits("new", ONE, 5, preempts=False)) is Code.NEVER_PREEMPTS

    def test_because_those_in_the_way_are_as_important(self) -> None:
        assert code(full().waits("new", TWO, 3)) is Code.ONLY_HIGHER

    def test_because_those_in_the_way_never_yield(self) -> None:
        world = Yielding(node("n").gpus(1)).runs("a", "n", ONE, is_preemptible=False)
        assert code(world.waits("new", ONE, 5)) is Code.ONLY_HIGHER

    def test_because_it_is_too_early(self) -> None:
        assert code(full().waits("new", TWO, 5), VictimPolicy(min_runtime_s=500)) is Code.TOO_EARLY

    def test_because_a_budget_forbids_it(self) -> None:
        assert code(full().budget("p", 0, "a").waits("new", ONE, 2)) is Code.BUDGETS

    def test_because_it_would_not_help(self) -> None:
        world = full().see(node("big").gpus(8).cordoned()).waits("new", ask().gpus(2).cpu(65), 5)
        assert code(world) in (Code.NOT_ENOUGH, Code.NO_VICTIMS)
        assert code(Yielding(node("n").gpus(2)).runs("a", "n", ONE).waits("new", gpus(3), 5)) is Code.NO_VICTIMS

    def test_because_even_all_of_them_would_not_do(self) -> None:
        world = Yielding(*fleet(2, node("n").gpus(2))).runs("a", "n0", ONE).runs("b", "n1", ONE)
        world.gang("new", 3, priority=5)
        for index in range(3):
            world.waits(f"new-{index}", TWO, group="new")
        assert code(world) is Code.NOT_ENOUGH


class TestWhatHelps:
    def test_is_the_node_that_lacks_least(self) -> None:
        world = Yielding(*fleet(2, node("n").gpus(4)))
        world.runs("a", "n0", gpus(4), 9).runs("b", "n1", TWO, 9).runs("c", "n1", ONE, 9)
        assert helps(world.waits("new", TWO)) == (NodeShortage("n1", ((GPU_COMPUTE, 1000),), ("c",)),)

    def test_names_every_node_a_gang_needs(self) -> None:
        world = Yielding(*fleet(3, node("n").gpus(2)))
        world.runs("a", "n0", TWO, 9).runs("b", "n1", ONE, 9).gang("new", 3)
        for index in range(3):
            world.waits(f"new-{index}", TWO, group="new")
        assert helps(world) == (
            NodeShortage("n0", ((GPU_COMPUTE, 2000),), ("a",)),
            NodeShortage("n1", ((GPU_COMPUTE, 1000),), ("b",)),
        )

    def test_may_be_cores(self) -> None:
        world = Yielding(node("n").cpu(8)).runs("a", "n", ask().cpu(6), 9)
        assert helps(world.waits("new", ask().cpu(4))) == (NodeShortage("n", (("cpu", 2000),), ("a",)),)

    @pytest.mark.parametrize(("case", "wanted"), [("it fits", ONE), ("no node is large enough", gpus(5))])
    def test_is_nothing_when(self, case: str, wanted: object) -> None:
        world = Yielding(node("n").gpus(2)).runs("a", "n", ONE, 9)
        assert helps(world.waits("new", wanted)) == (), case  # type: ignore[arg-type]
