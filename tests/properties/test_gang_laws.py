"""A gang starts whole or not at all, where it wishes; and whenever a person could place it, so can the engine."""

from __future__ import annotations

from collections import Counter
from itertools import product

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.gangs import GroupBuilder, gang, in_racks
from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from build.snapshot import facts_of
from shoal.engine.fitter import Fitter
from shoal.engine.gangs.evidence import GroupEvidence, group_evidence
from shoal.engine.gangs.teams import Roster
from shoal.engine.ledger import Ledger
from shoal.engine.plan import Plan

some = settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])

WIDTH = {"zone": 1, "block": 2, "rack": 3}
Place = tuple[str, ...]


@st.composite
def nodes(draw: st.DrawFn, name: str) -> NodeBuilder:
    there = node(name).gpus(draw(st.integers(0, 4)))
    for level in WIDTH:
        if draw(st.integers(0, 9)) == 0:
            break
        there = there.label(level, draw(st.sampled_from("ab")))
    return there


fleets = st.tuples(*(nodes(f"n{index}") for index in range(6))).map(list)


def domain(there: NodeBuilder, level: str) -> Place | None:
    """The node's domain, by the plain rule."""
    values = [there.labels.get(key) for key in list(WIDTH)[: WIDTH[level]]]
    return None if None in values else tuple(value or "" for value in values)


def domains(there: list[NodeBuilder], level: str) -> dict[Place, list[NodeBuilder]]:
    found: dict[Place, list[NodeBuilder]] = {}
    for one in there:
        place = domain(one, level)
        if place is not None:
            found.setdefault(place, []).append(one)
    return found


def room(there: list[NodeBuilder], gpus: int) -> int:
    return sum(one.gpu_count // gpus for one in there)


def told(world: Scenario) -> GroupEvidence:
    before = facts_of(world.cluster)
    found = group_evidence(Fitter(world.placement, Ledger(world.cluster), 0), world.cluster.gangs["g"])
    assert facts_of(world.cluster) == before
    return found


wishes = st.sampled_from(["", "required", "preferred", "closest", "required and preferred"])
levels = st.sampled_from(list(WIDTH))


def wished(there: GroupBuilder, requirement: str, level: str) -> GroupBuilder:
    match requirement:
        case "required":
            return there.required(level)
        case "preferred":
            return there.preferred(level)
        case "closest":
            return there.closest(level)
        case "required and preferred":
            return there.required(level).preferred("rack")
        case _:
            return there


@some
@given(fleets, st.integers(1, 8), st.integers(1, 3), wishes, levels)
def test_equal_pods_are_placed_whenever_any_assignment_exists(
    there: list[NodeBuilder], count: int, gpus: int, requirement: str, level: str
) -> None:
    world = in_racks(*there)
    wished(gang("g").pods(count).gpus(gpus), requirement, level).arrive(world)
    bound = requirement not in ("", "preferred")
    places = list(domains(there, level).values()) if bound else [there]
    most = max((min(room(place, gpus), count) for place in places), default=0)
    evidence = told(world)
    plan = world.round()
    if most == count:
        assert len(plan.placed) == count
        used = {domain(next(one for one in there if one.name == place.node), level) for place in plan.placed}
        assert not bound or (len(used) == 1 and None not in used)
    else:
        assert plan.placed == []
        assert (evidence.fit_now, evidence.fit_empty, evidence.is_hopeless) == (most, most, True)


@some
@given(fleets, st.integers(1, 8), st.integers(1, 2), levels)
def test_a_wish_is_met_at_the_closest_level_there_is(
    there: list[NodeBuilder], count: int, gpus: int, level: str
) -> None:
    """Preferring a level: one domain of it, else of the next one out; of the closest, from the innermost."""
    for requirement, first in (("preferred", level), ("closest", "rack")):
        world = in_racks(*there)
        there_gang = gang("g").pods(count).gpus(gpus)
        (there_gang.preferred(level) if requirement == "preferred" else there_gang.closest()).arrive(world)
        on = {place.node for place in world.round().placed}
        if not on:
            continue
        outwards = [key for key in reversed(WIDTH) if WIDTH[key] <= WIDTH[first]]
        best = next(
            (key for key in outwards if any(room(d, gpus) >= count for d in domains(there, key).values())), None
        )
        if best is not None:
            assert len({domain(one, best) for one in there if one.name in on} - {None}) == 1


@some
@given(fleets, st.lists(st.integers(1, 4), min_size=1, max_size=3), st.sampled_from(["rack", "block"]))
def test_parts_find_their_racks_whenever_any_assignment_exists(
    there: list[NodeBuilder], sizes: list[int], level: str
) -> None:
    world = in_racks(*there)
    group = gang("g").required("zone")
    for number, size in enumerate(sizes):
        group = group.part(f"p{number}", size, required=level).pods(size, ask().gpus(1), part=f"p{number}")
    group.arrive(world)

    def possible() -> bool:
        for zone in domains(there, "zone").values():
            places = [room(place, 1) for place in domains(zone, level).values()]
            for choice in product(range(len(places)), repeat=len(sizes)):
                taken = [0] * len(places)
                for place, size in zip(choice, sizes, strict=True):
                    taken[place] += size
                if all(have >= want for have, want in zip(places, taken, strict=True)):
                    return True
        return False

    assert bool(world.round().placed) is possible()


@some
@given(fleets, st.integers(1, 4), st.integers(1, 3), st.sampled_from(["rack", "block"]))
def test_slices_are_placed_whenever_any_assignment_exists(
    there: list[NodeBuilder], size: int, slices: int, level: str
) -> None:
    world = in_racks(*there)
    gang("g").pods(size * slices).gpus(1).slices(level, size).required("zone").arrive(world)
    possible = any(
        sum(room(place, 1) // size for place in domains(zone, level).values()) >= slices
        for zone in domains(there, "zone").values()
    )
    plan = world.round()
    assert bool(plan.placed) is possible
    counts = Counter(domain(next(one for one in there if one.name == place.node), level) for place in plan.placed)
    assert all(place is not None and count % size == 0 for place, count in counts.items())


@st.composite
def mixed(draw: st.DrawFn) -> GroupBuilder:
    group = gang("g")
    for _ in range(draw(st.integers(1, 3))):
        wanted = ask().gpus(draw(st.integers(1, 4)))
        if draw(st.booleans()):
            wanted = wanted.select("zone", "In", draw(st.sampled_from("ab")))
        group = group.pods(draw(st.integers(1, 2)), wanted)
    return group.required("block") if draw(st.booleans()) else group


def assignable(there: list[NodeBuilder], wanted: list[AskBuilder]) -> bool:
    """By trying every assignment."""
    asks = [one.made() for one in wanted]

    def place(at: int, free: tuple[int, ...]) -> bool:
        if at == len(asks):
            return True
        need = asks[at].gpu_milli // 1000
        zones = [term.values for term in asks[at].nodes.always]
        for index, one in enumerate(there):
            if free[index] >= need and all(one.labels.get("zone") in values for values in zones):
                left = (*free[:index], free[index] - need, *free[index + 1 :])
                if place(at + 1, left):
                    return True
        return False

    return place(0, tuple(one.gpu_count for one in there))


@some
@given(fleets, mixed())
def test_different_pods_are_never_called_hopeless_when_an_assignment_exists(
    there: list[NodeBuilder], group: GroupBuilder
) -> None:
    world = in_racks(*there)
    group.arrive(world)
    evidence = told(world)
    plan = world.round()
    wanted = [batch.ask for batch in group.batches for _ in range(batch.count)]
    places = list(domains(there, "block").values()) if group.requirement.required else [there]
    possible = any(assignable(place, wanted) for place in places)
    assert possible or not plan.placed
    assert evidence.fit_now <= evidence.fit_empty
    if possible:
        assert not evidence.is_hopeless


# -- whatever happens --------------------------------------------------------------------------------------------------

GPU = ask().gpus(1)
GROUPS = [
    gang("g").pods(4, GPU).minimum(3).required("block"),
    gang("h").part("a", 2, required="rack").part("b", 1).pods(3, GPU, part="a").pods(2, GPU, part="b"),
    gang("i").pods(2, GPU, role="master").pods(3, GPU, role="worker").role("master", 1).minimum(3),
    gang("j").part("x", 2).part("y", 2).any_parts(1).pods(2, GPU, part="x").pods(2, GPU, part="y"),
]

happenings = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.sampled_from(range(len(GROUPS)))),
        st.tuples(st.just("go"), st.integers(0, 30)),
        st.tuples(st.just("lose"), st.integers(0, 5)),
        st.tuples(st.just("see"), st.integers(0, 5)),
        st.tuples(st.just("round"), st.integers(0, 6)),
        st.tuples(st.just("round"), st.integers(0, 6)),
    ),
    min_size=4,
    max_size=24,
)


def broken(world: Scenario, plan: Plan) -> list[str]:
    """Where a gang that got something has not all it needs now, or is apart where it must be together."""
    found: list[str] = []
    placed = {place.pod for place in plan.placed}
    for name in {pod.rsplit("-", 1)[0] for pod in placed}:
        there = world.cluster.gangs[name]
        assert there.facts is not None
        roster = Roster.of_gang(world.cluster, there, there.facts)
        if not roster.is_met:
            found.append(f"{name} runs in part")
        for team in [roster.root, *roster.root.parts]:
            running = set(team.all_running())
            if team.requirement.required and running <= placed:
                tree = world.placement.trees.of(team.requirement)
                assert tree is not None
                codes = tree.codes[tree.level(team.requirement.required)]
                if len({codes.item(world.cluster.pods[pod].row) for pod in running}) > 1:
                    found.append(f"{name} {team.name} is scattered")
            if team.name and placed & running and not team.is_met:
                found.append(f"half of {name} {team.name}")
    return found


@some
@given(fleets, happenings)
def test_whatever_happens_a_gang_starts_whole_and_where_it_must(
    there: list[NodeBuilder], events: list[tuple[str, int]]
) -> None:
    world = in_racks(*there)
    for what, number in [*events, ("round", 0)]:
        match what:
            case "come":
                GROUPS[number].arrive(world)
            case "go":
                keys = sorted(world.placed())
                if keys:
                    world.go(keys[number % len(keys)])
            case "lose":
                world.lose(f"n{number}")
            case "see":
                world.see(there[number])
            case _:
                plan = world.round()
                assert broken(world, plan) == []
                for index, place in enumerate(plan.placed):
                    if number and index % 7 == number:
                        world.reject(place.pod)
                    else:
                        held = world.cluster.pods[place.pod]
                        world.bind(place.pod, held.ask, place.node, who=held.who)
