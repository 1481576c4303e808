"""All or nothing: minima of gangs, parts and roles; what comes on top; what is said when it cannot be."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from build.gangs import GroupBuilder, gang, in_racks, racks
from build.nodes import NodeBuilder, node
from build.pods import ask
from build.scenario import Scenario
from build.snapshot import facts_of
from shoal.engine.fitter import Fitter
from shoal.engine.gangs.attempt import can_place, is_running, place_gang
from shoal.engine.gangs.evidence import GroupEvidence, group_evidence
from shoal.engine.groups import GangSubgroup
from shoal.engine.ledger import Ledger
from shoal.engine.preemption.preemptor import gang_preemptor
from shoal.engine.reasons import Code
from shoal.engine.unmatched import Unmatched

G = gang("g")
GPU = ask().gpus(1)


def started(world: Scenario) -> set[str]:
    """The gang's pods that run."""
    return {key for key in world.placed() if key.startswith("g-")}


def pods(*numbers: int) -> set[str]:
    return {f"g-{number}" for number in numbers}


@dataclass(frozen=True)
class Case:
    gang: GroupBuilder
    gpus: int
    """Free GPUs, all on one node."""
    starts: set[str]


CASES: dict[str, Case] = {
    "all of it fits": Case(G.pods(4, GPU), 4, pods(0, 1, 2, 3)),
    "one GPU is missing, so nobody starts": Case(G.pods(4, GPU), 3, set()),
    "what is above the minimum takes what is left": Case(G.pods(5, GPU).minimum(2), 4, pods(0, 1, 2, 3)),
    "the minimum goes by the order of the pods": Case(
        G.pods(2, GPU, order=2).pods(1, GPU, order=1).minimum(1), 1, pods(2)
    ),
    "a pod that does not fit makes room in the minimum for the next": Case(
        G.pods(1).gpus(8).pods(2, GPU).minimum(2), 2, pods(1, 2)
    ),
    "fewer pods than the minimum": Case(G.pods(2, GPU).minimum(3), 8, set()),
    "every part has its minimum": Case(
        G.part("a", 1).part("b", 2).pods(3, GPU, part="a").pods(2, GPU, part="b"), 4, pods(0, 1, 3, 4)
    ),
    "one part lacks a GPU, so the other does not start either": Case(
        G.part("a", 1).part("b", 2).pods(3, GPU, part="a").pods(2, GPU, part="b"), 2, set()
    ),
    "one part lacks a pod, so the other does not start either": Case(
        G.part("a", 1).part("b", 2).pods(3, GPU, part="a").pods(1, GPU, part="b"), 8, set()
    ),
    "one of two parts suffices, and half of the other is of no use": Case(
        G.part("a", 2).part("b", 2).any_parts(1).pods(2, GPU, part="a").pods(2, GPU, part="b"), 3, pods(0, 1)
    ),
    "the part that fits is taken where one suffices": Case(
        G.part("a", 2).part("b", 2).any_parts(1).pods(2, part="a").gpus(8).pods(2, GPU, part="b"), 3, pods(2, 3)
    ),
    "an optional part comes up whole when there is room": Case(
        G.part("a", 2).part("b", 2).any_parts(1).pods(2, GPU, part="a").pods(2, GPU, part="b"), 4, pods(0, 1, 2, 3)
    ),
    "an inner part counts the parts below it": Case(
        G.part("in", 1).part("a", 1, "in").part("b", 1, "in").pods(1, part="a").gpus(8).pods(1, GPU, part="b"),
        2,
        pods(1),
    ),
    "both parts of an inner part": Case(
        G.part("in", 2).part("a", 1, "in").part("b", 1, "in").pods(1, GPU, part="a").pods(1, GPU, part="b"), 1, set()
    ),
    "a minimum of pods beside that of the parts": Case(
        G.part("a", 1).part("b", 1).minimum(4).pods(2, GPU, part="a").pods(2, GPU, part="b"), 3, set()
    ),
    "a minimum of pods brings up optional parts whole": Case(
        G.part("a", 2).part("b", 2).any_parts(0).minimum(1).pods(2, GPU, part="a").pods(2, GPU, part="b"),
        3,
        pods(0, 1),
    ),
    "a part that the minimum of the whole needs does not stand by as well": Case(
        G.part("a", 2).part("b", 2).any_parts(1).minimum(5).pods(2, GPU, part="a").pods(2, GPU, part="b").pods(1, GPU),
        4,
        set(),
    ),
    "pods that name no part fill up": Case(
        G.part("a", 1).minimum(2).pods(1, GPU, part="a").pods(1, GPU, part="unheard-of"), 2, pods(0, 1)
    ),
    "a role that is short comes before other pods": Case(
        G.pods(3, GPU, role="worker").pods(1, GPU, role="master").role("master", 1).minimum(2), 2, pods(0, 3)
    ),
    "a role without enough pods": Case(
        G.pods(3, GPU, role="worker").pods(1, GPU, role="master").role("master", 2).minimum(2), 8, set()
    ),
    "a role whose pods do not fit": Case(
        G.pods(3, GPU, role="worker").pods(1, role="master").gpus(9).role("master", 1).minimum(2), 8, set()
    ),
    "roles need more than the minimum": Case(
        G.pods(2, GPU, role="worker").pods(2, GPU, role="master").role("worker", 2).role("master", 2).minimum(1),
        3,
        set(),
    ),
    "a role's pod in a part that is of no use alone": Case(
        G.part("a", 2).any_parts(0).minimum(1).pods(2, GPU, part="a", role="master").role("master", 1), 2, pods(0, 1)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_who_of_a_gang_starts(case: Case) -> None:
    world = Scenario(node("n").gpus(case.gpus), policy="BestFit")
    case.gang.arrive(world)
    world.round()
    assert started(world) == case.starts


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_round_later_nothing_has_changed(case: Case) -> None:
    world = Scenario(node("n").gpus(case.gpus), policy="BestFit")
    case.gang.arrive(world)
    world.confirm(world.round())
    for _ in range(5):
        assert world.round().intentions == ()


class TestAGangThatRunsInPart:
    def test_only_what_is_missing_is_placed(self) -> None:
        world = Scenario(node("n").gpus(4), policy="BestFit")
        G.pods(4, GPU).arrive(world).run(world, "n", "n")
        assert {place.pod for place in world.round().placed} == pods(2, 3)

    def test_pods_that_are_leaving_count_for_nothing(self) -> None:
        world = Scenario(node("n").gpus(3), policy="BestFit")
        there = G.pods(3, GPU).minimum(2).arrive(world)
        (key, wanted, who), *_ = there.members()
        world.bind(key, wanted, "n", who=who, terminating=True)
        gang_ = world.cluster.gangs["g"]
        assert not is_running(world.cluster, gang_)
        assert {place.pod for place in world.round().placed} == pods(1, 2)
        assert is_running(world.cluster, gang_)

    def test_it_stays_in_the_domain_where_it_runs(self) -> None:
        world = in_racks(*racks(1, 1))
        G.pods(3, GPU).required("rack").arrive(world).run(world, "r1n0")
        world.bind("other", ask().gpus(5), "r1n0")
        world.round()
        assert [world.placed()[key] for key in sorted(pods(0, 1, 2))] == ["r1n0"] * 3

    def test_it_waits_rather_than_leave_its_domain(self) -> None:
        world = in_racks(*racks(1, 1))
        G.pods(3, GPU).required("rack").arrive(world).run(world, "r1n0")
        world.bind("other", ask().gpus(6), "r1n0")
        assert [refused.code for refused in world.round().refused_groups] == [Code.TOPOLOGY]

    def test_what_comes_on_top_stays_in_the_domain_too(self) -> None:
        world = in_racks(*racks(1, 1))
        G.pods(3, GPU).minimum(1).required("rack").arrive(world).run(world, "r1n0")
        world.bind("other", ask().gpus(6), "r1n0")
        world.round()
        assert started(world) == pods(0, 1)

    def test_the_closest_domain_grows_with_it(self) -> None:
        world = in_racks(*racks(1, 1))
        G.pods(2).gpus(8).closest("block").arrive(world).run(world, "r0n0")
        world.round()
        assert world.placed()["g-1"] == "r1n0"

    def test_a_slice_that_lost_a_pod_is_made_whole_where_it_is(self) -> None:
        world = in_racks(*racks(2, 2))
        G.pods(2).gpus(8).slices("rack", 2).arrive(world).run(world, "r1n1")
        world.round()
        assert world.placed()["g-1"] == "r1n0"

    def test_others_reach_their_minimum_before_it_gets_more(self) -> None:
        world = Scenario(node("n").gpus(3), policy="BestFit")
        G.pods(3, GPU).minimum(1).arrive(world).run(world, "n")
        gang("later").pods(2, GPU).arrive(world)
        assert {place.pod for place in world.round().placed} == {"later-0", "later-1"}

    def test_gangs_get_their_first_extra_pod_in_turn(self) -> None:
        world = Scenario(node("n").gpus(4), policy="BestFit")
        G.pods(4, GPU).minimum(1).arrive(world)
        gang("h").pods(4, GPU).minimum(1).arrive(world)
        assert {place.pod for place in world.round().placed} == {"g-0", "g-1", "h-0", "h-1"}

    def test_nothing_extra_starts_while_the_minimum_is_only_promised(self) -> None:
        world = Scenario(node("n").gpus(8), node("m").gpus(1), policy="BestFit")
        world.bind("old", ask().gpus(8), "n", terminating=True)
        G.part("a", 1).pods(1, part="a").gpus(8).pods(1, GPU).arrive(world)
        plan = world.round()
        assert [nominated.pod for nominated in plan.nominated] == ["g-0", "g-1"]
        assert not plan.placed


def test_a_gang_goes_where_it_was_promised_room() -> None:
    world = in_racks(*racks(1, 1))
    world.bind("stays", ask().gpus(8), "r0n0").bind("leaves", ask().gpus(8), "r1n0", terminating=True)
    G.pods(8, GPU).required("rack").arrive(world)
    assert {nominated.node for nominated in world.round().nominated} == {"r1n0"}
    world.go("stays").go("leaves")
    assert {place.node for place in world.round().placed} == {"r1n0"}


def test_a_gang_nobody_declared_waits() -> None:
    world = Scenario(node("n").gpus(8))
    for key, wanted, who in G.pods(2, GPU).members():
        world.arrive(key, wanted, who=who)
    assert [refused.code for refused in world.round().refused_groups] == [Code.GANG_UNKNOWN]
    world.group(G.pods(2, GPU).facts())
    assert len(world.round().placed) == 2


NO_TREES: dict[str, tuple[tuple[GangSubgroup, ...], str]] = {
    "two parts inside each other": (
        (GangSubgroup("a", "b", 1), GangSubgroup("b", "a", 1), GangSubgroup("c", "", 1)),
        "part a is its own ancestor",
    ),
    "a part inside itself": ((GangSubgroup("a", "a", 1),), "part a is its own ancestor"),
    "below a circle": (
        (GangSubgroup("c", "a", 1), GangSubgroup("a", "b", 1), GangSubgroup("b", "a", 1)),
        "part a is its own ancestor",
    ),
    "a name of two parts": ((GangSubgroup("a", "", 1), GangSubgroup("a", "", 2)), "part a is defined twice"),
    "a part without a name": ((GangSubgroup("", "", 1),), "a part has no name"),
    "a part inside one that nobody declared": (
        (GangSubgroup("a", "b", 1),),
        "part a is inside part b, which does not exist",
    ),
}


@pytest.mark.parametrize(("parts", "fault"), NO_TREES.values(), ids=NO_TREES)
def test_a_gang_whose_parts_are_no_tree_is_refused_at_once(parts: tuple[GangSubgroup, ...], fault: str) -> None:
    world = in_racks(*racks(2))
    there = G.pods(1, GPU, part="a", role="r").pods(1, GPU, part="b").minimum(1).role("r", 1)
    there = replace(there, parts=parts).arrive(world)
    assert [(refused.group, refused.code) for refused in world.round().refused_groups] == [("g", Code.GANG_MALFORMED)]
    assert told(world) == GroupEvidence("g", Code.GANG_MALFORMED, exist=2, pod="g-0", fault=fault)
    assert gang_preemptor(world.cluster, world.cluster.gangs["g"]) is None
    assert not is_running(world.cluster, world.cluster.gangs["g"])
    world.group(replace(there, parts=(GangSubgroup("a", "", 1), GangSubgroup("b", "", 1))).facts())
    assert len(world.round().placed) == 2


def test_a_gang_that_runs_when_its_parts_become_no_tree_gets_nothing_more() -> None:
    world = Scenario(node("n").gpus(8))
    there = G.part("a", 1).pods(2, GPU, part="a")
    world.group(there.facts())
    there.run(world, "n").arrive(world)
    world.group(replace(there, parts=(GangSubgroup("a", "a", 1),)).facts())
    assert [refused.code for refused in world.round().refused_groups] == [Code.GANG_MALFORMED]
    world.group(there.facts())
    assert len(world.round().placed) == 1


def test_a_failed_attempt_leaves_no_trace() -> None:
    world = in_racks(*racks(2, 1, 1))
    there = G.part("p", 2, required="rack").part("q", 2, required="rack")
    there.pods(2, ask().gpus(8), part="p").pods(2, ask().gpus(8), part="q").arrive(world)
    before = facts_of(world.cluster)
    fitter = Fitter(world.placement, Ledger(world.cluster), 0)
    assert place_gang(fitter, world.cluster.gangs["g"]) is Code.TOPOLOGY
    assert facts_of(world.cluster) == before
    world.see(racks(0, 2)[1])
    before = facts_of(world.cluster)
    assert can_place(fitter, world.cluster.gangs["g"])
    assert facts_of(world.cluster) == before


# -- evidence ----------------------------------------------------------------------------------------------------------


def told(world: Scenario) -> GroupEvidence:
    before = facts_of(world.cluster)
    found = group_evidence(Fitter(world.placement, Ledger(world.cluster), 0), world.cluster.gangs["g"])
    assert facts_of(world.cluster) == before
    return found


@dataclass(frozen=True)
class Told:
    nodes: list[NodeBuilder]
    gang: GroupBuilder
    evidence: GroupEvidence
    taken: tuple[tuple[str, int], ...] = ()


STORIES: dict[str, Told] = {
    "fewer fit now than would if others yielded": Told(
        racks(3),
        G.pods(16, GPU),
        GroupEvidence("g", Code.GANG, needs=16, exist=16, fit_now=12, fit_empty=16, pod="g-0"),
        (("r0n0", 6), ("r0n1", 6)),
    ),
    "no fleet of this size takes it": Told(
        racks(1), G.pods(16, GPU), GroupEvidence("g", Code.GANG, needs=16, exist=16, fit_now=8, fit_empty=8, pod="g-0")
    ),
    "the fleet would take it, no rack does": Told(
        racks(1, 2),
        G.pods(24, GPU).required("rack"),
        GroupEvidence(
            "g",
            Code.TOPOLOGY,
            needs=24,
            exist=24,
            fit_now=16,
            fit_empty=16,
            limit_level="rack",
            largest=("z", "b", "r1"),
            largest_pods=16,
            level="rack",
            domain=("z", "b", "r1"),
            pod="g-0",
        ),
    ),
    "fewer pods than needed": Told(
        racks(1), G.pods(2, GPU).minimum(3), GroupEvidence("g", Code.GANG_TOO_SMALL, needs=3, exist=2, pod="g-0")
    ),
    "fewer pods of a role": Told(
        racks(1),
        G.pods(2, GPU, role="worker").role("master", 1),
        GroupEvidence("g", Code.GANG_TOO_SMALL, role="master", needs=1, exist=0, pod="g-0"),
    ),
    "fewer pods of a part": Told(
        racks(1),
        G.part("a", 1).part("b", 2).pods(1, GPU, part="a").pods(1, GPU, part="b"),
        GroupEvidence("g", Code.GANG_TOO_SMALL, "b", needs=2, exist=1, pod="g-0"),
    ),
    "one part is too large": Told(
        racks(1),
        G.part("a", 1).part("b", 2).pods(1, GPU, part="a").pods(2, part="b").gpus(8),
        GroupEvidence("g", Code.GANG, "b", needs=2, exist=2, fit_now=1, fit_empty=1, pod="g-1"),
    ),
    "different pods that would not fit together": Told(
        racks(2),
        G.pods(1).gpus(8).pods(2).gpus(4).pods(1).gpus(4),
        GroupEvidence("g", Code.GANG, needs=4, exist=4, fit_now=3, fit_empty=3, pod="g-0"),
        (("r0n0", 1),),
    ),
    "a level that no node has": Told(
        racks(1),
        G.pods(1, GPU).required("planet"),
        GroupEvidence(
            "g",
            Code.TOPOLOGY,
            needs=1,
            exist=1,
            level="planet",
            pod="g-0",
            unmatched=(Unmatched("planet", (), has_key=False),),
        ),
    ),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_why_a_gang_waits(story: Told) -> None:
    world = in_racks(*story.nodes)
    for there, count in story.taken:
        world.bind(f"other-{there}", ask().gpus(count), there)
    story.gang.arrive(world)
    assert told(world) == story.evidence
    assert story.evidence.code in [refused.code for refused in world.round().refused_groups]


def test_a_gang_that_can_never_fit_is_told_so() -> None:
    world = in_racks(*racks(1))
    G.pods(16, GPU).arrive(world)
    assert told(world).is_hopeless
    world.see(*racks(0, 1))
    assert not told(world).is_hopeless
