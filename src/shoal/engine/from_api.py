"""Kubernetes objects in the engine's own terms: a pod's ask, a node's facts, the ask of a DaemonSet's pods.

An ask holds what can change a placement and nothing else, in one spelling: tolerations without order, repeats or
seconds, ports with one name for "every address". So pods that differ only in how they were written share one shape.
`spec.nodeName` is left out: it says where a pod is, not what it asks, and the event that reports a bound pod names
the node. Conditions are left out too: the node controller turns them into taints, and those are read.

Objects are taken as the api package hands them over, checked. Refused here are device counts for which nobody has a
machine, because devices are kept one by one, and pods with hard conditions that no rule of the engine reads yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from zlib import crc32

from shoal.api.container import ANY_ADDRESS
from shoal.api.meta import ObjectMeta
from shoal.api.node import Node
from shoal.api.node_affinity import NodeAffinity, NodeRule, NodeSelectorTerm, PreferredSchedulingTerm
from shoal.api.pod import Pod, PodSpec
from shoal.api.requirement import Requirement
from shoal.api.resources import PODS, amounts, effective_requests
from shoal.api.taints import Toleration
from shoal.api.workloads import DaemonSet
from shoal.engine.asks import Ask, HostPort
from shoal.engine.cluster import GPU_MODEL_LABEL
from shoal.engine.devices.demand import Demand, WholeGpus
from shoal.engine.events import NodeFacts
from shoal.units.errors import UserError, Where

GPU = "nvidia.com/gpu"

MOST_GPUS = 1024
"""On one node: sixteen devices, each advertised as sixty-four replicas."""

_WITHOUT = "leave the pod to another scheduler, or state it as a preference"

POD_SLOTS = 110
"""The kubelet's own default, for nodes written by hand that do not say; the kubelet always does."""


def ask_of_pod(pod: Pod, added: NodeAffinity | None = None) -> Ask:
    """What the pod asks for. `added` is affinity that its scheduler profile puts on every pod."""
    where = _where("Pod", pod.metadata)
    for path in unheeded(pod.spec):
        raise UserError("is a condition that Shoal does not check yet", where=where.with_path(path), fix=_WITHOUT)
    return _ask(pod.spec, pod.spec.tolerations, added, where)


def unheeded(spec: PodSpec) -> Iterator[str]:
    """Fields with conditions that no rule here reads: placing the pod as if they were not there would break them."""
    if spec.affinity is not None:
        for field, terms in (
            ("podAffinity", spec.affinity.pod_affinity),
            ("podAntiAffinity", spec.affinity.pod_anti_affinity),
        ):
            if terms is not None and terms.required:
                yield f"spec.affinity.{field}.requiredDuringSchedulingIgnoredDuringExecution"
    for index, constraint in enumerate(spec.topology_spread_constraints):
        if constraint.is_hard():
            yield f"spec.topologySpreadConstraints[{index}]"
    if spec.resource_claims:
        yield "spec.resourceClaims"


def daemon_set_ask(daemon_set: DaemonSet) -> Ask:
    """What each of the DaemonSet's pods asks for, the tolerations that its controller adds included."""
    spec = daemon_set.spec.template.spec
    return _ask(spec, daemon_set.tolerations(), None, _where("DaemonSet", daemon_set.metadata))


def node_facts_of(node: Node) -> NodeFacts:
    """What placement needs to know of the node. GPUs are devices here, and no longer a counted resource.

    The rank comes from the name, so that ties break alike after a restart and in whatever order nodes are listed.
    """
    allocatable = amounts(node.allocatable())
    allocatable.setdefault(PODS, POD_SLOTS)
    gpus = allocatable.pop(GPU, 0)
    _check_gpus(gpus, _where("Node", node.metadata).with_path("status.allocatable"))
    labels = node.metadata.labels
    return NodeFacts(
        name=node.metadata.name,
        allocatable=allocatable,
        labels=labels,
        taints=node.spec.taints,
        unschedulable=node.spec.unschedulable,
        gpus=gpus,
        gpu_model=labels.get(GPU_MODEL_LABEL, ""),
        rank=crc32(node.metadata.name.encode()),
    )


def _ask(spec: PodSpec, tolerations: Iterable[Toleration], added: NodeAffinity | None, where: Where) -> Ask:
    requests = effective_requests(spec)
    gpus = requests.pop(GPU, 0)
    _check_gpus(gpus, where.with_path("spec.containers"))
    nodes = _both(spec.node_rule(), added)
    devices: Demand | None = WholeGpus(gpus) if gpus else None
    return Ask(
        requests=tuple(requests.items()),
        devices=devices,
        gpu_models=_models(nodes) if gpus else frozenset(),
        nodes=nodes,
        preferred=_preferred(spec, added),
        tolerations=_in_one_spelling(tolerations),
        host_ports=tuple(
            HostPort(port, protocol, "" if address == ANY_ADDRESS else address)
            for address, protocol, port in spec.host_ports()
        ),
    )


def _both(rule: NodeRule, added: NodeAffinity | None) -> NodeRule:
    """The pod's rule and the profile's. Alternatives on both sides become every pair of them."""
    if added is None or added.required is None:
        return rule
    others = added.required.node_selector_terms
    if rule.terms is None:
        return NodeRule(rule.always, others)
    # A term without conditions matches nothing, and so does any pair that it is part of.
    pairs = [
        _joined(term, other) for term in rule.terms for other in others if not (term.is_empty() or other.is_empty())
    ]
    return NodeRule(rule.always, tuple(pairs))


def _joined(term: NodeSelectorTerm, other: NodeSelectorTerm) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        (*term.match_expressions, *other.match_expressions), (*term.match_fields, *other.match_fields)
    )


def _preferred(spec: PodSpec, added: NodeAffinity | None) -> tuple[PreferredSchedulingTerm, ...]:
    own = spec.affinity.node_affinity if spec.affinity is not None else None
    return tuple(term for affinity in (own, added) if affinity is not None for term in affinity.preferred)


def _models(nodes: NodeRule) -> frozenset[str]:
    """GPU models that the rule comes down to; empty when it leaves the model open.

    The rule itself turns the other nodes away. This tells policies which demand is tied to a model.
    """
    always = _named_models(nodes.always)
    if nodes.terms is None:
        return always or frozenset()
    by_term = [_named_models((*nodes.always, *term.match_expressions)) for term in nodes.terms if not term.is_empty()]
    named = [models for models in by_term if models is not None]
    return frozenset().union(*named) if len(named) == len(by_term) else frozenset()


def _named_models(requirements: Iterable[Requirement]) -> frozenset[str] | None:
    """The models that pass all the requirements which list models; None when none does."""
    lists = [frozenset(r.values) for r in requirements if r.key == GPU_MODEL_LABEL and r.operator == "In"]
    return frozenset.intersection(*lists) if lists else None


def _in_one_spelling(tolerations: Iterable[Toleration]) -> tuple[Toleration, ...]:
    plain = {(t.key, t.operator or "Equal", t.value, t.effect) for t in tolerations}
    return tuple(Toleration(key, operator, value, effect) for key, operator, value, effect in sorted(plain))


def _check_gpus(count: int, where: Where) -> None:
    if count > MOST_GPUS:
        raise UserError(f"{count} of {GPU}: no node has that many", where=where, fix=f"at most {MOST_GPUS} are read")


def _where(kind: str, meta: ObjectMeta) -> Where:
    return Where(obj=f"{kind} {meta.key}")
