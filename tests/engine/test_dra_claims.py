"""Claims in the life of a cluster: who gets devices, who shares them, when they are free again."""

from __future__ import annotations

from msgspec import structs

from build.dra import asking, claim, device, full, option, own, pool, seen, shared, there_is, wants
from build.nodes import node
from build.pods import ask
from build.scenario import Scenario
from shoal.api.node_affinity import NodeSelector, NodeSelectorTerm
from shoal.api.requirement import Requirement
from shoal.api.slices import Reach
from shoal.engine.asks import Ask
from shoal.engine.dra.requests import ClaimRef, Request
from shoal.engine.events import ClaimGone, DevicesGone, PodBound
from shoal.engine.evidence import evidence
from shoal.engine.ledger import Ledger
from shoal.views.why import kube_line, nearest_sentence

ONE = asking(own(wants(1)))
TWO = asking(own(wants(2)))
OURS = asking(shared("team/ours"))


def fleet(*nodes: str, gpus: int = 2) -> Scenario:
    """Nodes with this many devices each."""
    world = Scenario(*(node(name) for name in nodes))
    names = [f"g{number}" for number in range(gpus)]
    pools = [pool(*map(device, names), at=name) for name in nodes]
    for event in seen(*pools):
        world.apply(event)
    return world


def given(world: Scenario, pod: str) -> list[str]:
    grant = world.cluster.pods[pod].grant
    assert grant is not None
    return [pick.device for each in grant.claims for pick in each.picks]


def why(world: Scenario, wanted: Ask) -> str:
    found = evidence(world.cluster, wanted)
    return f"{kube_line(found)} {nearest_sentence(found)}"


def test_pods_made_from_one_template_share_a_shape_and_no_device() -> None:
    world = fleet("a", "b")
    for number in range(5):
        world.arrive(f"p{number}", asking(own(wants(1))))
    plan = world.round()
    assert len(plan.placed) == 4
    assert sorted(given(world, place.pod)[0] for place in plan.placed) == sorted(
        full(name, at) for name in ("g0", "g1") for at in ("a", "b")
    )
    assert len({world.cluster.pods[place.pod].charge for place in plan.placed}) == 1


def test_a_claim_goes_where_it_can_be_served() -> None:
    world = fleet("a", "b").bind("p", ONE, "a")
    assert world.fitting(TWO) == {"b"}
    assert world.fitting(ONE) == {"a", "b"}
    assert world.fitting(asking(own(wants(3)))) == set()


def test_devices_are_free_again_when_their_pod_goes() -> None:
    world = fleet("a").bind("p", TWO, "a")
    assert world.fitting(ONE) == set()
    world.go("p")
    assert world.fitting(TWO) == {"a"}


def test_a_claim_and_other_resources_must_be_had_on_the_same_node() -> None:
    world = Scenario(node("a").cpu(2), node("b").cpu(16))
    for event in seen(pool(device("g0"), at="a")):
        world.apply(event)
    assert world.fitting(asking(own(wants(1)), wanted=ask().cpu(1))) == {"a"}
    assert world.fitting(asking(own(wants(1)), wanted=ask().cpu(4))) == set()


def test_the_first_user_of_a_shared_claim_decides_where_all_of_them_go() -> None:
    world = fleet("a", "b").apply(there_is("team/ours", claim(wants(1))))
    world.arrive("p0", OURS)
    first = world.round().placed[0].node
    world.arrive("p1", OURS).arrive("p2", OURS)
    assert {place.node for place in world.round().placed} == {first}
    assert given(world, "p0") == given(world, "p1") == given(world, "p2")
    assert len(world.cluster.dra.usage.in_use()) == 1


def test_a_shared_claim_is_free_when_its_last_user_has_gone() -> None:
    world = fleet("a", gpus=1).apply(there_is("team/ours", claim(wants(1))))
    world.arrive("p0", OURS).arrive("p1", OURS).round()
    world.go("p0")
    assert world.fitting(ONE) == set()
    world.go("p1")
    assert world.fitting(ONE) == {"a"}


def test_an_allocation_told_of_by_the_status_ties_the_pod_to_its_devices() -> None:
    world = fleet("a", "b").apply(there_is("team/ours", claim(wants(1)), full("g1", "b"), reserved=["team/elsewhere"]))
    assert world.fitting(OURS) == {"b"}
    assert world.fitting(TWO) == {"a"}
    assert why(world, asking(shared("team/ours"), wanted=ask().select("no", "Exists"))).startswith("0/2 nodes")
    world.arrive("p", OURS).round()
    assert given(world, "p") == [full("g1", "b")]


def test_an_allocation_can_be_used_where_its_selector_says() -> None:
    world = fleet("a", "b")
    event = there_is("team/ours", claim(wants(1)), full("g1", "b"), reserved=["team/x"])
    here = NodeSelector((NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", ("a",)),)),))
    world.apply(structs.replace(event, claim=structs.replace(event.claim, reach=here)))
    assert world.fitting(OURS) == {"a"}


def test_a_pod_that_we_see_running_is_no_outside_user() -> None:
    world = fleet("a", gpus=1).apply(there_is("team/ours", claim(wants(1)), full("g0", "a"), reserved=["team/p"]))
    world.apply(PodBound("team/p", OURS, "a"))
    assert given(world, "team/p") == [full("g0", "a")]
    ledger = Ledger(world.cluster)
    ledger.evict("team/p")
    assert world.fitting(ONE) == {"a"}
    ledger.rollback()
    assert world.fitting(ONE) == set()


def test_reservations_of_pods_that_are_gone_end() -> None:
    world = fleet("a", gpus=1).apply(there_is("team/ours", claim(wants(1)), full("g0", "a"), reserved=["team/p"]))
    assert world.fitting(ONE) == set()
    world.go("team/p")
    assert world.fitting(ONE) == {"a"}


def test_an_allocation_that_nobody_reserved_stays_until_it_is_taken_back() -> None:
    world = fleet("a", gpus=1).apply(there_is("team/ours", claim(wants(1)), full("g0", "a")))
    world.arrive("p", OURS).round()
    world.go("p")
    assert world.fitting(ONE) == set()
    world.apply(there_is("team/ours", claim(wants(1))))
    assert world.fitting(ONE) == {"a"}


def test_a_claim_has_at_most_256_users() -> None:
    full_house = [f"team/p{number}" for number in range(256)]
    world = fleet("a").apply(there_is("team/ours", claim(wants(1)), full("g0", "a"), reserved=full_house))
    assert world.fitting(OURS) == set()
    assert "reserved for 256 pods" in why(world, OURS)
    world.go("team/p7")
    assert world.fitting(OURS) == {"a"}


def test_a_pod_waits_for_a_claim_that_is_not_there_and_starts_when_it_is() -> None:
    world = fleet("a").arrive("p", OURS)
    assert world.round().placed == []
    assert why(world, OURS) == (
        '0/1 nodes are available: resourceclaim "ours" not found. Nodes are not examined until this is corrected.'
    )
    world.apply(there_is("team/ours", claim(wants(1))))
    assert [place.node for place in world.round().placed] == ["a"]


def test_a_claim_that_was_deleted_is_missing_again() -> None:
    world = fleet("a").apply(there_is("team/ours", claim(wants(1))))
    assert world.fitting(OURS) == {"a"}
    world.apply(ClaimGone("team/ours"))
    assert world.fitting(OURS) == set()


def test_a_claim_in_trouble_says_so() -> None:
    broken = asking(ClaimRef("g", own=claim(wants(1)), trouble="device class gpu does not exist"))
    world = fleet("a")
    assert world.fitting(broken) == set()
    assert kube_line(evidence(world.cluster, broken)) == "0/1 nodes are available: device class gpu does not exist."


def test_the_words_name_the_request_and_count_devices() -> None:
    world = fleet("a", "b").bind("p", ONE, "a")
    assert why(world, asking(own(wants(3)))) == (
        "0/2 nodes are available: 2 cannot allocate all claims. The nearest node is b: it cannot serve request gpu of "
        "claim mine: it asks for 3 of gpus where 2 match and 2 can be had."
    )
    world.bind("q", ONE, "b")
    assert "where 2 match and 1 can be had" in why(world, TWO)


def test_the_words_tell_constraints_from_numbers() -> None:
    world = Scenario(node("n1"))
    for event in seen(pool(device("g0", rack="a"), device("g1", rack="b"))):
        world.apply(event)
    tied = asking(ClaimRef("mine", own=claim(wants(1, name="x"), wants(1, name="y"), match="rack")))
    assert "claim mine: no choice of devices here meets all its constraints" in why(world, tied)
    several = asking(own(wants(2), name="one"), own(wants(2), name="other"))
    assert "its claims together" in why(world, several)
    picky = asking(own(Request("x", (option(3, name="a"), option(4, name="b")))))
    assert "none of its 2 alternatives" in why(world, picky)


def test_words_of_a_claim_allocated_elsewhere() -> None:
    world = fleet("a", "b").apply(there_is("team/ours", claim(wants(1)), full("g0", "a"), reserved=["team/x"]))
    world.bind("big", asking(wanted=ask().cpu(16)), "a")
    tied = asking(shared("team/ours"), wanted=ask().cpu(1))
    line = kube_line(evidence(world.cluster, tied))
    assert "1 resourceclaim not available on the node" in line


def test_a_newer_generation_replaces_the_pool() -> None:
    world = fleet("a")
    world.apply(seen(pool(device("g0"), at="a", generation=2, part="new"))[0])
    assert world.fitting(TWO) == set()
    assert world.fitting(ONE) == {"a"}


def test_a_pool_counts_once_all_its_slices_are_there() -> None:
    world = Scenario(node("a"))
    halves = [pool(device(name), at="a", pieces=2, part=name) for name in ("g0", "g1")]
    first, second, named = seen(*halves)
    world.apply(named).apply(first)
    assert world.fitting(ONE) == set()
    world.apply(second)
    assert world.fitting(TWO) == {"a"}
    world.apply(DevicesGone("a-g1"))
    assert world.fitting(ONE) == set()


def test_a_pool_that_names_a_device_twice_is_left_out() -> None:
    world = Scenario(node("a"))
    for event in seen(pool(device("g0"), at="a", pieces=2, part="x"), pool(device("g0"), at="a", pieces=2, part="y")):
        world.apply(event)
    assert world.fitting(ONE) == set()


def test_a_device_of_a_network_is_taken_for_all_nodes_that_reach_it() -> None:
    zone = NodeSelector((NodeSelectorTerm(match_expressions=(Requirement("zone", "In", ("z",)),)),))
    world = Scenario(node("a").label("zone", "z"), node("b").label("zone", "z"), node("c"))
    for event in seen(pool(device("link"), at="fabric", reach=Reach(node_selector=zone))):
        world.apply(event)
    assert world.fitting(ONE) == {"a", "b"}
    world.bind("p", ONE, "a")
    assert world.fitting(ONE) == set()
    world.go("p").see(node("c").label("zone", "z"))
    assert world.fitting(ONE) == {"a", "b", "c"}


def test_another_node_on_the_same_row_has_devices_of_its_own() -> None:
    world = fleet("a")
    assert world.fitting(ONE) == {"a"}
    world.lose("a").see(node("b"))
    assert world.fitting(ONE) == set()


def test_claims_come_back_with_a_node_whose_pod_still_runs() -> None:
    world = fleet("a", gpus=1).bind("p", ONE, "a").lose("a").see(node("a"))
    assert given(world, "p") == [full("g0", "a")]
    assert world.fitting(ONE) == set()


def test_room_that_leaves_is_promised_with_its_devices() -> None:
    world = fleet("a", gpus=1).bind("old", ONE, "a", terminating=True).arrive("new", ONE)
    plan = world.round()
    assert [nomination.pod for nomination in plan.nominated] == ["new"]
    world.go("old")
    assert [place.pod for place in world.round().placed] == ["new"]
    assert given(world, "new") == [full("g0", "a")]


def test_a_shared_claim_moves_with_the_promise() -> None:
    world = fleet("a", "b", gpus=1).apply(there_is("team/ours", claim(wants(1))))
    world.bind("old", OURS, "a", terminating=True)
    assert world.fitting(OURS) == {"a"}
    world.go("old")
    assert world.fitting(OURS) == {"a", "b"}
