"""On an idle fleet no pod is placed on a dearer node than it needs, whatever the order, the nodes and the mix."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.data.gpu_prices import usd_of_gpu
from shoal.engine.pod_mix import PodMix, class_of

PRODUCTS = ("", "Tesla-T4", "NVIDIA-L4", "NVIDIA-A10", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "Fantasy-1")
GPUS = st.sampled_from([1, 2, 4, 8])
LITTLE = st.sampled_from([0.5, 1, 4, 12])
CORES = st.sampled_from([4, 16, 48, 96, 192])

cpu_pods = st.builds(lambda cores: ask().cpu(cores), LITTLE)
small_pods = st.one_of(
    st.builds(lambda cores, gpus: ask().cpu(cores).gpus(gpus), LITTLE, st.sampled_from([1, 2])),
    st.builds(lambda cores, milli: ask().cpu(cores).share(milli), LITTLE, st.integers(1, 999)),
)
pods = st.one_of(cpu_pods, small_pods)


@st.composite
def nodes(draw: st.DrawFn) -> list[NodeBuilder]:
    """A few nodes of each of some models, some of them tainted, in any order of rank."""
    made: list[NodeBuilder] = []
    for product in draw(st.lists(st.sampled_from(PRODUCTS), min_size=2, max_size=12)):
        one = node(f"n{len(made)}").cpu(draw(CORES))
        if product:
            one = one.gpus(draw(GPUS)).model(product)
        if draw(st.integers(0, 4)) == 0:
            one = one.taint("reserved")
        made.append(one)
    ranks = draw(st.permutations(range(len(made))))
    return [one.rank(rank) for one, rank in zip(made, ranks, strict=True)]


def usd(one: NodeBuilder) -> Decimal:
    return usd_of_gpu(one.gpu_model) if one.gpu_count else Decimal(0)


def mix_of(fleet: list[NodeBuilder], others: list[AskBuilder]) -> PodMix:
    """As many of the pods as request a third of the GPUs, so that the fleet stays idle."""
    left, known = sum(one.gpu_count for one in fleet) * 1000 // 3, []
    for other in others:
        left -= other.made().gpu_milli
        if left >= 0:
            known.append(class_of(other.made()))
    return PodMix.of(known)


@settings(max_examples=examples(60), deadline=None)
@given(fleet=nodes(), others=st.lists(pods, max_size=8), wanted=pods)
def test_an_idle_fleet_gives_a_pod_the_cheapest_node_that_fits(
    fleet: list[NodeBuilder], others: list[AskBuilder], wanted: AskBuilder
) -> None:
    world = Scenario(*fleet, mix=mix_of(fleet, others))
    by_name = {one.name: one for one in fleet}
    fitting = world.fitting(wanted)
    choice = world.choice(wanted)
    assert (choice is None) == (not fitting)
    if choice is not None:
        assert usd(by_name[choice[0]]) == min(usd(by_name[name]) for name in fitting)


@settings(max_examples=examples(40), deadline=None)
@given(fleet=nodes(), known=st.lists(pods, min_size=1, max_size=8), sequence=st.lists(pods, min_size=1, max_size=20))
def test_a_pod_without_gpus_takes_a_node_without_gpus_at_any_load(
    fleet: list[NodeBuilder], known: list[AskBuilder], sequence: list[AskBuilder]
) -> None:
    world = Scenario(*fleet, mix=PodMix.of(class_of(one.made()) for one in known))
    plain = {one.name for one in fleet if not one.gpu_count}
    for number, wanted in enumerate(sequence):
        fitting, choice = world.fitting(wanted), world.choice(wanted)
        if choice is None:
            continue
        if wanted.devices is None and fitting & plain:
            assert choice[0] in plain
        world.bind(f"p{number}", wanted, choice[0], devices=choice[1] or None)
