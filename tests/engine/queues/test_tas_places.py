"""Where pods go, case by case: the rules that people know by name."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.tas import ANYWHERE, BLOCK, HOST, LEVELS, RACK, TasWorld, host, hosts, pods, preferred, required, spelt
from shoal.api.node_affinity import NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from shoal.api.requirement import Requirement
from shoal.api.taints import Taint, Toleration
from shoal.engine.queues.facts import PodSet
from shoal.engine.queues.tas.levels_request import BALANCED, BEST_FIT, LAYERS, LIKING
from shoal.engine.queues.tas.place import Request, place
from shoal.engine.queues.tas.refusals import TopologyRefusal
from shoal.engine.queues.topology_facts import SliceLayer, TopologyAssignment, TopologyRequest
from shoal.engine.queues.workloads import Total


@dataclass(frozen=True)
class Case:
    hosts: list[str]
    wants: PodSet
    goes: str
    levels: tuple[str, ...] = LEVELS
    gates: tuple[str, ...] = field(default=())


RACKS_OF_HOSTS = ["b1-r1-x1=1", "b1-r1-x2=1", "b1-r2-x3=2", "b1-r3-x4=1", "b1-r3-x5=3", "b2-r4-x6=4"]
ODD_HOSTS = ["b-r-x6=6", "b-r-x5=5", "b-r-x4=4", "b-r-x3=3", "b-r-x2=2"]
IN_HOSTS = {"slice_level": HOST, "slice_size": 2}
SPREAD = Case(["b-r1-x1=1", "b-r1-x2=3", "b-r2-x3=2"], pods(5), "")

CASES = {
    "the smallest host that holds all": Case(RACKS_OF_HOSTS, pods(2, topology=required(HOST)), "x3=2"),
    "of equal hosts the first by name": Case(["b-r-x9=2", "b-r-x1=2"], pods(2, topology=required(HOST)), "x1=2"),
    "equal hosts in other racks: the rack's name counts before the host's": Case(
        ["b-r2-x1=1", "b-r1-x9=1"], pods(1, topology=required(HOST)), "x9=1"
    ),
    "a required rack: the tightest, and in it as few hosts as possible": Case(
        RACKS_OF_HOSTS, pods(3, topology=required(RACK)), "x5=3"
    ),
    "a preferred host that does not hold all: its rack, largest host first": Case(
        [*RACKS_OF_HOSTS, "b2-r4-x7=1"], pods(5, topology=preferred(HOST)), "x6=4 x7=1"
    ),
    "a preferred rack, no block holds all: over blocks": Case(
        ["b1-r1-x1=2", "b2-r2-x2=1", "b3-r3-x3=4"], pods(5, topology=preferred(RACK)), "x2=1 x3=4"
    ),
    "racks before hosts: one rack of small hosts beats two racks of large ones": Case(
        ["b-r1-x1=2", "b-r2-x2=2", "b-r3-x3=1", "b-r3-x4=1", "b-r3-x5=1", "b-r3-x6=1"],
        pods(4, topology=required(BLOCK)),
        "x3=1 x4=1 x5=1 x6=1",
    ),
    "anywhere: the smallest host that holds all": Case(RACKS_OF_HOSTS, pods(3, topology=ANYWHERE), "x5=3"),
    "anywhere, no host holds all: smallest first": Case(SPREAD.hosts, pods(5, topology=ANYWHERE), "x1=1 x2=2 x3=2"),
    "nobody asked: as anywhere": Case(SPREAD.hosts, pods(5), "x1=1 x2=2 x3=2"),
    "anywhere skips hosts that are full": Case(
        ["b-r-x1=0", "b-r-x2=1", "b-r-x3=1"], pods(2, topology=ANYWHERE), "x2=1 x3=1"
    ),
    "anywhere by best fit where that is switched on": Case(
        SPREAD.hosts, pods(5, topology=ANYWHERE), "x2=3 x3=2", gates=(BEST_FIT,)
    ),
    "largest hosts first, the last one tight": Case(
        ["b-r-a=3", "b-r-b=3", "b-r-c=2", "b-r-d=1"], pods(7, topology=required(RACK)), "a=3 b=3 d=1"
    ),
    "slices in hosts: most slices first, then fewest pods to spare": Case(
        ODD_HOSTS, pods(12, topology=required(BLOCK, **IN_HOSTS)), "x2=2 x4=4 x6=6"
    ),
    "slices alone: smallest hosts first, then fewest pods to spare": Case(
        ODD_HOSTS, pods(10, topology=TopologyRequest(slice_level=HOST, slice_size=2)), "x2=2 x3=2 x4=4 x5=2"
    ),
    "slices alone look for one of the widest domains": Case(
        ["b1-r1-x1=2", "b2-r2-x2=2", "b2-r2-x3=2"],
        pods(4, topology=TopologyRequest(slice_level=HOST, slice_size=2)),
        "x2=2 x3=2",
    ),
    "pods that make no whole slice get no place": Case(
        ODD_HOSTS, pods(10, topology=required(BLOCK, slice_level=HOST, slice_size=4)), "x4=4 x5=4"
    ),
    "below the slices' level the smallest host comes first": Case(
        ["b-r1-x1=1", "b-r1-x2=4", "b-r2-x3=3", "b-r2-x4=4"],
        pods(8, topology=required(BLOCK, slice_level=RACK, slice_size=4)),
        "x1=1 x2=3 x3=3 x4=1",
    ),
    "layers do not count where they are switched off": Case(
        ["b-r1-x1=3", "b-r1-x2=3", "b-r1-x3=2"],
        pods(8, topology=required(BLOCK, layers=(SliceLayer(RACK, 8), SliceLayer(HOST, 2)))),
        "x1=3 x2=3 x3=2",
        gates=(f"-{LAYERS}",),
    ),
    "slices within slices, without any gate set": Case(
        ["b-r1-x1=3", "b-r1-x2=3", "b-r1-x3=4"],
        pods(8, topology=required(BLOCK, layers=(SliceLayer(RACK, 8), SliceLayer(HOST, 2)))),
        "x1=2 x2=2 x3=4",
    ),
    "a topology that ends above hosts names all its levels": Case(
        ["b1-r1-x1=1", "b1-r2-x2=2", "b1-r2-x3=1"], pods(4, topology=required(BLOCK)), "b1/r1=1 b1/r2=3", (BLOCK, RACK)
    ),
    "balanced: even where there is room to be": Case(
        ["b-r1-x1=15", "b-r1-x2=13", "b-r1-x3=10"], pods(23, topology=preferred(RACK)), "x1=12 x2=11", gates=(BALANCED,)
    ),
    "balanced: over racks of one block": Case(
        ["b-r1-x1=15", "b-r2-x2=15"], pods(25, topology=preferred(RACK)), "x1=13 x2=12", gates=(BALANCED,)
    ),
    "balanced: the rack in which every host gets most": Case(
        ["b-r1-x1=20", "b-r1-x2=10", "b-r2-x3=15", "b-r2-x4=15"],
        pods(22, topology=preferred(RACK, balanced=True)),
        "x3=11 x4=11",
    ),
    "balanced: one host if one will do": Case(
        ["b-r1-x1=20", "b-r1-x2=10", "b-r2-x3=15", "b-r2-x4=15"], pods(20, topology=preferred(RACK)), "x1=20",
        gates=(BALANCED,),
    ),
    "balanced: of equal racks the more even one": Case(
        ["b-r1-x1=10", "b-r1-x2=5", "b-r2-x3=5", "b-r2-x4=5", "b-r2-x5=5"], pods(15, topology=preferred(RACK)),
        "x3=5 x4=5 x5=5", gates=(BALANCED,),
    ),
    "balanced: the block in which one rack is enough": Case(
        ["b1-r1-x1=15", "b1-r2-x2=15", "b2-r3-x3=15", "b2-r3-x4=15"], pods(25, topology=preferred(RACK)),
        "x3=13 x4=12", gates=(BALANCED,),
    ),
    "balanced: whole slices": Case(
        ["b-r1-x1=15", "b-r2-x2=15", "b-r3-x3=15", "b-r3-x4=15"],
        pods(25, topology=preferred(RACK, slice_level=HOST, slice_size=5)), "x3=15 x4=10", gates=(BALANCED,),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pods_go_to(name: str) -> None:
    case = CASES[name]
    assert TasWorld(hosts(*case.hosts), case.levels, *case.gates).places(case.wants) == case.goes


def test_later_pod_sets_see_the_pods_of_earlier_ones() -> None:
    world = TasWorld(hosts("b-r-x1=8", "b-r-x2=8"))
    found = world.place(pods(1, "launcher", required(HOST)), pods(15, "worker", preferred(HOST)))
    assert found == {"launcher": "x1=1", "worker": "x1=7 x2=8"}


def test_a_pod_takes_a_slot_of_its_node() -> None:
    world = TasWorld([host("b-r-x1", 9, pods=2)])
    refused = world.refuses(pods(2, "one", required(HOST)), pods(1, "two", required(HOST)))
    assert (refused.pod_set, refused.excluded) == ("two", {'resource "pods"': 1})
    assert list(refused.placed) == ["one"]


def test_a_pod_set_without_pods_needs_no_place() -> None:
    assert TasWorld(hosts("b-r-x1=1")).place(pods(1, "one"), pods(0, "none", required(HOST))) == {"one": "x1=1"}


@pytest.mark.parametrize("requirement", [TopologyRequest(), TopologyRequest(group="g"), TopologyRequest(slice_size=2)])
def test_a_request_that_names_no_level_is_anywhere_where_it_is_implied(requirement: TopologyRequest) -> None:
    world = TasWorld(hosts(*SPREAD.hosts))
    found = place(world.queues, [Request(Total.of(pods(5, topology=requirement), 5), "f", 5, implied=True)])
    assert not isinstance(found, TopologyRefusal)
    assert spelt(found["main"]) == "x1=1 x2=2 x3=2"
    assert world.refuses(pods(5, topology=requirement)).message == "topology level not specified"


def test_a_level_that_is_named_counts_whatever_is_implied() -> None:
    world = TasWorld(hosts(*SPREAD.hosts))
    wants = pods(4, topology=required(RACK))
    found = place(world.queues, [Request(Total.of(wants, 4), "f", 4, implied=True)])
    assert not isinstance(found, TopologyRefusal)
    assert spelt(found["main"]) == "x1=1 x2=3"


def test_as_if_nobody_used_anything() -> None:
    world = TasWorld(hosts("b-r-x1=1"))
    world.hold("ns/w", pods(1), "x1=1")
    world.refuses(pods(1))
    assert world.place(pods(1), empty=True) == {"main": "x1=1"}


TAINT = Taint("gpu", "NoSchedule", "present")
WEST = NodeSelectorTerm((Requirement("zone", "In", ("west",)),))


def test_taints_selectors_and_affinity_of_hosts_count() -> None:
    plain, tainted = host("b-r-x1", 1), msgspec.structs.replace(host("b-r-x2", 2), taints=(TAINT,))
    west = msgspec.structs.replace(host("b-r-x3", 3), labels={**host("b-r-x3", 3).labels, "zone": "west"})
    world = TasWorld([plain, tainted, west])
    wants = pods(1, topology=required(HOST))
    assert world.places(wants) == "x1=1"
    assert world.places(msgspec.structs.replace(wants, selector={"zone": "west"})) == "x3=1"
    assert world.places(msgspec.structs.replace(wants, affinity=NodeSelector((WEST,)))) == "x3=1"
    two = pods(2, topology=required(HOST))
    assert world.places(two) == "x3=2"
    assert world.places(msgspec.structs.replace(two, tolerations=(Toleration("gpu", "Exists"),))) == "x2=2"


def test_a_flavors_tolerations_are_its_pods_tolerations() -> None:
    world = TasWorld([msgspec.structs.replace(host("b-r-x1", 1), taints=(TAINT,))])
    world.refuses(pods(1))
    world.flavor("f", tolerations=(Toleration("gpu", "Exists"),))
    assert world.places(pods(1)) == "x1=1"


def test_above_hosts_nothing_is_asked_of_nodes() -> None:
    world = TasWorld([msgspec.structs.replace(host("b-r-x1", 1), taints=(TAINT,))], (BLOCK, RACK))
    assert world.places(pods(1, topology=required(RACK))) == "b/r=1"


@pytest.mark.parametrize(("gates", "goes"), [((), "x1=1"), ((LIKING,), "x2=1")])
def test_liked_hosts_come_first_where_that_is_switched_on(gates: tuple[str, ...], goes: str) -> None:
    liked = msgspec.structs.replace(host("b-r-x2", 4), labels={**host("b-r-x2", 4).labels, "zone": "west"})
    wants = msgspec.structs.replace(pods(1, topology=required(HOST)), preferred=(PreferredSchedulingTerm(10, WEST),))
    assert TasWorld([host("b-r-x1", 1), liked], LEVELS, *gates).places(wants) == goes


@given(pod_counts=st.lists(st.integers(0, 12), min_size=1, max_size=7), need=st.integers(1, 40))
@settings(deadline=None)
def test_balanced_pods_are_on_as_few_hosts_as_hold_them_and_none_gets_few(pod_counts: list[int], need: int) -> None:
    world = TasWorld(hosts(*(f"b-r-x{i}={room}" for i, room in enumerate(pod_counts))))
    found = world.place(pods(need, topology=preferred(RACK, balanced=True)))
    if sum(pod_counts) < need:
        assert isinstance(found, TopologyRefusal)
        return
    assert not isinstance(found, TopologyRefusal)
    shares = {int(host[1:]): int(count) for host, count in (part.split("=") for part in found["main"].split())}
    largest = sorted(pod_counts, reverse=True)
    fewest = next(count for count in range(1, len(pod_counts) + 1) if sum(largest[:count]) >= need)
    assert sum(shares.values()) == need
    assert all(count <= pod_counts[host] for host, count in shares.items())
    assert len(shares) == fewest
    assert min(shares.values()) >= min(largest[fewest - 1], need // fewest)


def test_pods_that_have_a_place_keep_it_when_more_come() -> None:
    world = TasWorld(hosts("b-r1-x1=1", "b-r2-x2=2", "b-r2-x3=3"))
    wants = pods(4, topology=required(RACK))
    world.hold("ns/old", pods(2), "x2=2")
    before = TopologyAssignment((HOST,), ((("x2",), 2),))
    for count, goes in ((4, "x2=2 x3=2"), (2, "x2=2"), (1, "x2=1")):
        found = place(world.queues, [Request(Total.of(wants, count), "f", count, before)])
        assert not isinstance(found, TopologyRefusal)
        assert spelt(found["main"]) == goes
    too_many = place(world.queues, [Request(Total.of(wants, 6), "f", 6, before)])
    assert isinstance(too_many, TopologyRefusal)
