"""Whatever happens to claims: no device is given twice, no counter overdrawn, trials leave no trace, keys are true."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.dra import asking, claim, device, full, option, own, pool, seen, shared, there_is, wants
from build.nodes import node
from build.pods import ask
from build.scenario import Scenario
from build.snapshot import facts_of
from shoal.engine.asks import Ask
from shoal.engine.dra.devices import SliceFacts
from shoal.engine.dra.requests import Request
from shoal.engine.events import ClaimGone
from shoal.engine.ledger import Ledger

NODES = ["a", "b", "c"]
SHARED = {"team/x": claim(wants(1)), "team/y": claim(wants(2), match="rack"), "team/z": claim(wants(1, "halves"))}
ASKS: list[Ask] = [
    asking(own(wants(1))),
    asking(own(wants(2))),
    asking(own(wants(1, "halves")), wanted=ask().cpu(1)),
    asking(own(wants(1, "wholes"))),
    asking(own(Request("gpu", (option(1, "wholes", "best"), option(1, "halves", "next"))))),
    asking(own(wants(None, "halves"))),
    asking(own(wants(3, admin=True))),
    asking(shared("team/x")),
    asking(shared("team/y")),
    asking(shared("team/z"), own(wants(1))),
    asking(shared("team/none")),
]
PODS = [f"p{number}" for number in range(8)]


def cut(at: str, generation: int = 0) -> SliceFacts:
    """One GPU in a whole or two halves, and two plain devices."""
    return pool(
        device("whole", draws={"slices": 7}, rack="a"),
        device("left", draws={"slices": 4}, rack="a"),
        device("right", draws={"slices": 3}, rack="b"),
        *(device(name, rack=rack) for name, rack in (("g0", "a"), ("g1", "b"))[: 2 - generation % 2]),
        at=at,
        counters={"slices": 7},
        generation=generation,
    )


def cluster_of() -> Scenario:
    world = Scenario(*(node(name).cpu(2) for name in NODES))
    pools = [cut(name) for name in NODES]
    sets = {
        "halves": [full(half, name) for half in ("left", "right") for name in NODES],
        "wholes": [full("whole", name) for name in NODES],
    }
    for event in seen(*pools, **sets):
        world.apply(event)
    for key, content in list(SHARED.items())[:2]:
        world.apply(there_is(key, content))
    return world


steps = st.one_of(
    st.tuples(st.just("arrive"), st.sampled_from(PODS), st.sampled_from(range(len(ASKS)))),
    st.tuples(st.just("arrive"), st.sampled_from(PODS), st.sampled_from(range(len(ASKS)))),
    st.tuples(st.just("go"), st.sampled_from(PODS), st.just(0)),
    st.tuples(st.just("reject"), st.sampled_from(PODS), st.just(0)),
    st.tuples(st.just("round"), st.just(""), st.just(0)),
    st.tuples(st.just("claim"), st.sampled_from(sorted(SHARED)), st.integers(0, 2)),
)
histories = st.lists(steps, min_size=3, max_size=25)
trials = st.lists(st.tuples(st.sampled_from(["place", "evict", "back"]), st.integers(0, 9)), max_size=12)


def live(world: Scenario, step: tuple[str, str, int]) -> None:
    what, name, number = step
    if what == "arrive":
        world.arrive(name, ASKS[number])
    elif what == "go":
        world.go(name)
    elif what == "reject":
        world.reject(name)
    elif what == "round":
        world.round()
    elif number:
        world.apply(there_is(name, SHARED[name]))
    else:
        world.apply(ClaimGone(name))


def wrongs(world: Scenario) -> list[str]:
    """What must never be: a device given twice or held by nobody the books know, a counter below zero."""
    holders: dict[tuple[str, ...], set[str]] = {}
    for pod, holding in world.cluster.pods.items():
        for each in holding.grant.claims if holding.grant is not None else ():
            owner = each.shared or f"{pod} {each.name}"
            devices = tuple(pick.device for pick in each.picks if not pick.admin)
            if devices:
                holders.setdefault(devices, set()).add(owner)
    taken = Counter(name for devices, owners in holders.items() for name in devices for _ in owners)
    usage = world.cluster.dra.usage
    twice = [f"{device} is given {count} times" for device, count in taken.items() if count != 1]
    unbooked = [f"{device} is in one book only" for device in set(taken) ^ set(usage.in_use())]
    overdrawn = [
        f"{counter} of {name} is at {left}"
        for name in NODES
        for counter, left in usage.counters_left(f"gpu.test/{name}").items()
        if left < 0
    ]
    return [*twice, *unbooked, *overdrawn]


@settings(max_examples=examples(100), deadline=None)
@given(histories)
def test_no_device_is_given_twice_and_no_counter_overdrawn(history: list[tuple[str, str, int]]) -> None:
    world = cluster_of()
    for step in history:
        live(world, step)
        assert wrongs(world) == []


@settings(max_examples=examples(60), deadline=None)
@given(histories)
def test_shapes_that_watched_fit_where_shapes_that_did_not_watch_do(history: list[tuple[str, str, int]]) -> None:
    world = cluster_of()
    for step in history:
        for wanted in ASKS:
            world.shape(wanted).refresh()
        live(world, step)
    fresh = {wanted: set(world.fresh_shape(wanted).feasible().tolist()) for wanted in ASKS}
    assert {wanted: set(world.shape(wanted).feasible().tolist()) for wanted in ASKS} == fresh


@settings(max_examples=examples(60), deadline=None)
@given(histories, trials)
def test_rolling_back_restores_who_has_which_device(
    history: list[tuple[str, str, int]], steps: list[tuple[str, int]]
) -> None:
    world = cluster_of()
    for step in history:
        live(world, step)
    cluster = world.cluster
    ledger = Ledger(cluster)
    marks = [(ledger.mark(), facts_of(cluster))]
    for what, number in steps:
        waiting, held = world.waiting(), sorted(cluster.pods)
        if what == "place" and waiting:
            key = waiting[number % len(waiting)]
            row = number % len(NODES)
            refs = cluster.pending[key].charge.ask.claims
            ledger.place(key, row, cluster.dra.with_claims(None, refs, row))
        elif what == "evict" and held:
            ledger.evict(held[number % len(held)])
        elif what == "back":
            del marks[number % len(marks) + 1 :]
            ledger.rollback(marks[-1][0])
            assert facts_of(cluster) == marks[-1][1]
            continue
        marks.append((ledger.mark(), facts_of(cluster)))
    ledger.rollback()
    assert facts_of(cluster) == marks[0][1]
