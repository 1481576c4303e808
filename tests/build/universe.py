"""Small worlds drawn at random: a few nodes that change, a few asks of every kind, and events in any order.

Small on purpose: six names and a dozen asks collide all the time, which is where the mistakes are.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask, named, term, where
from shoal.engine.asks import Ask
from shoal.engine.device_demand import DeviceGrant, compute_grant
from shoal.engine.events import (
    DaemonSetGone,
    DaemonSetSeen,
    Event,
    NodeGone,
    NodeSeen,
    PodArrived,
    PodBound,
    PodGone,
    PodRejected,
)
from shoal.engine.pod_mix import PodClass, PodMix

NODE_NAMES = [f"n{index}" for index in range(6)]
POD_KEYS = [f"p{index}" for index in range(12)]
RESOURCES = ("cpu", "memory", "pods", "example.com/fpga")

ASKS: list[AskBuilder] = [
    ask(),
    ask().cpu(2).memory_gib(1),
    ask().cpu(7),
    ask().cpu(0.5).share(250),
    ask().cpu(1).share(333),
    ask().share(700),
    ask().cpu(1).gpus(1),
    ask().cpu(2).gpus(2),
    ask().gpus(10),
    ask().gpus(1).model("A"),
    ask().share(500).model("A", "B"),
    ask().cpu(1).port(80),
    ask().port(80, "10.0.0.1").port(81),
    ask().select("zone", "In", "a").cpu(1),
    ask().either(term(where("zone", "NotIn", "a")), term(names=named("In", "n0"))).share(100),
    ask().cpu(1).prefer(10, term(where("zone", "In", "b"))),
    ask().tolerate("gpu").gpus(1),
    ask().resource("example.com/fpga", 1),
    ask().on("n1").cpu(1),
]
WANTED: list[Ask] = [builder.made() for builder in ASKS]

DAEMON_ASKS = [ask().cpu(1).made(), ask().memory_gib(1).select("zone", "Exists").made()]
DAEMON_NAMES = ["exporter", "shipper"]

MIX = PodMix.of(
    [
        *[PodClass(2_000, 0, 0)] * 3,
        *[PodClass(500, 250, 1)] * 4,
        *[PodClass(1_000, 330, 1)] * 2,
        *[PodClass(1_000, 1000, 1)] * 3,
        *[PodClass(0, 1000, 1, "A")] * 2,
        *[PodClass(2_000, 1000, 2)] * 2,
        PodClass(0, 500, 1, "A|B"),
    ]
)


@st.composite
def nodes(draw: st.DrawFn, name: str | None = None, *, gpu_counts: tuple[int, ...] = (0, 1, 2, 4, 12)) -> NodeBuilder:
    """One of the six nodes in some state; its rank belongs to its name."""
    chosen = name or draw(st.sampled_from(NODE_NAMES))
    there = node(chosen).rank(NODE_NAMES.index(chosen) * 7 % 6)
    there = there.cpu(draw(st.sampled_from([2, 8, 16]))).memory_gib(draw(st.sampled_from([1, 64])))
    there = there.pods(draw(st.sampled_from([1, 3, 110]))).gpus(draw(st.sampled_from(gpu_counts)))
    model = draw(st.sampled_from(["", "A", "B"]))
    there = there.model(model) if there.gpu_count and model else there
    zone = draw(st.sampled_from(["", "a", "b"]))
    there = there.label("zone", zone) if zone else there
    taint = draw(st.sampled_from(["", "", "NoSchedule", "PreferNoSchedule"]))
    if taint == "NoSchedule":
        there = there.taint("gpu")
    elif taint == "PreferNoSchedule":
        there = there.taint("slow", "PreferNoSchedule")
    if draw(st.integers(0, 4)) == 0:
        there = there.resource("example.com/fpga", 2)
    return there.cordoned() if draw(st.integers(0, 6)) == 0 else there


def fleets(*, gpu_counts: tuple[int, ...] = (0, 1, 2, 4)) -> st.SearchStrategy[list[NodeBuilder]]:
    """All six nodes."""
    return st.tuples(*(nodes(name, gpu_counts=gpu_counts) for name in NODE_NAMES)).map(list)


@dataclass(frozen=True)
class Round:
    """A round is held; the world confirms its placements except those at these places, which it rejects."""

    rejected: frozenset[int]


keys = st.sampled_from(POD_KEYS)
names = st.sampled_from(NODE_NAMES)
arrivals = st.builds(PodArrived, keys, st.sampled_from(WANTED), st.integers(0, 2))
rounds = st.builds(Round, st.frozensets(st.integers(0, 4), max_size=2))
departures = st.builds(PodGone, keys)


@st.composite
def bindings(draw: st.DrawFn) -> PodBound:
    """A pod put somewhere by somebody else, room or not."""
    daemon_set = draw(st.sampled_from(["", "", *DAEMON_NAMES]))
    if daemon_set:
        wanted = DAEMON_ASKS[DAEMON_NAMES.index(daemon_set)]
        return PodBound(draw(keys), wanted, draw(names), daemon_set=daemon_set)
    wanted = draw(st.sampled_from(WANTED))
    grant: DeviceGrant | None = None
    if wanted.gpu_milli and wanted.gpu_milli <= 1000 and draw(st.booleans()):
        grant = compute_grant((draw(st.integers(0, 1)),), wanted.gpu_milli)
    return PodBound(draw(keys), wanted, draw(names), grant)


friendly: st.SearchStrategy[Event | Round] = st.one_of(arrivals, arrivals, arrivals, departures, rounds)
"""Only our own placements: what happens when nobody else schedules and nodes stay as they are."""

anything: st.SearchStrategy[Event | Round] = st.one_of(
    nodes().map(lambda there: NodeSeen(there.facts())),
    nodes().map(lambda there: NodeSeen(there.facts())),
    st.builds(NodeGone, names),
    arrivals,
    arrivals,
    bindings(),
    departures,
    st.builds(PodRejected, keys),
    st.builds(DaemonSetSeen, st.sampled_from(DAEMON_NAMES), st.sampled_from(DAEMON_ASKS)),
    st.builds(DaemonSetGone, st.sampled_from(DAEMON_NAMES)),
    rounds,
    rounds,
)
