"""Beside other schedulers: no order of their bindings, failures, changes of nodes and our bindings makes us bind more
to a node than it has, whichever devices the pods use.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from build.depth import examples
from build.nodes import NodeBuilder, node
from build.pods import ask
from build.scenario import Scenario
from shoal.devices.layout import Layout
from shoal.engine.device_demand import (
    Demand,
    GpuShare,
    GpuShares,
    MemoryShares,
    MigTiles,
    Replicas,
    VirtualGpus,
    WholeGpus,
)

MIB = 1_000
SLICES = 4
"""Memory slices of an A30."""

WHOLE: list[Demand] = [WholeGpus(1), WholeGpus(2), WholeGpus(3)]
PARTS: list[Demand] = [GpuShare(250), GpuShare(700), GpuShares(2, 400), MemoryShares(1, 334), MemoryShares(2, 600)]
VIRTUAL: list[Demand] = [VirtualGpus(1, mib=300, cores_percent=30), VirtualGpus(2, percent=40, cores_percent=50)]
TILES: list[Demand] = [MigTiles((("1g.6gb", 1),)), MigTiles((("2g.12gb", 1),)), MigTiles((("4g.24gb", 1),))]

KINDS: list[tuple[Layout, list[Demand]]] = [
    (Layout(), WHOLE),
    (Layout(memory_mib=MIB), [*WHOLE, *PARTS]),
    (Layout(memory_mib=MIB, slots=2), VIRTUAL),
    (Layout(replicas=4, sharing="time-slicing"), WHOLE),
    (Layout(replicas=3, sharing="mps", one_per_request=True), [WholeGpus(1)]),
    (Layout(replicas=4, sharing="time-slicing", renamed=True), [Replicas(1), Replicas(3)]),
    (Layout(mig="A30-24GB"), TILES),
]


@dataclass(frozen=True)
class Step:
    what: str
    number: int
    """Which demand, which pod, how many devices."""


steps = st.builds(
    Step,
    st.sampled_from(
        ["ours", "ours", "ours", "foreign", "foreign", "named", "leave", "end", "end", "reject", "devices"]
    ),
    st.integers(0, 11),
)


def asked(demand: Demand) -> dict[str, int]:
    """What a demand counts for, in amounts that add up over the devices of a node."""
    match demand:
        case WholeGpus(count) | Replicas(count):
            return {"units": count, "milli": 1000 * count}
        case GpuShare(milli):
            return {"milli": milli}
        case GpuShares(count, milli):
            return {"milli": count * milli}
        case MemoryShares(count, mib):
            return {"milli": count * mib * 1000 // MIB}
        case VirtualGpus(count, mib, percent, cores):
            memory = mib or MIB * percent // 100
            return {"slots": count, "milli": count * max(memory * 1000 // MIB, cores * 10)}
        case MigTiles(tiles):
            return {"slices": sum(count * int(profile[0]) for profile, count in tiles)}


def allocatable(there: NodeBuilder) -> dict[str, int]:
    layout, gpus = there.layout, there.gpu_count
    return {
        "units": gpus * layout.replicas,
        "milli": gpus * 1000 * layout.replicas,
        "slots": gpus * layout.slots,
        "slices": gpus * SLICES,
    }


def asked_in_all(world: Scenario) -> dict[str, int]:
    """Of the node, promises left out."""
    total: dict[str, int] = {}
    for holding in world.cluster.pods.values():
        assert holding.ask.devices is not None
        for name, amount in asked(holding.ask.devices).items() if not holding.is_nominated else ():
            total[name] = total.get(name, 0) + amount
    return total


def sized(layout: Layout, gpus: int) -> NodeBuilder:
    return node("n").gpus(gpus).laid_out(structs.replace(layout, mig_devices=tuple(range(gpus)) if layout.mig else ()))


@settings(max_examples=examples(70), deadline=None)
@given(st.sampled_from(KINDS), st.integers(1, 4), st.lists(steps, min_size=4, max_size=24))
def test_what_we_bind_to_a_node_never_exceeds_what_it_has(
    kind: tuple[Layout, list[Demand]], gpus: int, history: list[Step]
) -> None:
    layout, demands = kind
    there = sized(layout, gpus)
    world = Scenario(there)
    for index, step in enumerate(history):
        key = f"p{index}"
        demand = demands[step.number % len(demands)]
        held = sorted(world.cluster.pods)
        if step.what == "ours":
            world.arrive(key, ask().demand(demand))
            plan = world.round()
            if step.number % 2:
                world.confirm(plan)
            if plan.placed:
                total = asked_in_all(world)
                assert all(amount <= allocatable(there)[name] for name, amount in total.items()), total
            for refusal in plan.refused:
                world.go(refusal.pod)
        elif step.what == "foreign":
            world.bind(key, ask().demand(demand), "n")
        elif step.what == "named":
            world.held(key, ask().demand(demand), "n", tuple(range(step.number % 3 + 1)))
        elif step.what == "devices":
            there = sized(layout, step.number % 5)
            world.see(there)
        elif held and step.what == "end":
            world.go(held[step.number % len(held)])
        elif held and step.what == "leave":
            holding = world.cluster.pods[held[step.number % len(held)]]
            if holding.is_bound:
                world.bind(held[step.number % len(held)], holding.ask, "n", terminating=True)
        elif held:
            world.reject(held[step.number % len(held)])


@settings(max_examples=examples(30), deadline=None)
@given(st.sampled_from(KINDS), st.integers(1, 3), st.lists(steps, max_size=16))
def test_whatever_was_guessed_all_of_a_node_is_free_when_every_pod_has_gone(
    kind: tuple[Layout, list[Demand]], gpus: int, history: list[Step]
) -> None:
    layout, demands = kind
    there = sized(layout, gpus)
    world = Scenario(there)
    for index, step in enumerate(history):
        held = sorted(world.cluster.pods)
        if step.what == "end" and held:
            world.go(held[step.number % len(held)])
        elif step.what == "devices":
            there = sized(layout, step.number % 5)
            world.see(there)
        else:
            world.bind(f"p{index}", ask().demand(demands[step.number % len(demands)]), "n")
    for key in sorted(world.cluster.pods):
        world.go(key)
    row = world.cluster.row_of["n"]
    assert world.cluster.free[row].tolist() == world.cluster.total[row].tolist()
    assert not world.cluster.guessed
    assert not world.cluster.devices.overloaded
