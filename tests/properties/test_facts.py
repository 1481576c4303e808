"""Whatever happens in whatever order, the columns hold what a recount in plain Python finds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.nodes import node
from build.plain import PlainFleet
from build.scenario import Scenario
from build.snapshot import facts_of
from build.universe import ASKS, MIX, RESOURCES, Round, anything
from shoal.engine import facts
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.devices.kinds import grant_there
from shoal.engine.events import Event, PodRejected
from shoal.engine.ledger import Ledger

happenings = st.lists(anything, min_size=5, max_size=40)


def live(world: Scenario, plain: PlainFleet, happening: Event | Round) -> None:
    """One step, told to both; what the engine places is told to the recount."""
    if not isinstance(happening, Round):
        world.apply(happening)
        plain.apply(happening)
        return
    plan = world.round()
    for place in plan.placed:
        plain.place(place)
    for index, place in enumerate(plan.placed):
        if index in happening.rejected:
            world.reject(place.pod)
            plain.apply(world_rejects(place.pod))
        else:
            world.bind(place.pod, world.cluster.pods[place.pod].ask, place.node)
            plain.pods[place.pod].bound = True


def world_rejects(key: str) -> Event:
    return PodRejected(key)


def history(events: list[Event | Round], policy: str = "BestFit") -> tuple[Scenario, PlainFleet]:
    world, plain = Scenario(policy=policy, mix=MIX), PlainFleet()
    for happening in events:
        live(world, plain, happening)
    return world, plain


@settings(max_examples=examples(60), deadline=None)
@given(happenings)
def test_amounts_pods_and_the_line_are_those_of_a_recount(events: list[Event | Round]) -> None:
    world, plain = history(events)
    cluster = world.cluster
    assert set(cluster.row_of) == set(plain.nodes)
    assert world.placed() == {key: held.node for key, held in plain.pods.items()}
    assert world.waiting() == plain.in_line()
    total_free = 0
    for name, row in cluster.row_of.items():
        assert {r: world.free(name, r) for r in RESOURCES} == {r: plain.free(name, r) for r in RESOURCES}
        pieces = plain.pieces(name)
        assert world.pieces(name) == pieces
        to_have = plain.to_have(name)
        assert cluster.free[row, facts.GPU_WHOLE] == to_have.count(1000)
        assert cluster.free[row, facts.GPU_BEST] == max([0, *to_have])
        total_free += int(cluster.free[row, facts.GPU_MILLI])
    assert cluster.gpu_free_milli == total_free
    taken = {
        (port.port, port.protocol, held.node, port.ip) for held in plain.pods.values() for port in held.ask.host_ports
    }
    assert taken == {
        (number, protocol, cluster.names[row], ip)
        for (number, protocol), by_row in cluster.ports.in_use().items()
        for row, ips in by_row.items()
        for ip in ips
    }


@settings(max_examples=examples(50), deadline=None)
@given(happenings)
def test_an_ask_fits_exactly_where_the_recount_says(events: list[Event | Round]) -> None:
    world, plain = history(events)
    for wanted in ASKS:
        assert world.fitting(wanted) == plain.fitting(wanted.made()), wanted


@settings(max_examples=examples(30), deadline=None)
@given(happenings, happenings)
def test_shapes_that_watched_fit_where_shapes_that_did_not_watch_do(
    before: list[Event | Round], after: list[Event | Round]
) -> None:
    world, plain = history(before)
    for wanted in ASKS[::2]:
        world.shape(wanted).refresh()
    for happening in after:
        live(world, plain, happening)
    for wanted in ASKS:
        assert world.fitting(wanted) == plain.fitting(wanted.made())


@st.composite
def trials(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Steps of a trial: place the n-th waiting pod, evict the n-th held pod, go back to the n-th mark."""
    step = st.tuples(st.sampled_from(["place", "place", "evict", "back"]), st.integers(0, 11))
    return draw(st.lists(step, min_size=1, max_size=15))


@settings(max_examples=examples(50), deadline=None)
@given(happenings, trials())
def test_rolling_back_restores_the_facts_bit_for_bit(events: list[Event | Round], steps: list[tuple[str, int]]) -> None:
    world, _ = history(events)
    cluster = world.cluster
    ledger = Ledger(cluster)
    marks = [(ledger.mark(), facts_of(cluster))]
    for step, number in steps:
        waiting, held = world.waiting(), sorted(cluster.pods)
        if step == "place" and waiting and cluster.row_of:
            key = waiting[number % len(waiting)]
            row = sorted(cluster.row_of.values())[number % len(cluster.row_of)]
            ledger.place(key, row, some_grant(world, key, row))
        elif step == "evict" and held:
            ledger.evict(held[number % len(held)])
        elif step == "back":
            del marks[number % len(marks) + 1 :]
            ledger.rollback(marks[-1][0])
            assert facts_of(cluster) == marks[-1][1]
            continue
        marks.append((ledger.mark(), facts_of(cluster)))
    ledger.rollback()
    assert facts_of(cluster) == marks[0][1]
    assert_line_works(world)


def some_grant(world: Scenario, key: str, row: int) -> DeviceGrant | None:
    """A trial may do what no policy would: devices are forced where none fit."""
    devices = world.cluster.pending[key].charge.ask.devices
    if devices is None:
        return None
    return grant_there(world.cluster.devices, row, devices)


def assert_line_works(world: Scenario) -> None:
    """Every pod that waits is still in its line: given room for all, all are placed, in order."""
    waiting = world.waiting()
    asks = {key: world.cluster.pending[key].charge.ask for key in waiting}
    plain_ones = [key for key in waiting if asks[key] == ASKS[0].made()]
    for index in range(len(plain_ones)):
        world.see(node(f"spare{index}"))
    assert [place.pod for place in world.round().placed if place.pod in plain_ones] == plain_ones
