"""GPUs that belong together: the best-connected set is taken, and what pod or kubelet insists on is kept."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.devices.closeness import closest
from shoal.devices.layout import NumaPolicy
from shoal.engine.device_demand import WholeGpus

FOURS = (0, 0, 0, 0, 1, 1, 1, 1)
PAIRS = (0, 0, 1, 1, 2, 2, 3, 3)
ALONE = tuple(range(8))

CHOSEN: dict[str, tuple[list[int], int, tuple[tuple[int, ...], ...], tuple[int, ...]]] = {
    "one island holds it": ([0, 1, 4, 5, 6], 3, (FOURS,), (4, 5, 6)),
    "the island with the fewest free that holds it": ([0, 1, 4, 5, 6], 2, (FOURS,), (0, 1)),
    "of equal islands the first": ([0, 1, 4, 5], 2, (FOURS,), (0, 1)),
    "across islands, as few as can be": ([0, 1, 2, 4, 5, 6, 7], 5, (FOURS,), (0, 4, 5, 6, 7)),
    "the last of several is the tightest": ([0, 1, 2, 3, 4, 6, 7], 5, (PAIRS,), (0, 1, 2, 3, 4)),
    "NUMA nodes decide inside an island": ([0, 1, 2, 4, 5], 2, ((0,) * 8, FOURS), (4, 5)),
    "one NUMA node when no island holds it": ([2, 3, 4, 5, 6, 7], 4, (ALONE, FOURS), (4, 5, 6, 7)),
    "islands decide inside that NUMA node": ([0, 1, 2, 3, 4, 6, 7], 3, (PAIRS, FOURS), (4, 6, 7)),
    "as few islands as can be when no NUMA node holds it either": ([0, 1, 2, 4, 5, 6], 4, (PAIRS, FOURS), (0, 1, 4, 5)),
    "unknown devices are no group": ([0, 1, 2], 2, ((-1, 0, 0),), (1, 2)),
    "nothing known, the lowest": ([2, 5, 7], 2, (), (2, 5)),
}


@pytest.mark.parametrize(("free", "count", "levels", "devices"), CHOSEN.values(), ids=CHOSEN)
def test_the_best_connected_set(
    free: list[int], count: int, levels: tuple[tuple[int, ...], ...], devices: tuple[int, ...]
) -> None:
    assert closest(free, count, levels) == devices


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
def test_as_few_islands_as_any_set_needs_and_of_single_ones_the_tightest(
    islands: list[int], data: st.DataObject
) -> None:
    free = data.draw(st.lists(st.sampled_from(range(len(islands))), min_size=1, unique=True).map(sorted))
    count = data.draw(st.integers(1, len(free)))
    chosen = closest(free, count, (islands,))
    used = {islands[device] for device in chosen}
    every = [{islands[device] for device in some} for some in combinations(free, count)]
    assert len(chosen) == count
    assert set(chosen) <= set(free)
    assert len(used) == min(len(some) for some in every)
    if len(used) == 1:
        size = {island: sum(islands[device] == island for device in free) for island in islands}
        assert size[used.pop()] == min(size[some.pop()] for some in every if len(some) == 1)


def strict(policy: NumaPolicy, cores_milli: tuple[int, ...] = ()) -> NodeBuilder:
    return node("n").gpus(8).numa(*FOURS, policy=policy, cores_milli=cores_milli)


ISLANDS = node("n").gpus(8).islands(*FOURS)

ADMITTED: dict[str, tuple[NodeBuilder, tuple[int, ...], WholeGpus, bool]] = {
    "five of four and four under single-numa-node": (strict("single-numa-node"), (), WholeGpus(5), False),
    "five of four and four under restricted": (strict("restricted"), (), WholeGpus(5), True),
    "five of four and four under best-effort": (strict("best-effort"), (), WholeGpus(5), True),
    "four under single-numa-node": (strict("single-numa-node"), (), WholeGpus(4), True),
    "four where each side has three": (strict("single-numa-node"), (0, 4), WholeGpus(4), False),
    "four where each side has three, restricted": (strict("restricted"), (0, 4), WholeGpus(4), False),
    "five where each side has three, restricted": (strict("restricted"), (0, 4), WholeGpus(5), True),
    "four where each side has three, best-effort": (strict("best-effort"), (0, 4), WholeGpus(4), True),
    "one always lies somewhere": (strict("single-numa-node"), (0, 1, 2, 4, 5, 6), WholeGpus(1), True),
    "more cores than a NUMA node has": (
        strict("single-numa-node", (8_000, 8_000)),
        (),
        WholeGpus(1, cores_milli=9_000),
        False,
    ),
    "cores that only one NUMA node has": (
        strict("single-numa-node", (8_000, 16_000)),
        (4, 5),
        WholeGpus(3, cores_milli=9_000),
        False,
    ),
    "cores and GPUs on that node": (
        strict("single-numa-node", (8_000, 16_000)),
        (0, 1),
        WholeGpus(3, cores_milli=9_000),
        True,
    ),
    "one NUMA node because the pod insists": (strict("none"), (0, 4), WholeGpus(4, numa=True), False),
    "a NUMA node nobody told": (node("n").gpus(8), (), WholeGpus(2, numa=True), False),
    "the kubelet's policy where nobody told NUMA nodes": (
        node("n").gpus(8).numa(policy="single-numa-node"),
        (),
        WholeGpus(5),
        True,
    ),
    "one island has four": (ISLANDS, (), WholeGpus(4, island=True), True),
    "no island has five": (ISLANDS, (), WholeGpus(5, island=True), False),
    "no island has four left": (ISLANDS, (0, 4), WholeGpus(4, island=True), False),
    "an island that nobody told": (node("n").gpus(8), (), WholeGpus(2, island=True), False),
    "one GPU is an island": (node("n").gpus(8), (), WholeGpus(1, island=True), True),
    "an island across NUMA nodes under single-numa-node": (
        strict("single-numa-node").islands(0, 0, 1, 1, 1, 1, 0, 0),
        (),
        WholeGpus(3, island=True),
        False,
    ),
    "two of that island on one side": (
        strict("single-numa-node").islands(0, 0, 1, 1, 1, 1, 0, 0),
        (),
        WholeGpus(2, island=True),
        True,
    ),
    "replicas of one NUMA node": (strict("single-numa-node").replicated(2), (), WholeGpus(8), True),
    "replicas of two": (strict("single-numa-node").replicated(2), (), WholeGpus(9), False),
}


@pytest.mark.parametrize(("there", "taken", "demand", "fits"), ADMITTED.values(), ids=ADMITTED)
def test_admitted(there: NodeBuilder, taken: tuple[int, ...], demand: WholeGpus, fits: bool) -> None:
    world = Scenario(there)
    for device in taken:
        world.bind(f"p{device}", ask().gpus(1), "n", devices=(device,))
    wanted = ask().demand(demand)
    assert (world.fitting(wanted) == {"n"}) is fits
    choice = world.choice(wanted)
    assert (choice is not None) is fits
    assert choice is None or not set(choice[1]) & set(taken)


def test_a_kubelet_that_becomes_strict_is_heeded_by_asks_seen_before() -> None:
    world = Scenario(strict("none"))
    wanted = ask().gpus(5)
    assert world.fitting(wanted) == {"n"}
    world.see(strict("single-numa-node"))
    assert world.fitting(wanted) == set()
    world.see(strict("none"))
    assert world.fitting(wanted) == {"n"}


POLICIES: list[NumaPolicy] = ["none", "best-effort", "restricted", "single-numa-node"]


@st.composite
def machines(draw: st.DrawFn) -> NodeBuilder:
    count = draw(st.integers(1, 6))
    label = st.lists(st.integers(-1, 2), min_size=count, max_size=count)
    islands = draw(st.one_of(st.just([]), label))
    numa = draw(st.one_of(st.just([]), label))
    cores = tuple(draw(st.lists(st.sampled_from([-1, 4_000, 8_000]), max_size=3)))
    made = node("n").gpus(count).numa(*numa, policy=draw(st.sampled_from(POLICIES)), cores_milli=cores)
    return made.islands(*islands)


demands = st.builds(WholeGpus, st.integers(1, 5), st.booleans(), st.booleans(), st.sampled_from([0, 0, 4_000, 6_000]))


@settings(max_examples=examples(160), deadline=None)
@given(machines(), demands, st.sets(st.integers(0, 5), max_size=4))
def test_an_ask_fits_exactly_when_some_set_of_devices_is_admitted(
    there: NodeBuilder, demand: WholeGpus, taken: set[int]
) -> None:
    world = Scenario(there)
    busy = sorted(device for device in taken if device < there.gpu_count)
    for device in busy:
        world.bind(f"p{device}", ask().gpus(1), "n", devices=(device,))
    free = [device for device in range(there.gpu_count) if device not in busy]
    admitted = [some for some in combinations(free, demand.count) if is_admitted(there, some, demand)]
    wanted: AskBuilder = ask().demand(demand)
    assert (world.fitting(wanted) == {"n"}) is bool(admitted)
    choice = world.choice(wanted)
    assert (choice is not None and choice[1] in admitted) or (choice is None and not admitted)


def is_admitted(there: NodeBuilder, some: tuple[int, ...], demand: WholeGpus) -> bool:
    """What pod and kubelet demand of one set of devices, said without any cleverness."""
    layout = there.layout
    if demand.island and demand.count > 1:
        islands = {layout.islands[device] if layout.islands else -1 for device in some}
        if len(islands) > 1 or -1 in islands:
            return False
    told = any(numa >= 0 for numa in layout.numa)
    pins = demand.cores_milli > 0 and told
    if demand.count == 1 and not pins:
        return True
    if not demand.numa and (layout.numa_policy not in ("restricted", "single-numa-node") or not told):
        return True
    nodes = {layout.numa[device] if told else -1 for device in some}
    if -1 in nodes:
        # Of a device that is nowhere nobody can say that it is in the right place.
        return not demand.numa and not any(numa >= 0 for numa in layout.numa)
    everywhere = sorted({numa for numa in layout.numa if numa >= 0})
    width = 1
    if not demand.numa and layout.numa_policy == "restricted":
        width = next(
            (
                k
                for k in range(1, len(everywhere) + 1)
                if any(
                    sum(numa in group for numa in layout.numa) >= demand.count for group in combinations(everywhere, k)
                )
            ),
            len(everywhere) + 1,
        )
    if len(nodes) > width:
        return False
    cores = layout.numa_cores_milli
    if width > 1:
        return True
    return all(numa >= len(cores) or cores[numa] < 0 or cores[numa] >= demand.cores_milli for numa in nodes)
