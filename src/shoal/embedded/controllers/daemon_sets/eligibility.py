"""Decides on which nodes a DaemonSet needs a pod: node selector, affinity, and tolerated taints.

Daemon pods get tolerations for nodes that are not ready or cordoned, because they are needed there most. The scheduler
still binds them, by an affinity to the one node for which each pod is created.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
from msgspec import field

from shoal.api.node_affinity import NodeAffinity, NodeRule, node_rule
from shoal.api.taints import HARD_EFFECTS, Taint, Toleration, untolerated
from shoal.client.item import Obj

_ON_EVERY_NODE = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_ON_THE_HOST = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class NodeMeta(msgspec.Struct, rename="camel"):
    name: str
    labels: dict[str, str] = field(default_factory=dict)


class NodeSpec(msgspec.Struct, rename="camel"):
    taints: list[Taint] = field(default_factory=list)


class DaemonNode(msgspec.Struct, rename="camel"):
    """The fields of a node that decide; changes of other fields, such as heartbeats, cause no reconcile."""

    metadata: NodeMeta
    spec: NodeSpec = field(default_factory=NodeSpec)


class NodeEligibility(msgspec.Struct, frozen=True):
    runs: bool
    """Whether the node should have a pod."""
    stays: bool
    """Whether an existing pod may continue."""


class EligibilityRule(msgspec.Struct, frozen=True):
    """The part of a pod template that decides about nodes."""

    node_name: str
    nodes: NodeRule
    tolerations: tuple[Toleration, ...]

    def eligibility(self, node: DaemonNode) -> NodeEligibility:
        name = node.metadata.name
        if self.node_name not in ("", name) or not self.nodes.matches(name, node.metadata.labels):
            return NodeEligibility(runs=False, stays=False)
        if untolerated(node.spec.taints, self.tolerations, HARD_EFFECTS) is None:
            return NodeEligibility(runs=True, stays=True)
        stays = untolerated(node.spec.taints, self.tolerations, frozenset({"NoExecute"})) is None
        return NodeEligibility(runs=False, stays=stays)


def rule_of(spec: Obj) -> EligibilityRule:
    written = (spec.get("affinity") or {}).get("nodeAffinity")
    affinity = msgspec.convert(written, NodeAffinity) if written else None
    tolerations = msgspec.convert(with_daemon_tolerations(spec), tuple[Toleration, ...])
    return EligibilityRule(spec.get("nodeName", ""), node_rule(spec.get("nodeSelector") or {}, affinity), tolerations)


def with_daemon_tolerations(spec: Obj) -> list[Obj]:
    added = [*_ON_EVERY_NODE, *([_ON_THE_HOST] if spec.get("hostNetwork") else ())]
    tolerations: list[Obj] = list(spec.get("tolerations") or ())
    for key, effect in added:
        one = {"key": key, "operator": "Exists", "effect": effect}
        if one not in tolerations:
            tolerations.append(one)
    return tolerations


def bound_to(spec: Obj, node: str) -> Obj:
    """The pod spec with an affinity that allows only this node."""
    made: Obj = deepcopy(spec)
    only = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity: dict[str, Any] = made.setdefault("affinity", {})
    wanted = affinity.setdefault("nodeAffinity", {})
    wanted["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [only]}
    made["tolerations"] = with_daemon_tolerations(spec)
    return made
