"""Power: what nodes draw, what a placement adds to it, and what that is worth beside Shoal's own loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import Demand, DeviceGrant, GpuShare, WholeGpus, compute_grant
from shoal.engine.events import NodeFacts, NodeSeen, PodBound, PodGone
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.pod_mix import PodClass, PodMix
from shoal.engine.power import UNKNOWN_GPU, NodePower, Watts, watts_of
from shoal.engine.profile import POLICIES
from shoal.engine.scores.power import PowerPrice, PowerRise, PricedPower
from shoal.engine.scores.worth import LeastLoss
from shoal.engine.window import Window

MIX = PodMix.of([PodClass(1000, 500, 1), PodClass(1000, 500, 1), PodClass(8000, 1000, 2)])

MODELS = {
    "its own name": ("T4", Watts(10, 70)),
    "a product label": ("NVIDIA-A100-SXM4-80GB", Watts(50, 400)),
    "an older product label": ("Tesla-V100-SXM2-32GB", Watts(30, 300)),
    "a model whose name starts like another's": ("NVIDIA-A10G", Watts(30, 300)),
    "nobody's name": ("NVIDIA-Z9000", UNKNOWN_GPU),
    "no name": ("", UNKNOWN_GPU),
}


@pytest.mark.parametrize(("model", "watts"), MODELS.values(), ids=MODELS)
def test_watts_by_model(model: str, watts: Watts) -> None:
    assert watts_of(model) == watts


def test_a_table_of_the_fleets_own_comes_first() -> None:
    assert watts_of("T4", {"T4": Watts(1, 2)}) == Watts(1, 2)
    assert watts_of("P100", {"T4": Watts(1, 2)}) == UNKNOWN_GPU


def node(name: str = "n", cpu: int = 64000, gpus: int = 2, model: str = "T4") -> NodeFacts:
    return NodeFacts(name, {"cpu": cpu, "memory": 1 << 40, "pods": 100}, gpus=gpus, gpu_model=model)


def ask(cpu: int = 0, devices: Demand | None = None) -> Ask:
    return Ask(requests=(("cpu", cpu),) if cpu else (), devices=devices)


def fleet(*nodes: NodeFacts, pods: tuple[Ask, ...] = ()) -> Intake:
    """The pods are on the first node."""
    intake = Intake(Cluster())
    for each in nodes:
        intake.apply(NodeSeen(each))
    for number, pod in enumerate(pods):
        intake.apply(PodBound(f"p{number}", pod, nodes[0].name))
    return intake


# Two T4 (10 W idle, 70 W in use) and two sockets (15 W, 120 W).
DRAWN: dict[str, tuple[tuple[Ask, ...], int]] = {
    "an idle node draws its idle power": ((), 2 * 10 + 2 * 15),
    "one thread wakes a socket": ((ask(cpu=1),), 2 * 10 + 15 + 120),
    "sixteen cores of two threads are one socket": ((ask(cpu=32000),), 2 * 10 + 15 + 120),
    "and one thread more is two": ((ask(cpu=32001),), 2 * 10 + 120 + 120),
    "a sliver of a GPU draws as much as all of it": ((ask(devices=GpuShare(1)),), 10 + 70 + 2 * 15),
    "two shares on one GPU draw once": ((ask(devices=GpuShare(500)), ask(devices=GpuShare(500))), 10 + 70 + 2 * 15),
    "two whole GPUs draw twice": ((ask(devices=WholeGpus(2)),), 70 + 70 + 2 * 15),
    "an overcommitted node has no third socket": ((ask(cpu=90000),), 2 * 10 + 120 + 120),
}


@pytest.mark.parametrize(("pods", "watts"), DRAWN.values(), ids=DRAWN)
def test_drawn(pods: tuple[Ask, ...], watts: int) -> None:
    assert NodePower(fleet(node(), pods=pods).cluster).total() == watts


def test_the_fleet_draws_what_its_nodes_draw_and_a_node_without_gpus_only_its_sockets() -> None:
    assert NodePower(fleet(node("a"), node("b", gpus=0, model="")).cluster).total() == 50 + 30


pods = st.builds(
    ask,
    cpu=st.sampled_from((0, 1000, 20000, 33000)),
    devices=st.sampled_from((None, GpuShare(300), GpuShare(600), WholeGpus(1), WholeGpus(2))),
)


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(pods, max_size=5), pods)
def test_points_are_minus_the_least_rise_that_any_choice_of_device_gives(before: list[Ask], wanted: Ask) -> None:
    intake = fleet(node(gpus=3, cpu=256000), pods=tuple(before))
    cluster = intake.cluster
    rows = np.array([0])
    power = NodePower(cluster)
    drawn = power.total()
    rises = []
    for grant in some_grants(cluster.devices.free(0)[:3], wanted.devices):
        intake.apply(PodBound("trial", wanted, "n", grant))
        rises.append(power.total() - drawn)
        intake.apply(PodGone("trial"))
    rule = PowerRise(cluster).compiled(cluster, wanted)
    if rule is None:
        assert rises == [0]
    elif rises:
        assert rule(Window(cluster, rows)).tolist() == [-min(rises)]


def some_grants(free: list[int], demand: Demand | None) -> list[DeviceGrant | None]:
    """A grant of every kind of device that fits; which of equal devices are taken makes no difference."""
    match demand:
        case GpuShare(milli):
            return [compute_grant((device,), milli) for device, left in enumerate(free) if left >= milli]
        case WholeGpus(count):
            empty = [device for device, left in enumerate(free) if left == 1000]
            return [compute_grant(tuple(empty[:count]), 1000)] if len(empty) >= count else []
        case _:
            return [None]


def test_points_of_a_node_do_not_depend_on_the_others() -> None:
    few = fleet(node("a")).cluster
    many = fleet(node("a"), node("b", model="G3"), node("c", model="H100")).cluster
    wanted = ask(1000, WholeGpus(1))
    points = []
    for cluster in (few, many):
        rule = PowerRise(cluster).compiled(cluster, wanted)
        assert rule is not None
        points.append(rule(Window(cluster, np.array([0]))).tolist())
    assert points == [[-165], [-165]]


FREE = {"all of it": (0, 1.0), "half": (2, 1.0), "a quarter": (3, 0.5), "nothing": (4, 0.0)}


@pytest.mark.parametrize(("taken", "share"), FREE.values(), ids=FREE)
def test_the_price_of_a_watt_falls_once_half_of_the_fleet_is_taken(taken: int, share: float) -> None:
    pods = (ask(devices=WholeGpus(taken)),) if taken else ()
    cluster = fleet(node(gpus=4), pods=pods).cluster
    loss = LeastLoss(cluster, MIX)
    power = PricedPower(cluster, loss, PowerPrice(milli_per_watt=2.0))
    assert power.renewed() == loss.renewed()
    assert power.rise.units_per_watt == round(share * 2.0 * loss.tables.units_per_milli)


def test_a_fleet_without_gpus_has_no_price() -> None:
    cluster = fleet(node(gpus=0, model="")).cluster
    power = PricedPower(cluster, LeastLoss(cluster, MIX))
    power.renewed()
    assert power.rise.units_per_watt == 0


def chosen(policy: str, intake: Intake, wanted: Ask) -> str:
    cluster = intake.cluster
    placement = Placement(cluster, POLICIES[policy](cluster, MIX))
    placement.renew()
    chosen = placement.choose(cluster.charge(wanted), 0)
    assert chosen is not None
    return cluster.names[chosen[0]]


def test_the_frugal_model_is_preferred_where_all_else_is_equal() -> None:
    intake = fleet(node("hungry", model="V100"), node("frugal", model="T4"))
    assert chosen("Shoal", intake, ask(1000, WholeGpus(1))) == "hungry", "the first of equals"
    assert chosen("Shoal+Power", intake, ask(1000, WholeGpus(1))) == "frugal"


def test_keys_of_the_policy_equal_a_full_recomputation() -> None:
    intake = fleet(*(node(f"n{number}", model=("T4", "V100")[number % 2]) for number in range(40)))
    cluster = intake.cluster
    placement = Placement(cluster, POLICIES["Shoal+Power"](cluster, MIX))
    wanted = [ask(1000, GpuShare(300)), ask(20000, WholeGpus(1)), ask(9000)]
    for step in range(60):
        placement.renew()
        each = wanted[step % 3]
        chosen = placement.choose(cluster.charge(each), 0)
        assert chosen is not None
        intake.apply(PodBound(f"p{step}", each, cluster.names[chosen[0]], chosen[1]))
        kept = placement.shape(cluster.charge(each)).keys()
        placement.shape(cluster.charge(each)).invalidate()
        assert kept.tolist() == placement.shape(cluster.charge(each)).keys().tolist()
