"""Whatever comes, goes, moves or is relabelled: counted domains say of every node what a recount over all pods says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from build.company import Rule, apart, called, selected, spread, together, wished
from build.depth import examples
from build.nodes import NodeBuilder, node
from build.passing import pass_through
from build.plain_company import AFFINITY, ANTI_AFFINITY, KEPT_AWAY, SPREAD, SPREAD_LABEL, PlainCompany, Standing
from build.pods import ask
from build.scenario import Scenario
from shoal.api.requirement import Requirement
from shoal.api.selectors import Selector
from shoal.engine.asks import Ask
from shoal.engine.cluster import RANK_BITS
from shoal.engine.domains.refusals import rule_refusals
from shoal.engine.domains.soft import Soft, points_of, spread_weight
from shoal.engine.events import Event, NamespaceSeen, NodeGone, NodeSeen, PodArrived, PodBound, PodGone, PodRejected
from shoal.engine.ledger import Ledger
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity
from shoal.engine.pod_rules import SelectedPods
from shoal.engine.profile import Profile
from shoal.engine.reasons import Code
from shoal.engine.rescan import Rescan

NAMES = [f"n{index}" for index in range(5)]
KEYS = [f"p{index}" for index in range(10)]
TEAM = Selector((Requirement("team", "In", ("x",)),))
NOT_WEB = SelectedPods(Selector((Requirement("app", "NotIn", ("web",)),)), ("default", "other"))

WHO: list[PodIdentity] = [
    NO_IDENTITY,
    called(app="web"),
    called(app="web", version="2"),
    called(app="db"),
    called("other", app="web"),
    called("other"),
]
RULES: list[tuple[Rule, ...]] = [
    (),
    (),
    (apart("host", app="web"),),
    (apart("zone", selected("none", spaces=TEAM, app="web")),),
    (apart("host", selected()),),
    (apart("zone", NOT_WEB),),
    (together("zone", app="web"),),
    (together("host", app="db"), together("zone", version="2")),
    (together("zone", app="web"), apart("host", app="web")),
    (wished(100, "zone", app="web"), wished(-20, "host", selected("other"))),
    (wished(7, "zone", app="db"), wished(-7, "zone", app="db")),
    (spread("zone", app="web"),),
    (spread("zone", skew=2, least=3, app="web"), spread("host", app="web")),
    (spread("zone", honors_taints=True, app="web"), spread("host", hard=False, app="web")),
    (spread("zone", honors_affinity=False, hard=False, app="web"), spread("host", hard=False, app="db")),
]
ASKS: list[Ask] = [ask().near(*rules).made() for rules in RULES]
ASKS += [
    ask().select("zone", "In", "a", "b").near(spread("zone", app="web")).made(),
    ask().tolerate("gpu").near(spread("zone", honors_taints=True, app="web")).made(),
    ask().cpu(3).near(apart("host", app="web")).made(),
    ask().cpu(3).made(),
]
SOFT = Soft(affinity=1, spread=1)
CODES = {
    SPREAD: Code.SPREAD,
    SPREAD_LABEL: Code.SPREAD_LABEL,
    AFFINITY: Code.POD_AFFINITY,
    ANTI_AFFINITY: Code.POD_ANTI_AFFINITY,
    KEPT_AWAY: Code.KEPT_AWAY,
}


@st.composite
def nodes(draw: st.DrawFn) -> NodeBuilder:
    name = draw(st.sampled_from(NAMES))
    there = node(name).cpu(4).rank(NAMES.index(name) * 3 % 5)
    zone = draw(st.sampled_from(["", "a", "a", "b", "c"]))
    there = there.label("zone", zone) if zone else there
    there = there.label("host", name) if draw(st.integers(0, 4)) else there
    return there.taint("gpu") if draw(st.integers(0, 3)) == 0 else there


class Hold:
    """A round is held and confirmed."""


class Look:
    """The verdict on some ask is asked for, so that its counts exist from now on."""

    def __init__(self, asks: int, who: int) -> None:
        self.ask, self.who = ASKS[asks], WHO[who]


class Trial:
    """Something is tried on the ledger, looked at, and taken back."""

    def __init__(self, row: int, evicted: int, left: int) -> None:
        self.row, self.evicted, self.left = row, evicted, left


class Renumbering:
    """One node goes for good, others come and go until the values of labels are numbered anew, and one comes."""

    def __init__(self, gone: str, come: NodeBuilder) -> None:
        self.gone, self.come = gone, come


Happening = Event | Hold | Look | Trial | Renumbering

keys, names = st.sampled_from(KEYS), st.sampled_from(NAMES)
people = st.sampled_from(WHO)
happenings = st.lists(
    st.one_of(
        nodes().map(lambda there: NodeSeen(there.facts())),
        nodes().map(lambda there: NodeSeen(there.facts())),
        st.builds(NodeGone, names),
        st.builds(
            PodBound, keys, st.sampled_from(ASKS), names, who=people, terminating=st.sampled_from([False, False, True])
        ),
        st.builds(
            PodBound, keys, st.sampled_from(ASKS), names, who=people, terminating=st.sampled_from([False, False, True])
        ),
        st.builds(PodArrived, keys, st.sampled_from(ASKS), st.integers(0, 1), who=people),
        st.builds(PodGone, keys),
        st.builds(PodRejected, keys),
        st.builds(NamespaceSeen, st.just("other"), st.sampled_from([{}, {"team": "x"}, {"team": "y"}])),
        st.builds(Look, st.integers(0, len(ASKS) - 1), st.integers(0, len(WHO) - 1)),
        st.builds(Trial, st.integers(0, 4), st.integers(0, 9), st.integers(0, 9)),
        st.builds(Renumbering, names, nodes()),
        st.builds(Hold),
    ),
    min_size=5,
    max_size=40,
)
many = settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def caring(cluster: object) -> Profile:
    return Profile("caring", soft=SOFT)


def lived(events: list[Happening]) -> Scenario:
    world = Scenario(policy=caring, least_values=1)
    for step, event in enumerate(events):
        match event:
            case Hold():
                world.confirm(world.round())
            case Trial():
                tried(world, event)
            case Renumbering():
                look_around(world)
                world.lose(event.gone)
                pass_through(world, f"at-{step}")
                world.see(event.come)
            case Look():
                world.cluster.charge(event.ask)
                world.placement.domains.verdict(event.ask, event.who)
            case _:
                world.apply(event)
    return world


def tried(world: Scenario, trial: Trial) -> None:
    cluster, ledger = world.cluster, Ledger(world.cluster)
    held = sorted(cluster.pods)
    if held:
        ledger.evict(held[trial.evicted % len(held)])
    staying = [key for key in sorted(cluster.pods) if not cluster.pods[key].is_terminating]
    if staying:
        ledger.mark_terminating(staying[trial.left % len(staying)])
    rows = sorted(cluster.row_of.values())
    if rows:
        for key in world.waiting():
            ledger.place(key, rows[trial.row % len(rows)], None)
    look_around(world)
    ledger.rollback()


def look_around(world: Scenario) -> None:
    for wanted in ASKS[::3]:
        world.cluster.charge(wanted)
        world.placement.domains.verdict(wanted, WHO[1])


def recount(world: Scenario) -> PlainCompany:
    """From the pods and nodes as they stand, and from nothing that was counted before."""
    cluster = world.cluster
    there = {
        name: replace(node(name), labels=cluster.labels.of(row), taints=cluster.taints.of(row))
        for name, row in cluster.row_of.items()
    }
    pods = [Standing(cluster.names[h.row], h.ask, h.who.traits, h.is_terminating) for h in cluster.pods.values()]
    return PlainCompany({name: b.facts() for name, b in there.items()}, pods, dict(cluster.namespaces))


@many
@given(happenings)
def test_hard_rules_allow_what_a_recount_allows(events: list[Happening]) -> None:
    world = lived(events)
    plain, cluster = recount(world), world.cluster
    rows = np.array(sorted(cluster.row_of.values()), np.int64)
    for wanted in ASKS:
        cluster.charge(wanted)
        for who in WHO:
            want = {name: plain.refusal(name, wanted, who.traits) for name in plain.nodes}
            verdict = world.placement.domains.verdict(wanted, who)
            allowed = None if verdict is None else verdict.allowed
            # Nodes that the pod's own rules turn away may be judged either way.
            for name in plain.nodes:
                node_ = plain.nodes[name]
                if wanted.nodes.matches(name, node_.labels) and not node_.taints:
                    got = allowed is None or bool(allowed[cluster.row_of[name]])
                    assert got == (not want[name]), (name, want[name])
            found = {
                cluster.names[row]: code
                for code, refused in rule_refusals(cluster, wanted, who, rows)
                for row in rows[refused].tolist()
            }
            assert found == {name: CODES[why] for name, why in want.items() if why}


@many
@given(happenings)
def test_preferences_are_worth_what_a_recount_finds(events: list[Happening]) -> None:
    world = lived(events)
    plain, cluster = recount(world), world.cluster
    for wanted in ASKS:
        cluster.charge(wanted)
        for who in WHO:
            verdict = world.placement.domains.verdict(wanted, who)
            extra = None if verdict is None else verdict.extra
            got = {name: 0 if extra is None else int(extra[row]) >> RANK_BITS for name, row in cluster.row_of.items()}
            assert level(got) == level(points(plain, wanted, who)), (wanted, who)


def level(points: dict[str, int]) -> dict[str, int]:
    """Points that all nodes have tell nothing apart."""
    least = min(points.values(), default=0)
    return {name: value - least for name, value in points.items()}


def points(plain: PlainCompany, wanted: Ask, who: PodIdentity) -> dict[str, int]:
    felt = {name: plain.felt(name, wanted, who.traits) for name in plain.nodes}
    best = max(felt.values(), default=0)
    found = {name: int(points_of(np.array([best - value]))[0]) for name, value in felt.items()}
    if any(not rule.hard for rule in wanted.near.spread):
        for name in plain.nodes:
            uneven = plain.unevenness(name, wanted)
            if uneven is not None:
                weights = [spread_weight(domains) for _, domains in uneven]
                distance = sum(above * weight for (above, _), weight in zip(uneven, weights, strict=True))
                found[name] += int(points_of(np.array([distance // min(weights)]))[0])
    return found


@many
@given(happenings)
def test_the_node_chosen_is_the_one_that_a_full_look_chooses(events: list[Happening]) -> None:
    world = lived(events)
    rescan = Rescan(world.cluster, world.placement.profile)
    for wanted in ASKS:
        charge = world.cluster.charge(wanted)
        for who in WHO:
            chosen = world.placement.choose(charge, 0, who)
            assert (-1 if chosen is None else chosen[0]) == rescan.best(charge, who)


crowds = st.lists(
    st.one_of(
        *[st.builds(PodArrived, keys, st.sampled_from(ASKS), st.integers(0, 1), who=people)] * 6,
        st.builds(PodGone, keys),
        st.builds(Hold),
    ),
    min_size=8,
    max_size=25,
)


@many
@given(st.lists(nodes(), min_size=1, max_size=4), crowds)
def test_after_a_round_whoever_waits_fits_nowhere(fleet: list[NodeBuilder], events: list[Happening]) -> None:
    """No line hides a pod that could go: neither behind one of another kin, nor because its company came later."""
    world = lived([*(NodeSeen(there.facts()) for there in fleet), *events, Hold()])
    plain, cluster = recount(world), world.cluster
    for key in world.waiting():
        waiting = cluster.pending[key]
        for name in room_for(world, waiting.charge.ask):
            assert plain.refusal(name, waiting.charge.ask, waiting.who.traits), (key, name)


def room_for(world: Scenario, wanted: Ask) -> set[str]:
    """Nodes that fit as long as nobody asks about other pods."""
    return {world.cluster.names[row] for row in world.shape(wanted).feasible().tolist()}
