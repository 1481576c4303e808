"""Every refusal's causes are counted and true, and the nearest node is the one that lacks least."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from build.depth import examples
from shoal.api.node_affinity import NodeRule, node_rule
from shoal.api.taints import Taint, Toleration, untolerated
from shoal.engine.asks import Ask, HostPort
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import Demand, GpuShare, WholeGpus
from shoal.engine.events import NodeFacts, NodeGone, NodeSeen, PodBound, PodGone
from shoal.engine.evidence import Evidences, evidence
from shoal.engine.filters import STATIC_FILTERS
from shoal.engine.intake import Intake
from shoal.engine.reasons import EMPTY_GPUS, GPU_PIECE, Cause, Code, Evidence, Shortfall

DEDICATED = Taint("dedicated", "NoSchedule", "training")
CORDON = Toleration("node.kubernetes.io/unschedulable", "Exists")


def node(
    name: str,
    cpu: int = 8000,
    gpus: int = 0,
    model: str = "",
    pods: int = 10,
    taints: tuple[Taint, ...] = (),
    cordoned: bool = False,
    zone: str = "a",
    **extended: int,
) -> NodeFacts:
    amounts = {"cpu": cpu, "memory": 1000, "pods": pods, **extended}
    return NodeFacts(name, amounts, {"zone": zone}, taints, cordoned, gpus, model)


def ask(
    cpu: int = 0,
    devices: Demand | None = None,
    models: str = "",
    zone: str = "",
    node_name: str = "",
    ports: tuple[HostPort, ...] = (),
    tolerations: tuple[Toleration, ...] = (),
    **requests: int,
) -> Ask:
    amounts = {**requests, **({"cpu": cpu} if cpu else {})}
    return Ask(
        requests=tuple(sorted(amounts.items())),
        devices=devices,
        gpu_models=frozenset(models.split("|")) if models else frozenset(),
        nodes=node_rule({"zone": zone}, None) if zone else NodeRule(),
        tolerations=tolerations,
        host_ports=ports,
        node_name=node_name,
    )


def bound(node_name: str, ask: Ask, key: str = "") -> PodBound:
    return PodBound(key or node_name, ask, node_name)


def fleet(*nodes: NodeFacts, pods: tuple[PodBound, ...] = ()) -> Cluster:
    intake = Intake(Cluster())
    for each in nodes:
        intake.apply(NodeSeen(each))
    for pod in pods:
        intake.apply(pod)
    return intake.cluster


class Case(NamedTuple):
    nodes: tuple[NodeFacts, ...]
    ask: Ask
    causes: tuple[Cause, ...]
    pods: tuple[PodBound, ...] = ()


COUNTED = {
    "a cluster without nodes has no causes": Case((), ask(cpu=1), ()),
    "a node counts under every resource it lacks": Case(
        (node("a", cpu=1000), node("b", cpu=1000, fpga=1)),
        ask(cpu=2000, fpga=1),
        (Cause(Code.INSUFFICIENT, "cpu", 2), Cause(Code.INSUFFICIENT, "fpga", 1)),
    ),
    "a node that a rule turns away is not asked for resources": Case(
        (node("a", cpu=0, zone="b"),),
        ask(cpu=2000, zone="a"),
        (Cause(Code.AFFINITY, "", 1),),
    ),
    "a node counts under the first rule that it fails": Case(
        (node("a", cordoned=True, taints=(DEDICATED,)), node("b", taints=(DEDICATED,))),
        ask(),
        (Cause(Code.UNSCHEDULABLE, "", 1), Cause(Code.TAINTED, "dedicated: training", 1)),
    ),
    "taints are told apart by key and value": Case(
        (
            node("a", taints=(DEDICATED,)),
            node("b", taints=(Taint("spot", "NoExecute"),)),
            node("c", taints=(DEDICATED,)),
        ),
        ask(),
        (Cause(Code.TAINTED, "dedicated: training", 2), Cause(Code.TAINTED, "spot: ", 1)),
    ),
    "a taint that only discourages turns nobody away": Case(
        (node("a", taints=(Taint("spot", "PreferNoSchedule"),)),),
        ask(cpu=9000),
        (Cause(Code.INSUFFICIENT, "cpu", 1),),
    ),
    "a node asked for by name leaves out all others": Case(
        (node("a"), node("b", cpu=0), node("c")),
        ask(cpu=100, node_name="b"),
        (Cause(Code.NODE_NAME, "b", 2), Cause(Code.INSUFFICIENT, "cpu", 1)),
    ),
    "a model the fleet lacks matches no node": Case(
        (node("a", gpus=2, model="T4"), node("b")),
        ask(devices=WholeGpus(1), models="H100|A100"),
        (Cause(Code.GPU_MODEL, "A100|H100", 2),),
    ),
    "whole GPUs are missing where too few are empty": Case(
        (node("a", gpus=4), node("b", gpus=2), node("c")),
        ask(devices=WholeGpus(4)),
        (Cause(Code.NO_DEVICE, "4 empty GPUs", 3),),
        (bound("a", ask(devices=GpuShare(100))),),
    ),
    "a share is missing where no single GPU has that much left": Case(
        (node("a", gpus=2),),
        ask(devices=GpuShare(300)),
        (Cause(Code.NO_DEVICE, "a GPU with 300 thousandths free", 1),),
        (bound("a", ask(devices=GpuShare(800)), "x"), bound("a", ask(devices=GpuShare(750)), "y")),
    ),
    "a node with all pod slots taken has too many pods": Case(
        (node("a", pods=1),),
        ask(),
        (Cause(Code.TOO_MANY_PODS, "", 1),),
        (bound("a", ask()),),
    ),
    "a node whose port is taken is not asked what else it lacks": Case(
        (node("a"), node("b")),
        ask(cpu=9000, ports=(HostPort(80), HostPort(443))),
        (Cause(Code.PORTS, "80, 443", 1), Cause(Code.INSUFFICIENT, "cpu", 1)),
        (bound("a", ask(ports=(HostPort(443),))),),
    ),
    "a tolerated cordon is no cause": Case(
        (node("a", cordoned=True),),
        ask(cpu=9000, tolerations=(CORDON,)),
        (Cause(Code.INSUFFICIENT, "cpu", 1),),
    ),
}


@pytest.mark.parametrize("case", COUNTED.values(), ids=COUNTED)
def test_causes(case: Case) -> None:
    found = evidence(fleet(*case.nodes, pods=case.pods), case.ask)
    assert found.causes == case.causes
    assert found.nodes == len(case.nodes)
    assert found.fitting == 0


PORT_80 = ask(ports=(HostPort(80),))
HALF = ask(cpu=4000)

NEAREST: dict[str, tuple[Case, str, tuple[Shortfall, ...]]] = {
    "the smallest gap in proportion to what is asked": (
        Case((node("a", cpu=1000), node("b", cpu=7000), node("c", cpu=5000)), ask(cpu=8000), ()),
        "b",
        (Shortfall("cpu", 8000, 7000, 7000),),
    ),
    "of equal gaps the node that comes first in the order of nodes": (
        Case((node("a", cpu=1000), node("b", cpu=1000)), ask(cpu=8000), ()),
        "a",
        (Shortfall("cpu", 8000, 1000, 1000),),
    ),
    "a node that is only busy before one that is too small": (
        Case(
            (node("small", gpus=4), node("busy", gpus=8)),
            ask(devices=WholeGpus(8)),
            (),
            (bound("busy", ask(devices=WholeGpus(7))),),
        ),
        "busy",
        (Shortfall(EMPTY_GPUS, 8, 1, 8, Code.NO_DEVICE),),
    ),
    "a node in the wrong place is not near": (
        Case((node("far", cpu=0), node("away", zone="b")), ask(cpu=8000, zone="a"), ()),
        "far",
        (Shortfall("cpu", 8000, 0, 0),),
    ),
    "no node at all where the rules leave none": (Case((node("a", zone="b"),), ask(zone="a"), ()), "", ()),
    "the largest piece of one GPU is what a share lacks": (
        Case(
            (node("a", gpus=2),),
            ask(devices=GpuShare(300)),
            (),
            (bound("a", ask(devices=GpuShare(999)), "x"), bound("a", ask(devices=GpuShare(801)), "y")),
        ),
        "a",
        (Shortfall(GPU_PIECE, 300, 199, 1000, Code.NO_DEVICE),),
    ),
    "a taken port is a shortfall": (
        Case((node("a"),), ask(ports=(HostPort(80),)), (), (bound("a", ask(ports=(HostPort(80),))),)),
        "a",
        (Shortfall("80", 1, 0, 1, Code.PORTS),),
    ),
    "two small gaps before one large": (
        Case((node("a", cpu=3000), node("b", cpu=7900)), ask(cpu=8000, memory=1001), ()),
        "b",
        (Shortfall("cpu", 8000, 7900, 7900), Shortfall("memory", 1001, 1000, 1000)),
    ),
    "a taken port weighs as much as a resource all gone": (
        Case((node("a"), node("b")), ask(cpu=8000, ports=(HostPort(80),)), (), (bound("a", PORT_80), bound("b", HALF))),
        "b",
        (Shortfall("cpu", 8000, 4000, 8000),),
    ),
    "a fitting node has no shortfalls": (Case((node("a", cpu=1), node("b")), ask(cpu=8), ()), "b", ()),
}


@pytest.mark.parametrize(("case", "name", "shortfalls"), NEAREST.values(), ids=NEAREST)
def test_nearest(case: Case, name: str, shortfalls: tuple[Shortfall, ...]) -> None:
    found = evidence(fleet(*case.nodes, pods=case.pods), case.ask)
    assert (found.nearest, found.shortfalls) == (name, shortfalls)


def test_a_node_that_left_is_not_counted() -> None:
    intake = Intake(fleet(node("a"), node("b")))
    intake.apply(NodeGone("a"))
    assert evidence(intake.cluster, ask(cpu=9000)).causes == (Cause(Code.INSUFFICIENT, "cpu", 1),)


def test_a_resource_nobody_has_heard_of_is_missing_everywhere() -> None:
    names = [f"example.com/r{number}" for number in range(20)]
    found = evidence(fleet(node("a")), Ask(requests=tuple((name, 1) for name in sorted(names))))
    assert {cause.detail for cause in found.causes} == set(names)


def test_evidence_is_gathered_once_until_the_facts_change() -> None:
    intake = Intake(fleet(node("a")))
    evidences = Evidences(intake.cluster)
    wanted = ask(cpu=8000)
    assert evidences.of(wanted).fitting == 1
    assert evidences.of(wanted) is evidences.of(ask(cpu=8000))
    intake.apply(PodBound("p", ask(cpu=1000), "a"))
    assert evidences.of(wanted).causes == (Cause(Code.INSUFFICIENT, "cpu", 1),)
    intake.apply(PodGone("p"))
    assert evidences.of(wanted).fitting == 1


# -- one node at a time, from the events alone ----------------------------------------------------------------

ZONES = ("a", "b")
MODELS = ("", "T4", "A100")
DEMANDS: tuple[Demand | None, ...] = (None, GpuShare(300), GpuShare(700), WholeGpus(1), WholeGpus(2))
PORTS = (HostPort(80), HostPort(80, ip="10.0.0.1"), HostPort(81), HostPort(80, "UDP"))

asks = st.builds(
    ask,
    cpu=st.sampled_from((0, 1000, 3000)),
    devices=st.sampled_from(DEMANDS),
    models=st.sampled_from(("", "T4", "T4|A100")),
    zone=st.sampled_from(("", *ZONES)),
    node_name=st.sampled_from(("", "", "", "n1")),
    ports=st.lists(st.sampled_from(PORTS), max_size=2, unique=True).map(tuple),
    tolerations=st.sampled_from(((), (CORDON,), (Toleration("dedicated", "Exists"),))),
    memory=st.integers(0, 600),
    fpga=st.integers(0, 1),
)
nodes = st.lists(
    st.builds(
        node,
        name=st.just(""),
        cpu=st.sampled_from((1000, 4000)),
        gpus=st.integers(0, 3),
        model=st.sampled_from(MODELS),
        pods=st.integers(0, 3),
        taints=st.sampled_from(((), (DEDICATED,), (Taint("spot", "PreferNoSchedule"),))),
        cordoned=st.booleans(),
        zone=st.sampled_from(ZONES),
        fpga=st.integers(0, 1),
    ),
    max_size=6,
)


@settings(max_examples=examples(120), deadline=None)
@given(nodes, st.lists(st.tuples(st.integers(0, 5), asks), max_size=8), asks)
def test_every_count_is_what_looking_at_each_node_gives(
    made: list[NodeFacts], pods: list[tuple[int, Ask]], wanted: Ask
) -> None:
    named = [
        NodeFacts(f"n{i}", n.allocatable, n.labels, n.taints, n.unschedulable, n.gpus, n.gpu_model)
        for i, n in enumerate(made)
    ]
    on = [PodBound(f"p{i}", each, f"n{where}") for i, (where, each) in enumerate(pods) if where < len(named)]
    cluster = fleet(*named, pods=tuple(on))
    assert evidence(cluster, wanted) == one_by_one(cluster, named, on, wanted)


def one_by_one(cluster: Cluster, nodes: list[NodeFacts], pods: list[PodBound], wanted: Ask) -> Evidence:
    domain_count: Counter[tuple[Code, str]] = Counter()
    on_allowed: Counter[tuple[Code, str]] = Counter()
    candidates = []
    fitting = 0
    for place, facts in enumerate(nodes):
        here = [pod.ask for pod in pods if pod.node == facts.name]
        barred = barrier(facts, wanted)
        if barred is not None:
            domain_count[barred] += 1
            on_allowed[barred] += is_allowed(facts, wanted)
            continue
        lacks = shortfalls(cluster, facts, here, wanted)
        for cause in first_to_fail([cause for cause, _ in lacks]):
            domain_count[cause] += 1
            on_allowed[cause] += 1
        fitting += not lacks
        too_small = any(lack.total < lack.asked for lack in small(cluster, facts, wanted))
        gap = 0.0
        for _, lack in lacks:
            gap += (lack.asked - lack.free) / lack.asked
        candidates.append((too_small, gap, len(lacks), place, tuple(lack for _, lack in lacks)))
    causes = sorted_causes(domain_count)
    main = next(iter([*sorted_causes(on_allowed), *causes]), None)
    if not candidates:
        return Evidence(len(nodes), causes, fitting, main=main)
    *_, place, lacking = min(candidates)
    return Evidence(len(nodes), causes, fitting, nodes[place].name, lacking, main)


def sorted_causes(domain_count: Counter[tuple[Code, str]]) -> tuple[Cause, ...]:
    causes = (Cause(*key, count) for key, count in domain_count.items() if count)
    return tuple(sorted(causes, key=lambda c: (-c.nodes, c.code, c.detail)))


def is_allowed(facts: NodeFacts, wanted: Ask) -> bool:
    """Whether the pod's own conditions allow the node, whatever else keeps it off."""
    open_node = structs.replace(facts, unschedulable=False, taints=())
    return barrier(open_node, wanted) is None


def first_to_fail(causes: list[tuple[Code, str]]) -> list[tuple[Code, str]]:
    """Ports are asked before resources, and of these all that lack are named."""
    return [cause for cause in causes if cause[0] is Code.PORTS] or causes


def barrier(facts: NodeFacts, wanted: Ask) -> tuple[Code, str] | None:
    if facts.unschedulable and CORDON not in wanted.tolerations:
        return Code.UNSCHEDULABLE, ""
    if wanted.node_name not in {"", facts.name}:
        return Code.NODE_NAME, wanted.node_name
    labels = {**facts.labels, **({"nvidia.com/gpu.product": facts.gpu_model} if facts.gpu_model else {})}
    checks: dict[Code, tuple[Code, str] | None] = {}
    if not wanted.nodes.matches(facts.name, labels):
        checks[Code.AFFINITY] = (Code.AFFINITY, "")
    taint = untolerated(facts.taints, wanted.tolerations)
    if taint is not None:
        checks[Code.TAINTED] = (Code.TAINTED, f"{taint.key}: {taint.value}")
    if wanted.gpu_models and facts.gpu_model not in wanted.gpu_models:
        checks[Code.GPU_MODEL] = (Code.GPU_MODEL, "|".join(sorted(wanted.gpu_models)))
    order = [rule.code for rule in STATIC_FILTERS]
    return checks[min(checks, key=order.index)] if checks else None


def small(cluster: Cluster, facts: NodeFacts, wanted: Ask) -> list[Shortfall]:
    return [lack for _, lack in shortfalls(cluster, facts, [], wanted)]


def shortfalls(
    cluster: Cluster, facts: NodeFacts, here: list[Ask], wanted: Ask
) -> list[tuple[tuple[Code, str], Shortfall]]:
    """In the order of the record's columns."""
    found: list[tuple[tuple[Code, str], Shortfall]] = []

    def compare(code: Code, detail: str, unit: str, asked: int, free: int, total: int) -> None:
        if asked > 0 and free < asked:
            found.append(((code, detail), Shortfall(unit, asked, free, total, code)))

    def plain(resource: str) -> None:
        total = facts.allocatable.get(resource, 0)
        free = total - sum(each.request(resource) for each in here)
        compare(Code.INSUFFICIENT, resource, resource, wanted.request(resource), free, total)

    plain("cpu")
    plain("memory")
    slots = facts.allocatable["pods"]
    compare(Code.TOO_MANY_PODS, "", "pods", 1, slots - len(here), slots)
    row = cluster.row_of[facts.name]
    # Which device a pod got is the engine's choice: read it, but only for the pods that are here. A device given away
    # twice holds less than nothing, which is no more to offer than nothing.
    left = cluster.devices.free(row)[: facts.gpus] if here else [1000] * facts.gpus
    match wanted.devices:
        case WholeGpus(count):
            detail = "an empty GPU" if count == 1 else f"{count} {EMPTY_GPUS}"
            compare(Code.NO_DEVICE, detail, EMPTY_GPUS, count, left.count(1000), facts.gpus)
        case GpuShare(milli):
            detail = f"a GPU with {milli} thousandths free"
            compare(Code.NO_DEVICE, detail, GPU_PIECE, milli, max([0, *left]), 1000 if facts.gpus else 0)
    plain("fpga")
    taken = [port for each in here for port in each.host_ports]
    if any(port.conflicts(other) for port in wanted.host_ports for other in taken):
        ports = ", ".join(str(port.port) for port in wanted.host_ports)
        found.append(((Code.PORTS, ports), Shortfall(ports, 1, 0, 1, Code.PORTS)))
    return found
