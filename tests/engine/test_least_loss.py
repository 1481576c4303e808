"""Shoal's own policy: its tables and its points against a slow rewrite in floats, and what it is for, in scenes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from build.nodes import node
from build.paper import State, best_fit_device, fits
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from build.worth import Valuation, piece_worths
from shoal.engine.pod_mix import PodClass, PodMix
from shoal.engine.profile import Profile
from shoal.engine.scores.worth import LeastLoss
from shoal.engine.worth.piece_worth import piece_worth

ROUNDING = 1.6
"""Steps: half of one to whole points, and what the grain of the balance table (about one step) makes."""

MIXES = {
    "one size": {50: 0.4},
    "two sizes": {81: 0.3, 19: 0.1},
    "whole devices and crumbs": {100: 0.5, 1: 0.01},
    "many sizes": {3: 0.1, 25: 0.2, 46: 0.2, 60: 0.05, 100: 0.3},
    "nobody": {},
}


@pytest.mark.parametrize("chances", MIXES.values(), ids=MIXES)
@pytest.mark.parametrize("visitors", [0, 1, 7, 60])
def test_a_piece_is_worth_what_a_patient_owner_would_sell_of_it(chances: dict[int, float], visitors: int) -> None:
    table = np.zeros((1, 101))
    for size, chance in chances.items():
        table[0, size] = chance
    assert piece_worth(table, visitors)[0].tolist() == pytest.approx(piece_worths(chances, visitors), abs=1e-6)


def test_owners_are_valued_one_by_one() -> None:
    table = np.zeros((3, 101))
    table[0, 50] = table[2, 50] = 0.5
    table[1, 30] = 0.5
    worth = piece_worth(table, 20)
    assert worth[0].tolist() == worth[2].tolist() != worth[1].tolist()
    assert worth[1].tolist() == pytest.approx(piece_worths({30: 0.5}, 20), abs=1e-6)


def test_worth_grows_with_the_piece_and_never_exceeds_it() -> None:
    table = np.zeros((1, 101))
    for size, chance in MIXES["many sizes"].items():
        table[0, size] = chance
    worth = piece_worth(table, 200)[0]
    assert (np.diff(worth) >= -1e-9).all()
    assert (worth <= 10.0 * np.arange(101) + 1e-9).all()


PODS = [
    *[PodClass(4_000, 0, 0)] * 13,
    *[PodClass(2_000, 250, 1)] * 11,
    *[PodClass(6_000, 460, 1)] * 11,
    *[PodClass(8_000, 810, 1)] * 5,
    *[PodClass(8_000, 1000, 1)] * 30,
    *[PodClass(8_000, 1000, 1, "A|B")] * 6,
    *[PodClass(24_000, 1000, 2, "B")] * 4,
    *[PodClass(64_000, 1000, 8)] * 9,
]
MIX = PodMix.of(PODS)
CLASSES = [pod for pod, _ in MIX.counts]


def ask_for(pod: PodClass) -> AskBuilder:
    wanted = ask().resource("cpu", pod.cpu_milli)
    if pod.gpus:
        wanted = wanted.share(pod.gpu_milli) if pod.gpu_milli < 1000 else wanted.gpus(pod.gpus)
    return wanted.model(*pod.model_set) if pod.models else wanted


def crowd(seed: int) -> tuple[Scenario, LeastLoss, dict[str, State]]:
    """Nodes filled at random before the policy looks at them for the first time."""
    random_ = random.Random(seed)
    rules: list[LeastLoss] = []

    def profile(cluster: object) -> Profile:
        rule = LeastLoss(cluster, MIX)  # type: ignore[arg-type]
        rules.append(rule)
        return Profile("mine", node_scores=((rule, 1),), devices=rule, epoch=rule.renewed)

    world = Scenario(policy=profile)
    states = {}
    for index in range(50):
        name, model = f"n{index}", random_.choice(["A", "B", "C"])
        state = State(random_.choice([32_000, 96_000, 128_000]), (1000,) * random_.choice([0, 1, 2, 4, 8]), model)
        world.see(node(name).resource("cpu", state.cpu).gpus(len(state.pieces)).model(model))
        for pod_index in range(random_.randrange(10)):
            pod = random_.choice(CLASSES)
            if fits(state, pod):
                devices = best_fit_device(state, pod) if pod.gpus else ()
                world.bind(f"{name}/{pod_index}", ask_for(pod), name, devices=devices or None)
                state = state.after(pod, devices)
        states[name] = state
    return world, rules[0], states


@pytest.mark.parametrize("seed", range(3))
def test_the_tables_hold_the_formula_to_a_twentieth_of_a_thousandth_of_a_gpu(seed: int) -> None:
    world, rule, states = crowd(seed)
    valuation = Valuation(MIX, list(states.values()))
    world.placement.renew()
    tables = rule.tables
    assert set(tables.models) == {"", "A", "B", "C"}
    for index, model in enumerate(tables.models):
        assert tables.price[index] == pytest.approx(valuation.price(model), abs=1e-9)
        piece = (tables.piece[index] / tables.units_per_milli).tolist()
        assert piece == pytest.approx(valuation.pieces(model), abs=0.05)
        for empty, units in enumerate(tables.block[index].tolist()):
            there = State(0, (1000,) * empty, model)
            assert units / tables.units_per_milli == pytest.approx(valuation.block(there), abs=0.05)


@pytest.mark.parametrize("pod", CLASSES, ids=str)
def test_points_are_the_worth_that_a_placement_keeps(pod: PodClass) -> None:
    for seed in range(3):
        world, rule, states = crowd(seed)
        valuation = Valuation(MIX, list(states.values()))
        world.placement.renew()
        points = world.points(rule, ask_for(pod))
        fitting = {name for name, state in states.items() if fits(state, pod)}
        assert world.fitting(ask_for(pod)) == fitting
        for name in fitting:
            assert points[name] == pytest.approx(valuation.best(states[name], pod), abs=ROUNDING), states[name]
        choice = world.choice(ask_for(pod))
        if choice is None:
            assert not fitting
            continue
        winner, devices = choice
        best = max(valuation.best(states[name], pod) for name in fitting)
        assert valuation.best(states[winner], pod) >= best - 2 * ROUNDING
        assert valuation.points(states[winner], pod, devices) == pytest.approx(
            valuation.best(states[winner], pod), abs=0.1
        ), "the device does not change the balance, so it is the best but for whole units"


def shoal(*nodes: object, pods: list[PodClass]) -> Scenario:
    return Scenario(*nodes, mix=PodMix.of(pods))  # type: ignore[arg-type]


def test_a_share_fills_a_gpu_in_use_before_it_opens_another() -> None:
    world = shoal(node("n").gpus(3), pods=[PodClass(1000, 500, 1), PodClass(1000, 1000, 2)])
    world.bind("old", ask().share(500), "n", devices=(1,))
    assert world.choice(ask().share(500)) == ("n", (1,))


def test_a_share_takes_the_gpu_where_what_is_left_is_of_use() -> None:
    """600 of a whole one leave 400, which somebody takes; of 700, which somebody fills, a useless 100 is left."""
    pods = [PodClass(1000, milli, 1) for milli in (300, 400, 600, 700)]
    world = shoal(node("n").gpus(2), pods=pods)
    world.bind("old", ask().share(300), "n", devices=(0,))
    assert world.choice(ask().share(600)) == ("n", (1,))


def test_single_gpus_are_taken_where_no_eight_are_broken_up() -> None:
    pods = [PodClass(1000, 1000, 8)] * 4 + [PodClass(1000, 1000, 1)] * 4
    world = shoal(node("eight").gpus(8), node("seven").gpus(8), pods=pods)
    world.bind("old", ask().gpus(1), "seven")
    assert world.choice(ask().gpus(1)) == ("seven", (1,))


def test_a_scarce_model_is_held_back_from_pods_that_could_run_anywhere() -> None:
    pods = [PodClass(1000, 1000, 1, "H")] * 5 + [PodClass(1000, 1000, 1)] * 5
    world = shoal(node("scarce").gpus(2).model("H"), node("common").gpus(2).model("T"), pods=pods)
    assert world.choice(ask().gpus(1)) == ("common", (0,))
    assert world.choice(ask().gpus(1).model("H")) == ("scarce", (0,))


def test_cores_beside_idle_gpus_are_left_to_pods_that_need_both() -> None:
    pods = [PodClass(8000, 1000, 1)] * 9 + [PodClass(8000, 0, 0)]
    world = shoal(node("gpu").cpu(16).gpus(2), node("cpu").cpu(16), pods=pods)
    assert world.choice(ask().cpu(8)) == ("cpu", ())


def test_devices_given_away_many_times_over_do_not_spoil_the_tables() -> None:
    world = Scenario(node("n").gpus(1), node("m").gpus(4), mix=MIX)
    for index in range(20):
        world.bind(f"p{index}", ask().gpus(1), "n")
        world.arrive(f"q{index}", ask().cpu(1))
        assert world.round().placed
    assert world.fitting(ask().gpus(4)) == {"m"}


def test_a_node_that_advertises_a_thousand_gpus_is_judged_like_any_other() -> None:
    world = Scenario(node("huge").gpus(1000).cpu(4000), node("usual").gpus(8)).arrive("a", ask().gpus(2).cpu(8))
    assert len(world.round().placed) == 1
