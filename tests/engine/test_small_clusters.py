"""Small clusters against the truth: a solver's optimum bounds what is placed, and each single step is the argmax.

Greedy placement, one pod at a time and no way back, cannot beat the best packing of the same pods; it should come
near, and where room is no question it must place everything.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

import pytest
from ortools.sat.python import cp_model

from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.pod_mix import PodMix, class_of
from shoal.engine.profile import POLICIES

ASKS: list[AskBuilder] = [
    ask().cpu(4),
    ask().cpu(2).share(300),
    ask().cpu(1).share(500),
    ask().cpu(3).share(700),
    ask().cpu(4).gpus(1),
    ask().cpu(8).gpus(2),
    ask().cpu(2).gpus(1).model("B"),
]

DETERMINISTIC = [name for name in POLICIES if name != "Random"]


@dataclass(frozen=True)
class Instance:
    nodes: tuple[NodeBuilder, ...]
    asks: tuple[AskBuilder, ...]

    @property
    def mix(self) -> PodMix:
        return PodMix.of(class_of(wanted.made()) for wanted in self.asks)


def instance(seed: int, *, pods: int) -> Instance:
    random_ = random.Random(seed)
    nodes = tuple(
        node(f"n{index}").cpu(random_.choice([4, 8, 16])).gpus(random_.choice([0, 1, 2, 4])).model(random_.choice("AB"))
        for index in range(4)
    )
    return Instance(nodes, tuple(random_.choice(ASKS) for _ in range(pods)))


def placed_milli(case: Instance, policy: str, *, seed: int = 0) -> tuple[int, int]:
    """Pods placed, and thousandths of GPU allocated to them."""
    world = Scenario(*case.nodes, policy=policy, mix=case.mix, seed=seed)
    for index, wanted in enumerate(case.asks):
        world.arrive(f"p{index}", wanted)
    placed = {place.pod for place in world.round().placed}
    milli = sum(wanted.made().gpu_milli for index, wanted in enumerate(case.asks) if f"p{index}" in placed)
    return len(placed), milli


def optimum(case: Instance, *, count_pods: bool) -> int:
    """The most pods, or the most GPU, that any packing of the instance could hold; devices and all."""
    model = cp_model.CpModel()
    gains: list[cp_model.LinearExprT] = []
    on_node: dict[str, list[tuple[AskBuilder, cp_model.IntVar]]] = {there.name: [] for there in case.nodes}
    shares: dict[tuple[str, int], list[tuple[int, cp_model.IntVar]]] = {}
    wholes: dict[tuple[str, int], list[cp_model.IntVar]] = {}
    for pod, wanted in enumerate(case.asks):
        made = wanted.made()
        somewhere = []
        for there in case.nodes:
            if made.gpu_models and there.gpu_model not in made.gpu_models:
                continue
            here = model.new_bool_var(f"p{pod}@{there.name}")
            somewhere.append(here)
            on_node[there.name].append((wanted, here))
            if made.devices is None:
                continue
            taken = []
            for device in range(there.gpu_count):
                takes = model.new_bool_var(f"p{pod}@{there.name}/{device}")
                taken.append(takes)
                if made.gpu_milli < 1000:
                    shares.setdefault((there.name, device), []).append((made.gpu_milli, takes))
                else:
                    wholes.setdefault((there.name, device), []).append(takes)
            model.add(sum(taken) == max(made.gpu_milli // 1000, 1) * here)
        model.add_at_most_one(somewhere)
        gain = 1 if count_pods else made.gpu_milli
        gains.extend(gain * here for here in somewhere)
    for there in case.nodes:
        pods = on_node[there.name]
        model.add(sum(w.made().request("cpu") * here for w, here in pods) <= there.allocatable["cpu"])
        for device in range(there.gpu_count):
            place = there.name, device
            whole = sum(wholes.get(place, []))
            model.add(sum(milli * takes for milli, takes in shares.get(place, [])) + 1000 * whole <= 1000)
    model.maximize(sum(gains))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


CASES = [instance(seed, pods=14) for seed in range(6)]


@cache
def bounds() -> list[tuple[int, int]]:
    """The most pods and the most GPU of each case: solved when a test asks, not in each process that collects tests."""
    return [(optimum(case, count_pods=True), optimum(case, count_pods=False)) for case in CASES]


@pytest.mark.parametrize("policy", POLICIES)
def test_greedy_placement_never_exceeds_the_best_packing(policy: str) -> None:
    for case, (most_pods, most_milli) in zip(CASES, bounds(), strict=True):
        pods, milli = placed_milli(case, policy)
        assert pods <= most_pods
        assert milli <= most_milli


@pytest.mark.parametrize("policy", DETERMINISTIC)
def test_greedy_placement_comes_near_the_best_packing(policy: str) -> None:
    reached = sum(placed_milli(case, policy)[1] for case in CASES)
    assert reached >= 0.7 * sum(most_milli for _, most_milli in bounds())


@pytest.mark.parametrize("policy", POLICIES)
def test_where_everything_fits_whatever_the_order_everything_is_placed(policy: str) -> None:
    """As many nodes as pods, each large enough for any of them."""
    for seed in range(5):
        crowd = instance(seed, pods=12)
        roomy = tuple(node(f"n{index}").cpu(8).gpus(2).model("B") for index in range(12))
        assert placed_milli(Instance(roomy, crowd.asks), policy)[0] == 12


@pytest.mark.parametrize("policy", DETERMINISTIC)
def test_pods_that_fill_the_fleet_exactly_all_find_their_place(policy: str) -> None:
    roomy = tuple(node(f"n{index}").cpu(32).gpus(8) for index in range(3))
    wanted = (*[ask().cpu(16).gpus(4)] * 2, *[ask().cpu(4).gpus(1)] * 16)
    assert placed_milli(Instance(roomy, wanted), policy)[0] == 18


def test_the_solver_itself_finds_the_packing_a_person_would() -> None:
    """Three shares of 500 and a whole GPU on two devices: the whole one and two shares, or all three shares."""
    case = Instance((node("n").gpus(2),), (*[ask().share(500)] * 3, ask().gpus(1)))
    assert (optimum(case, count_pods=True), optimum(case, count_pods=False)) == (3, 2000)
