"""F and the typical pods, as the paper defines them, against a rewrite in plain Python; and its running sum."""

from __future__ import annotations

import random

import numpy as np
import pytest

from build.nodes import node
from build.paper import State, fragmentation, typical_pods
from build.pods import ask
from build.scenario import Scenario
from shoal.engine.fragmentation import Fragmentation, FragmentationColumn
from shoal.engine.pod_mix import PodClass, PodMix

PODS = [
    *[PodClass(4_000, 0, 0)] * 13,
    *[PodClass(2_000, 250, 1)] * 11,
    *[PodClass(6_000, 460, 1)] * 11,
    *[PodClass(8_000, 1000, 1)] * 30,
    *[PodClass(8_000, 1000, 1, "A|B|B")] * 3,
    *[PodClass(8_000, 1000, 1, "A|B")] * 3,
    *[PodClass(64_000, 1000, 8)] * 9,
    PodClass(1_000, 10, 1),
    PodClass(1_000, 20, 1),
    PodClass(1_000, 30, 1, "C"),
]


def test_typical_pods_are_the_commonest_that_make_up_the_share_with_the_published_weights() -> None:
    for share in (0.5, 0.9, 0.95, 1.0):
        assert list(PodMix.of(PODS).popular(share)) == typical_pods(PODS, share)


def test_the_class_that_crosses_the_line_is_in() -> None:
    pods = [PodClass(1, 1000, 1)] * 9 + [PodClass(2, 1000, 1)]
    assert [pod.cpu_milli for pod, _ in PodMix.of(pods).popular(0.9)] == [1]
    assert [pod.cpu_milli for pod, _ in PodMix.of(pods).popular(0.91)] == [1, 2]


def test_equally_common_classes_come_in_descending_order() -> None:
    pods = [PodClass(1, 500, 1), PodClass(2, 500, 1), PodClass(2, 500, 1, "B"), PodClass(2, 600, 1)]
    assert [pod for pod, _ in PodMix.of(pods).popular(1.0)] == [
        PodClass(2, 600, 1),
        PodClass(2, 500, 1, "B"),
        PodClass(2, 500, 1),
        PodClass(1, 500, 1),
    ]


HAND_COMPUTED = {
    "all of it is lost to a class without GPUs": (State(9, (1000, 500)), PodClass(1, 0, 0), 1500),
    "all of it is lost to a class of another model": (State(9, (1000,), "A"), PodClass(1, 1000, 1, "B"), 1000),
    "all of it is lost when CPU is short": (State(0, (1000,)), PodClass(1, 1000, 1), 1000),
    "all of it is lost when devices are too few": (State(9, (1000, 900)), PodClass(1, 1000, 2), 1900),
    "only small pieces are lost to a class that fits": (State(9, (1000, 200, 700)), PodClass(1, 500, 1), 200),
    "nothing is lost when every piece serves": (State(9, (1000, 600)), PodClass(1, 500, 1), 0),
    "a model written twice is one model": (State(9, (1000,), "B"), PodClass(1, 1000, 1, "A|B|B"), 0),
}


@pytest.mark.parametrize(("state", "pod", "lost"), HAND_COMPUTED.values(), ids=HAND_COMPUTED)
def test_what_one_class_cannot_use(state: State, pod: PodClass, lost: int) -> None:
    assert fragmentation(state, [(pod, 1.0)]) == lost
    there = node("n").cpu(0).resource("cpu", state.cpu).gpus(len(state.pieces)).model(state.model)
    world = Scenario(there)
    for device, left in enumerate(state.pieces):
        if left < 1000:
            world.bind(f"p{device}", ask().share(1000 - left), "n", devices=(device,))
    assert Fragmentation(world.cluster, ((pod, 1.0),)).of_rows(np.array([0])).tolist() == [lost]


@pytest.mark.parametrize("share", [0.8, 1.0])
def test_any_state_has_the_published_value_to_the_last_bit(share: float) -> None:
    random_ = random.Random(5)
    typical = typical_pods(PODS, share)
    world = Scenario()
    states = []
    for index in range(400):
        pieces = tuple(random_.choice([0, 1000, 1000, random_.randrange(1001)]) for _ in range(random_.randrange(9)))
        state = State(random_.choice([0, 999, 1000, 4000, 7999, 8000, 96_000]), pieces, random_.choice(["", "A", "C"]))
        states.append(state)
        name = f"n{index}"
        world.see(node(name).resource("cpu", state.cpu).gpus(len(pieces)).model(state.model))
        for device, left in enumerate(pieces):
            if left < 1000:
                world.bind(f"{name}/{device}", ask().share(1000 - left), name, devices=(device,))
    expected = [fragmentation(state, typical) for state in states]
    measure = Fragmentation(world.cluster, tuple(typical))
    rows = world.cluster.all_rows()
    assert measure.of_rows(rows).tolist() == expected
    assert measure.of_rows(rows).tolist() == expected, "remembered states give the same"
    assert [measure.of_rows(rows[i : i + 1]).tolist()[0] for i in range(50)] == expected[:50]


def test_the_sum_over_the_fleet_follows_every_change() -> None:
    random_ = random.Random(7)
    world = Scenario(policy="BestFit")
    measure = Fragmentation(world.cluster, PodMix.of(PODS).popular(0.95))
    column = FragmentationColumn(world.cluster, measure)
    column.refresh()
    assert column.total == 0.0
    for step in range(300):
        match random_.randrange(6):
            case 0:
                world.see(node(f"n{random_.randrange(90)}").cpu(96).gpus(random_.choice([1, 4, 8, 16])).model("A"))
            case 1:
                world.lose(f"n{random_.randrange(90)}")
            case 2:
                world.go(f"p{random_.randrange(step + 1)}")
            case _:
                world.arrive(f"p{step}", random_.choice([ask().cpu(2).share(250), ask().cpu(8).gpus(1), ask().cpu(4)]))
                world.round()
        column.refresh()
        fresh = FragmentationColumn(world.cluster, measure)
        fresh.refresh()
        assert column.values.tolist() == fresh.values.tolist()
        assert column.total == pytest.approx(fresh.total, abs=1e-6)


def test_without_typical_pods_nothing_is_fragmented() -> None:
    world = Scenario(node("n").gpus(2), policy="FGD", mix=PodMix())
    assert world.arrive("p", ask().gpus(1)).round().placed
