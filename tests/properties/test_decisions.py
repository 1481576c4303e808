"""Every placement is legal and the best there was, every refusal true; and what should not matter does not."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.nodes import NodeBuilder
from build.paper import PLAIN_SCORES, State, fgd, kind_of_pod, typical_pods
from build.passing import pass_through
from build.plain import PlainFleet
from build.scenario import Scenario
from build.universe import ASKS, MIX, WANTED, Round, anything, fleets, friendly
from shoal.engine.asks import Ask
from shoal.engine.cluster import RANK_BITS
from shoal.engine.events import Event, NodeSeen, PodArrived, PodRejected
from shoal.engine.pod_mix import PodClass, class_of
from shoal.engine.profile import POLICIES
from shoal.engine.request_classes import RequestClass
from shoal.engine.rescan import Rescan
from shoal.engine.window import Window

DETERMINISTIC = [name for name in POLICIES if name != "Random"]

own_doings = st.lists(friendly, min_size=5, max_size=30)
happenings = st.lists(anything, min_size=5, max_size=40)
few = settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def begin(nodes: list[NodeBuilder], policy: str, seed: int = 0) -> tuple[Scenario, PlainFleet]:
    world, plain = Scenario(*nodes, policy=policy, mix=MIX, seed=seed), PlainFleet()
    for there in nodes:
        plain.apply(NodeSeen(there.facts()))
    return world, plain


def hold_round(world: Scenario, plain: PlainFleet, happening: Round) -> None:
    """A round, each placement checked against the recount just before it, each refusal just after the last."""
    fresh_or_old = plain.in_line()
    plan = world.round()
    order = [place.pod for place in plan.placed]
    assert order == [key for key in fresh_or_old if key in set(order)], "in the order of the line"
    for place in plan.placed:
        wanted = plain.waiting[place.pod][0]
        assert plain.fits(place.node, wanted), "the node has room and may be used"
        parts = [] if place.grant is None else [(device, amount) for device, _, amount in place.grant.parts]
        pieces = plain.pieces(place.node)
        assert all(pieces[device] >= amount for device, amount in parts), "each device has what it gives"
        assert sum(amount for _, amount in parts) == wanted.gpu_milli, "the pod gets what it asked for"
        assert len({device for device, _ in parts}) == len(parts), "on devices of its own"
        plain.place(place)
    for key, (wanted, _, _) in plain.waiting.items():
        assert plain.fitting(wanted) == set(), f"{key} was left waiting and fits"
    for index, place in enumerate(plan.placed):
        if index in happening.rejected:
            world.reject(place.pod)
            plain.apply(PodRejected(place.pod))
        else:
            world.bind(place.pod, world.cluster.pods[place.pod].ask, place.node)
            plain.pods[place.pod].bound = True


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(fleets(), own_doings)
def test_our_own_placements_never_oversubscribe_and_refusals_are_true(
    policy: str, nodes: list[NodeBuilder], events: list[Event | Round]
) -> None:
    world, plain = begin(nodes, policy)
    for happening in [*events, Round(frozenset())]:
        if isinstance(happening, Round):
            hold_round(world, plain, happening)
        else:
            world.apply(happening)
            plain.apply(happening)
    for name in plain.nodes:
        assert min(world.pieces(name), default=0) >= 0
        assert min(plain.free(name, resource) for resource in ("cpu", "memory", "pods")) >= 0


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(happenings)
def test_in_any_turmoil_placements_are_legal_and_refusals_true(policy: str, events: list[Event | Round]) -> None:
    world, plain = begin([], policy)
    for happening in [*events, Round(frozenset())]:
        if isinstance(happening, Round):
            hold_round(world, plain, happening)
        else:
            world.apply(happening)
            plain.apply(happening)
    assert world.waiting() == plain.in_line()


def feasible_keys(shape: RequestClass) -> dict[int, int]:
    """Rows that do not fit have some key far below all others; which one carries no meaning."""
    keys = shape.keys()
    return {row: int(keys[row]) for row in shape.feasible().tolist()}


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(happenings, st.lists(st.integers(0, len(ASKS) - 1), max_size=40), st.sets(st.integers(0, 39), max_size=4))
def test_incremental_keys_equal_a_full_recomputation(
    policy: str, events: list[Event | Round], looks: list[int], passing: set[int]
) -> None:
    """Each step one ask looks, the others sleep on; in the end all agree with shapes that never saw the past.

    At some steps nodes pass through, and the values of labels are numbered anew.
    """
    world = Scenario(policy=policy, mix=MIX, most_keys=10_000, least_values=1)
    for step, happening in enumerate(events):
        if step in passing:
            pass_through(world, f"at-{step}")
        if isinstance(happening, Round):
            world.confirm(world.round())
        else:
            world.apply(happening)
        if step < len(looks):
            world.shape(ASKS[looks[step]]).refresh()
    rescan = Rescan(world.cluster, world.placement.profile)
    for wanted in ASKS:
        shape, fresh = world.shape(wanted), world.fresh_shape(wanted)
        assert feasible_keys(shape) == feasible_keys(fresh), wanted
        assert shape.best() == fresh.best() == rescan.best(shape.charge), wanted


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(happenings, st.integers(0, 3))
def test_the_same_events_and_seed_make_the_same_plans(policy: str, events: list[Event | Round], seed: int) -> None:
    def plans() -> list[object]:
        world = Scenario(policy=policy, mix=MIX, seed=seed)
        made: list[object] = []
        for happening in events:
            if isinstance(happening, Round):
                made.append(world.round())
            else:
                world.apply(happening)
        return made

    assert plans() == plans()


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(fleets(), st.permutations(range(6)), st.lists(st.sampled_from(WANTED), min_size=1, max_size=15))
def test_the_order_in_which_nodes_were_seen_does_not_matter(
    policy: str, nodes: list[NodeBuilder], order: list[int], wanted: list[Ask]
) -> None:
    one = Scenario(*nodes, policy=policy, mix=MIX)
    other = Scenario(*(nodes[index] for index in order), policy=policy, mix=MIX)
    for index, ask in enumerate(wanted):
        for world in (one, other):
            world.apply(PodArrived(f"p{index}", ask))
        assert one.round().intentions == other.round().intentions


@pytest.mark.parametrize("policy", DETERMINISTIC)
@few
@given(fleets(), st.lists(st.sampled_from(WANTED), min_size=2, max_size=12), st.data())
def test_equal_pods_are_interchangeable(
    policy: str, nodes: list[NodeBuilder], wanted: list[Ask], data: st.DataObject
) -> None:
    """Who of two pods with the same ask came first decides who goes where, never where pods go."""
    names = [f"p{index}" for index in range(len(wanted))]
    outcomes = []
    for keys in (names, data.draw(st.permutations(names))):
        world = Scenario(*nodes, policy=policy, mix=MIX)
        for key, ask in zip(keys, wanted, strict=True):
            world.apply(PodArrived(key, ask))
        plan = world.round()
        ask_of = dict(zip(keys, wanted, strict=True))
        outcomes.append(Counter((ask_of[place.pod], place.node, place.grant) for place in plan.placed))
    assert outcomes[0] == outcomes[1]


def state_of(plain: PlainFleet, name: str) -> State:
    kinds = frozenset(kind_of_pod(class_of(held.ask)) for held in plain.on(name) if held.ask.devices is not None)
    node = plain.nodes[name]
    return State(plain.free(name, "cpu"), tuple(plain.pieces(name)), node.gpu_model, kinds)


def published_score(policy: str, state: State, pod: PodClass) -> int:
    if policy == "FGD":
        return fgd(state, pod, TYPICAL)[0]
    return PLAIN_SCORES[policy](state, pod)


TYPICAL = typical_pods([pod for pod, count in MIX.counts for _ in range(count)])


@pytest.mark.parametrize("policy", [*PLAIN_SCORES, "FGD"])
@few
@given(fleets(), own_doings)
def test_a_pod_goes_to_the_node_with_the_best_published_score(
    policy: str, nodes: list[NodeBuilder], events: list[Event | Round]
) -> None:
    world, plain = begin(nodes, policy)
    for happening in events:
        if not isinstance(happening, Round):
            world.apply(happening)
            plain.apply(happening)
            continue
        plan = world.round()
        for place in plan.placed:
            wanted = plain.waiting[place.pod][0]
            fitting = plain.fitting(wanted)
            rank = {name: plain.nodes[name].rank or 0 for name in fitting}
            score = {name: published_score(policy, state_of(plain, name), class_of(wanted)) for name in fitting}
            assert place.node == max(fitting, key=lambda name, s=score, r=rank: (s[name], -r[name]))  # type: ignore[misc]
            plain.place(place)
        world.confirm(plan)
        for place in plan.placed:
            plain.pods[place.pod].bound = True


@pytest.mark.parametrize("policy", DETERMINISTIC)
@few
@given(happenings)
def test_the_best_node_is_the_best_when_each_node_is_looked_at_alone(policy: str, events: list[Event | Round]) -> None:
    """Scores do not depend on which nodes, or how many, are computed together."""
    world = Scenario(policy=policy, mix=MIX)
    for happening in events:
        if isinstance(happening, Round):
            world.confirm(world.round())
        else:
            world.apply(happening)
    cluster, profile = world.cluster, world.placement.profile
    for builder in ASKS:
        wanted = builder.made()
        fitting = [cluster.row_of[name] for name in world.fitting(builder)]
        ranked = []
        for row in fitting:
            alone = cluster.all_rows()[row : row + 1]
            points = 0
            for static, weight in profile.static_scores:
                values = static.points(cluster, wanted, alone)
                points += 0 if values is None else int(values[0]) * weight
            for score, weight in profile.node_scores:
                rule = score.compiled(cluster, wanted)
                points += 0 if rule is None else int(rule(Window(cluster, alone))[0]) * weight
            ranked.append((points, -int(cluster.rank[row]), row))
            assert int(world.shape(builder).keys()[row]) >> RANK_BITS == points
        assert world.shape(builder).best() == (max(ranked)[2] if ranked else -1)
