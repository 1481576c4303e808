"""Every count of a refusal is what looking at one node after the other gives, from the events alone."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from build.depth import examples
from build.evidence_nodes import CORDON, DEDICATED, ask, fleet, node
from shoal.api.taints import Taint, Toleration, untolerated
from shoal.engine.asks import Ask, HostPort
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import Demand, GpuShare, WholeGpus
from shoal.engine.events import NodeFacts, PodBound
from shoal.engine.evidence import evidence
from shoal.engine.filters import STATIC_FILTERS
from shoal.engine.reasons import EMPTY_GPUS, GPU_PIECE, Cause, Code, Evidence, Shortfall

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
