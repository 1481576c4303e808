"""Converts a pod to its request: everything that can change its placement, in one spelling, and nothing else.

Tolerations have no order, repeats or seconds, ports with one name for "every address", so pods that differ only
in how they were written share one shape. `spec.nodeName` is left out: it says where a pod is, not what it asks, and
the event that reports a bound pod names the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from shoal.api.container import ANY_ADDRESS
from shoal.api.meta import ObjectMeta
from shoal.api.node_affinity import NodeAffinity
from shoal.api.pod import Pod, PodSpec
from shoal.api.resources import effective_requests
from shoal.api.taints import Toleration
from shoal.api.workloads import DaemonSet
from shoal.engine.asks import Ask, HostPort
from shoal.engine.device_notation import devices_of_pod
from shoal.engine.domains.reading import rules_of
from shoal.engine.dra.requests import ClaimRef
from shoal.engine.from_api.cores import container_amounts, pinned_milli
from shoal.engine.node_rules import both_rules, models_named, preferred_terms
from shoal.engine.pod_rules import PodRules
from shoal.units.errors import Where


def ask_of_pod(pod: Pod, added: NodeAffinity | None = None, claims: tuple[ClaimRef, ...] | None = None) -> Ask:
    """What the pod asks for. `added` is affinity that its scheduler profile puts on every pod.

    `claims` are its device claims as read by the reader of claims; unread, they are known by their names only.
    """
    where = _where("Pod", pod.metadata)
    near = rules_of(pod.spec, pod.metadata.namespace, pod.metadata.labels)
    ask = _ask(pod.spec, pod.metadata.annotations, pod.spec.tolerations, added, near, where)
    refs = claims_by_name(pod) if claims is None else claims
    return structs.replace(ask, claims=refs) if refs else ask


def daemon_set_ask(daemon_set: DaemonSet) -> Ask:
    """What each of the DaemonSet's pods asks for, the tolerations that its controller adds included."""
    template = daemon_set.spec.template
    near = rules_of(template.spec, daemon_set.metadata.namespace, template.metadata.labels)
    where = _where("DaemonSet", daemon_set.metadata)
    return _ask(template.spec, template.metadata.annotations, daemon_set.tolerations(), None, near, where)


def _ask(
    spec: PodSpec,
    annotations: Mapping[str, str],
    tolerations: Iterable[Toleration],
    added: NodeAffinity | None,
    near: PodRules,
    where: Where,
) -> Ask:
    requests = effective_requests(spec)
    containers = [container_amounts(container) for container in spec.containers]
    devices = devices_of_pod(annotations, requests, where, containers, pinned_milli(spec))
    nodes = both_rules(spec.node_rule(), added)
    return Ask(
        requests=tuple(requests.items()),
        devices=devices,
        gpu_models=models_named(nodes) if devices is not None else frozenset(),
        nodes=nodes,
        preferred=preferred_terms(spec, added),
        tolerations=_in_one_spelling(tolerations),
        host_ports=tuple(
            HostPort(port, protocol, "" if address == ANY_ADDRESS else address)
            for address, protocol, port in spec.host_ports()
        ),
        near=near,
    )


def _in_one_spelling(tolerations: Iterable[Toleration]) -> tuple[Toleration, ...]:
    plain = {(t.key, t.operator or "Equal", t.value, t.effect) for t in tolerations}
    return tuple(Toleration(key, operator, value, effect) for key, operator, value, effect in sorted(plain))


def _where(kind: str, meta: ObjectMeta) -> Where:
    return Where(obj=f"{kind} {meta.key}")


def claims_by_name(pod: Pod) -> tuple[ClaimRef, ...]:
    """The claims that exist under names of their own, and the trouble that templates are not known here."""
    namespace = pod.metadata.namespace
    return tuple(
        ClaimRef(claim.name, f"{namespace}/{claim.resource_claim_name}")
        if claim.resource_claim_name
        else ClaimRef(claim.name, trouble=f"claim {claim.name}: resource claim templates are not read here")
        for claim in pod.spec.resource_claims
    )
