"""Devices under every kind of ask: nothing is given twice, all comes back, and "fits" means that a set exists."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import ceil

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from build.depth import examples
from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from build.snapshot import facts_of
from shoal.devices.layout import Layout
from shoal.engine import facts
from shoal.engine.device_demand import (
    CORES,
    MEMORY,
    SLOTS,
    Demand,
    DeviceGrant,
    GpuShare,
    GpuShares,
    MemoryShares,
    MigTiles,
    Replicas,
    VirtualGpus,
    WholeGpus,
)
from shoal.engine.evidence import evidence
from shoal.engine.ledger import Ledger

MIB = 1_000

LAYOUTS = [
    Layout(),
    Layout(memory_mib=MIB),
    Layout(memory_mib=MIB, slots=2),
    Layout(memory_mib=MIB, replicas=3, sharing="time-slicing"),
    Layout(memory_mib=MIB, replicas=2, sharing="mps", one_per_request=True),
    Layout(replicas=4, sharing="time-slicing", renamed=True),
    Layout(memory_mib=MIB, islands=(0, 0, 1)),
]
CUT = Layout(mig="A30-24GB")

PLAIN: list[Demand] = [
    WholeGpus(1),
    WholeGpus(2),
    GpuShare(250),
    GpuShare(700),
    GpuShares(2, 400),
    MemoryShares(1, 333),
    MemoryShares(1, 334),
    MemoryShares(2, 600),
    VirtualGpus(1, mib=300, cores_percent=30),
    VirtualGpus(2, percent=40),
    VirtualGpus(1, mib=100, cores_percent=100),
    VirtualGpus(1, percent=100),
    Replicas(1),
    Replicas(3),
]
TILES: list[Demand] = [
    MigTiles((("1g.6gb", 1),)),
    MigTiles((("2g.12gb", 1),)),
    MigTiles((("1g.6gb", 2), ("2g.12gb", 1))),
    MigTiles((("4g.24gb", 1),)),
    MigTiles((("1g.6gb.me", 1),)),
]
DEMANDS = PLAIN + TILES


@st.composite
def machines(draw: st.DrawFn) -> NodeBuilder:
    count = draw(st.integers(1, 3))
    layout = draw(st.sampled_from([*LAYOUTS, CUT]))
    if layout.mig:
        layout = structs.replace(layout, mig_devices=tuple(range(draw(st.integers(0, count - 1)), count)))
    return node("n").gpus(count).laid_out(layout)


@dataclass(frozen=True)
class Step:
    """A pod comes and is placed if it fits, is put there regardless, or the n-th pod goes."""

    what: str
    demand: Demand
    number: int


steps = st.builds(
    Step, st.sampled_from(["come", "come", "come", "put", "go"]), st.sampled_from(DEMANDS), st.integers(0, 7)
)
own_steps = st.builds(
    Step, st.sampled_from(["come", "come", "come", "go"]), st.sampled_from(DEMANDS), st.integers(0, 7)
)


def live(world: Scenario, history: list[Step]) -> None:
    for index, step in enumerate(history):
        wanted = ask().demand(step.demand)
        if step.what == "come":
            world.arrive(f"p{index}", wanted)
            for refusal in world.round().refused:
                world.go(refusal.pod)
        elif step.what == "put":
            world.bind(f"p{index}", wanted, "n")
        elif world.cluster.pods:
            world.go(sorted(world.cluster.pods)[step.number % len(world.cluster.pods)])


@dataclass
class Device:
    """What single grants took, added up by hand."""

    compute: int = 0
    memory: int = 0
    cores: int = 0
    slots: int = 0

    def load(self, layout: Layout) -> int:
        """Thousandths of the device in use."""
        memory = ceil(1000 * self.memory / layout.memory_mib) if layout.memory_mib else 1000 * (self.memory > 0)
        replicas = layout.replicas if layout.is_replicated() else 0
        slots = ceil(1000 * self.slots / replicas) if replicas else min(self.slots, 1)
        return self.compute + max(memory, self.cores, slots)


def devices_of(world: Scenario, there: NodeBuilder) -> list[Device]:
    devices = [Device() for _ in range(there.gpu_count)]
    for holding in world.cluster.pods.values():
        for device, plane, amount in (holding.grant or DeviceGrant(())).parts:
            one = devices[device]
            one.compute += amount * (plane == 0)
            one.memory += amount * (plane == MEMORY)
            one.cores += amount * (plane == CORES)
            one.slots += amount * (plane == SLOTS)
    return devices


def hosts(device: Device, demand: Demand, layout: Layout) -> bool:
    """Whether one device takes one device's part of a demand."""
    left = 1000 - device.compute
    match demand:
        case WholeGpus():
            return device.load(layout) == 0
        case GpuShare(milli) | GpuShares(_, milli):
            return device.load(layout) + milli <= 1000
        case MemoryShares(_, mib):
            return layout.memory_mib > 0 and 1000 * (device.memory + mib) <= left * layout.memory_mib
        case VirtualGpus(_, mib, percent, cores):
            if layout.memory_mib == 0 or device.slots >= layout.slots:
                return False
            if layout.is_replicated() and 1000 * (device.slots + 1) > left * layout.replicas:
                return False
            wanted = mib or layout.memory_mib * percent // 100
            fits = 1000 * (device.memory + wanted) <= left * layout.memory_mib
            full = device.cores >= left if cores == 0 else device.cores + 10 * cores > left
            return fits and not full and (cores < 100 or device.load(layout) == 0)
        case _:
            raise AssertionError(demand)


def exists(world: Scenario, there: NodeBuilder, demand: Demand) -> bool:
    layout = there.layout
    devices = [device for index, device in enumerate(devices_of(world, there)) if index not in there.layout.mig_devices]
    if isinstance(demand, WholeGpus | Replicas) and (layout.is_replicated() or isinstance(demand, Replicas)):
        if layout.renamed is not isinstance(demand, Replicas) or (layout.one_per_request and demand.count > 1):
            return False
        free = [(1000 - d.compute) * layout.replicas // 1000 - d.slots for d in devices]
        return sum(max(left, 0) for left in free) >= demand.count
    count = 1 if isinstance(demand, GpuShare) else getattr(demand, "count", 0)
    sets = combinations(devices, count)
    return any(all(hosts(device, demand, layout) for device in some) for some in sets)


def is_overloaded(world: Scenario, there: NodeBuilder) -> bool:
    """Whether more is asked of some device than it has."""
    layout = there.layout
    usable = [index for index in range(there.gpu_count) if index not in layout.mig_devices]
    return any(
        device.load(layout) > 1000 * (index in usable) or (not layout.is_replicated() and device.slots > layout.slots)
        for index, device in enumerate(devices_of(world, there))
    )


few = settings(max_examples=examples(100), deadline=None)


@few
@given(machines(), st.lists(steps, max_size=14))
def test_an_ask_fits_exactly_when_devices_exist_that_host_it(there: NodeBuilder, history: list[Step]) -> None:
    world = Scenario(there)
    live(world, history)
    for demand in PLAIN:
        wanted = ask().demand(demand)
        fits = world.fitting(wanted) == {"n"}
        if is_overloaded(world, there):
            assert fits <= exists(world, there, demand), "what is missing on one device counts against the others"
        else:
            assert fits is exists(world, there, demand), demand
        assert (world.choice(wanted) is not None) is fits
    for demand in TILES:
        wanted = ask().demand(demand)
        grant = world.choice(wanted) if world.fitting(wanted) else None
        assert (grant is not None) is (world.fitting(wanted) == {"n"})


@few
@given(machines(), st.lists(own_steps, max_size=14))
def test_no_device_is_oversubscribed_by_our_own_placements(there: NodeBuilder, history: list[Step]) -> None:
    world = Scenario(there)
    live(world, history)
    for device in devices_of(world, there):
        assert device.load(there.layout) <= 1000
        assert not there.layout.memory_mib or device.memory <= there.layout.memory_mib
        assert device.slots <= (there.layout.replicas if there.layout.is_replicated() else there.layout.slots)
    slices: dict[tuple[int, int], str] = {}
    for key, holding in world.cluster.pods.items():
        for number, plane, amount in (holding.grant or DeviceGrant(())).parts:
            for bit in range(14) if plane > SLOTS else ():
                if amount >> 4 * bit & 15:
                    assert slices.setdefault((number, bit), key) == key, "a slice is given twice"


@few
@given(machines(), st.lists(steps, max_size=14))
def test_summaries_are_those_of_a_recount_and_nothing_is_left_when_all_have_gone(
    there: NodeBuilder, history: list[Step]
) -> None:
    world = Scenario(there)
    live(world, history)
    cluster = world.cluster
    row = cluster.row_of["n"]
    full = [0 if index in there.layout.mig_devices else 1000 for index in range(there.gpu_count)]
    left = [most - d.load(there.layout) for most, d in zip(full, devices_of(world, there), strict=True)]
    assert world.pieces("n") == left
    best = max([0, *left])
    if min(left) >= 0:
        assert cluster.free[row, facts.GPU_BEST] == best
    else:
        assert 0 <= cluster.free[row, facts.GPU_BEST] <= max(0, min(best, sum(left)))
    for key in sorted(cluster.pods):
        world.go(key)
    assert world.pieces("n") == full
    assert cluster.gpu_free_milli == sum(full)
    assert cluster.free[row].tolist() == cluster.total[row].tolist()
    assert not any(plane[: cluster.rows].any() for plane in cluster.devices.planes[1:])


@few
@given(machines(), st.lists(steps, max_size=10), st.lists(st.sampled_from(DEMANDS), max_size=6))
def test_a_trial_that_is_rolled_back_leaves_the_facts_as_they_were(
    there: NodeBuilder, history: list[Step], trial: list[Demand]
) -> None:
    world = Scenario(there)
    for index, demand in enumerate(trial):
        world.arrive(f"t{index}", ask().demand(demand))
        world.cluster.charge(ask().demand(demand).made())
    live(world, [step for step in history if step.what != "come"])
    cluster = world.cluster
    world.placement.renew()
    before = facts_of(cluster)
    ledger = Ledger(cluster)
    for key in world.waiting():
        chosen = world.placement.choose(cluster.pending[key].charge, 0)
        if chosen is not None:
            ledger.place(key, *chosen)
    for key in sorted(cluster.pods)[::2]:
        ledger.evict(key)
    ledger.rollback()
    assert facts_of(cluster) == before


@few
@given(machines(), st.lists(steps, max_size=14), machines())
def test_a_node_that_changes_its_devices_ends_where_it_would_have_begun(
    there: NodeBuilder, history: list[Step], later: NodeBuilder
) -> None:
    world = Scenario(there)
    live(world, history)
    world.see(later)
    for key in sorted(world.cluster.pods):
        world.go(key)
    fresh = Scenario(later)
    for demand in DEMANDS:
        for each in (world, fresh):
            each.cluster.charge(ask().demand(demand).made())
    names = sorted(world.cluster.resources.names.values())
    assert {name: world.free("n", name) for name in names} == {name: fresh.free("n", name) for name in names}
    assert world.pieces("n") == fresh.pieces("n")
    assert world.cluster.gpu_free_milli == fresh.cluster.gpu_free_milli


@few
@given(machines(), st.lists(steps, max_size=14))
def test_evidence_names_a_lack_where_and_only_where_an_ask_does_not_fit(
    there: NodeBuilder, history: list[Step]
) -> None:
    world = Scenario(there)
    live(world, history)
    for demand in DEMANDS:
        wanted: AskBuilder = ask().demand(demand)
        told = evidence(world.cluster, wanted.made())
        assert told.fitting == len(world.fitting(wanted))
        assert bool(told.shortfalls) is (told.fitting == 0)
        assert all(lack.free < lack.asked for lack in told.shortfalls), (demand, told.shortfalls)


@few
@given(machines(), st.lists(steps, max_size=14), st.sampled_from(DEMANDS))
def test_forced_grants_are_on_devices_that_are_there(there: NodeBuilder, history: list[Step], demand: Demand) -> None:
    world = Scenario(there)
    live(world, history)
    world.bind("there", ask().demand(demand), "n")
    assert all(device < there.gpu_count for device in world.devices_of("there"))
