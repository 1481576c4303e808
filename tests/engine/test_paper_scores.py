"""The paper's five scores, to the digit, against a rewrite that looks at one node at a time."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from build.nodes import NodeBuilder, node
from build.paper import PLAIN_SCORES, State, best_fit_device, fgd, fits, kind_of_pod, typical_pods
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.cluster import RANK_BITS
from shoal.engine.pod_mix import PodClass, PodMix

CLASSES = [
    PodClass(4_000, 0, 0),
    PodClass(32_000, 0, 0),
    PodClass(2_000, 250, 1),
    PodClass(6_000, 460, 1),
    PodClass(8_000, 810, 1),
    PodClass(8_000, 1000, 1),
    PodClass(11_900, 1000, 1, "V100M16|V100M32|V100M32"),
    PodClass(16_000, 1000, 2),
    PodClass(32_000, 1000, 4, "V100M32|V100M16"),
    PodClass(64_000, 1000, 8),
]
PODS = [pod for weight, pod in enumerate(CLASSES, start=1) for _ in range(weight)]
MODELS = ["T4", "G2", "V100M16", "V100M32"]


def ask_for(pod: PodClass) -> AskBuilder:
    wanted = ask().resource("cpu", pod.cpu_milli)
    if pod.gpus == 0:
        return wanted
    wanted = wanted.share(pod.gpu_milli) if pod.gpus == 1 and pod.gpu_milli < 1000 else wanted.gpus(pod.gpus)
    return wanted.model(*pod.model_set) if pod.models else wanted


class Crowd:
    """Nodes filled at random, known both to the engine and as plain states."""

    def __init__(self, policy: str, seed: int) -> None:
        random_ = random.Random(seed)
        self.world = Scenario(policy=policy, mix=PodMix.of(PODS))
        self.states: dict[str, State] = {}
        for index in range(60):
            there = node(f"n{index}").cpu(random_.choice([8, 32, 96, 128])).gpus(random_.choice([0, 1, 2, 4, 8]))
            self._fill(there.model(random_.choice(MODELS)), random_)

    def devices_on(self, names: Iterable[str], pod: PodClass) -> dict[str, tuple[int, ...]]:
        """The devices that the policy would take on each of the nodes."""
        cluster, wanted = self.world.cluster, ask_for(pod).made()
        choose = self.world.placement.profile.devices
        grants = {name: choose.grant(cluster, wanted, cluster.row_of[name], 0) for name in names}
        return {name: () if grant is None else grant.devices for name, grant in grants.items()}

    def _fill(self, there: NodeBuilder, random_: random.Random) -> None:
        self.world.see(there)
        state = State(there.allocatable["cpu"], (1000,) * there.gpu_count, there.gpu_model)
        for index in range(random_.randrange(12)):
            pod = random_.choice(CLASSES)
            if not fits(state, pod):
                continue
            devices = best_fit_device(state, pod) if pod.gpus else ()
            kinds = state.kinds | {kind_of_pod(pod)} if pod.gpus else state.kinds
            left = state.after(pod, devices)
            state = State(left.cpu, left.pieces, left.model, kinds)
            self.world.bind(f"{there.name}/{index}", ask_for(pod), there.name, devices=devices or None)
        self.states[there.name] = state


@pytest.mark.parametrize("policy", PLAIN_SCORES)
@pytest.mark.parametrize("pod", CLASSES, ids=str)
def test_the_node_is_the_best_by_the_published_score_and_the_device_the_best_fit(policy: str, pod: PodClass) -> None:
    score = PLAIN_SCORES[policy]
    for seed in range(3):
        crowd = Crowd(policy, seed)
        scores = {name: score(state, pod) for name, state in crowd.states.items() if fits(state, pod)}
        shape = crowd.world.shape(ask_for(pod))
        assert crowd.world.fitting(ask_for(pod)) == set(scores)
        if not scores:
            continue
        points = {name: int(shape.keys()[crowd.world.cluster.row_of[name]]) >> RANK_BITS for name in scores}
        assert points == scores
        best = max(scores, key=lambda name: (scores[name], -crowd.world.cluster.rank[crowd.world.cluster.row_of[name]]))
        devices = {name: best_fit_device(crowd.states[name], pod) if pod.gpus else () for name in scores}
        assert crowd.world.choice(ask_for(pod)) == (best, devices[best])
        assert crowd.devices_on(scores, pod) == devices


@pytest.mark.parametrize("pod", CLASSES, ids=str)
def test_the_fragmentation_gradient_and_its_device_are_the_published_ones(pod: PodClass) -> None:
    typical = typical_pods(PODS)
    for seed in range(3):
        crowd = Crowd("FGD", seed)
        scores = {name: fgd(state, pod, typical) for name, state in crowd.states.items() if fits(state, pod)}
        shape = crowd.world.shape(ask_for(pod))
        row_of = crowd.world.cluster.row_of
        assert {name: int(shape.keys()[row_of[name]]) >> RANK_BITS for name in scores} == {
            name: points for name, (points, _) in scores.items()
        }
        if scores:
            best = max(scores, key=lambda name: (scores[name][0], -row_of[name]))
            devices = {name: chosen for name, (_, chosen) in scores.items()}
            assert crowd.world.choice(ask_for(pod)) == (best, devices[best])
            assert crowd.devices_on(scores, pod) == devices


HAND_COMPUTED = {
    "DotProd: an empty 8-GPU node and half of it asked": (
        "DotProd",
        State(128_000, (1000,) * 8),
        PodClass(64_000, 1000, 4),
        50,
    ),
    "DotProd: a full node and nothing asked": ("DotProd", State(0, ()), PodClass(0, 0, 0), 100),
    "BestFit: nothing is left": ("BestFit", State(64_000, (1000,) * 4), PodClass(64_000, 1000, 4), 100),
    "BestFit: half of everything is left": ("BestFit", State(128_000, (1000,) * 8), PodClass(64_000, 1000, 4), 50),
    "GpuClustering: a node without GPU pods": ("GpuClustering", State(1, (1000,) * 8), PodClass(1, 1000, 1), 25),
    "GpuClustering: own kind alone": (
        "GpuClustering",
        State(1, (0, *(1000,) * 7), kinds=frozenset({1})),
        PodClass(1, 1000, 1),
        78,
    ),
    "GpuClustering: own kind among others": (
        "GpuClustering",
        State(1, (0, 0, *(1000,) * 6), kinds=frozenset({1, "share"})),
        PodClass(1, 1000, 1),
        56,
    ),
    "GpuClustering: other kinds only": (
        "GpuClustering",
        State(1, (0, *(1000,) * 7), kinds=frozenset({"share"})),
        PodClass(1, 1000, 1),
        3,
    ),
    "GpuClustering: a pod without GPUs": ("GpuClustering", State(1, (1000,)), PodClass(1, 0, 0), 0),
    "GpuPacking: an idle node of two": ("GpuPacking", State(1, (1000, 1000)), PodClass(1, 1000, 1), 31),
    "GpuPacking: an idle node of 20": ("GpuPacking", State(1, (1000,) * 20), PodClass(1, 1000, 1), 20),
    "GpuPacking: two empty devices are opened": ("GpuPacking", State(1, (0, 1000, 1000)), PodClass(1, 1000, 2), 48),
    "GpuPacking: a device in use takes the share": ("GpuPacking", State(1, (300, 1000)), PodClass(1, 300, 1), 97),
}


@pytest.mark.parametrize(("policy", "state", "pod", "points"), HAND_COMPUTED.values(), ids=HAND_COMPUTED)
def test_the_rewrite_itself_agrees_with_sums_done_by_hand(
    policy: str, state: State, pod: PodClass, points: int
) -> None:
    assert PLAIN_SCORES[policy](state, pod) == points


def test_more_than_eight_gpus_cost_packing_nothing_extra_below_its_floor() -> None:
    """max(50 - opened, 33): the floor is reached at 17 opened devices."""
    world = Scenario(node("n").gpus(24), policy="GpuPacking").bind("x", ask().share(10), "n")
    for count in (1, 16, 17, 20):
        key = int(world.shape(ask().gpus(count)).keys()[0]) >> RANK_BITS
        assert key == max(50 - count, 33)


def test_ties_go_to_the_lowest_rank_wherever_the_node_stands() -> None:
    nodes = [node(f"n{index}").gpus(4).rank(rank) for index, rank in enumerate([7, 3, 9, 1, 5])]
    world = Scenario(*nodes, policy="GpuPacking")
    assert world.choice(ask().cpu(1)) == ("n3", ())
    world.see(nodes[2].rank(0))
    assert world.choice(ask().cpu(1)) == ("n2", ())
