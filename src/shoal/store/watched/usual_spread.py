"""Computes the spread constraints of replicas without constraints of their own, as kube-scheduler's defaults do.

They apply only to schedulers that are expected to do so, and only to pods that request no device: a service should
survive the loss of a node, while each node that a GPU pod occupies without need is lost to pods that need a whole node.
The constraint is a preference. Zones are not included: a node without a zone would not count.
"""

from __future__ import annotations

from msgspec import structs

from shoal.api.affinity import TopologySpreadConstraint
from shoal.api.pod import Pod
from shoal.api.selectors import LabelSelector
from shoal.engine.asks import Ask
from shoal.store.watched.pod_heads import PodHead

_REPLICAS = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController"})
_ITS_OWN = frozenset({"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"})
_HOST = "kubernetes.io/hostname"
Shared = tuple[tuple[str, str], ...]


def shared_labels(head: PodHead) -> Shared:
    """The labels that the pod shares with its replicas; none where it is not a replica or has its own constraints."""
    if head.spec.node_name or head.spec.has_pod_rules:
        return ()
    if _REPLICAS.isdisjoint(owner.kind for owner in head.metadata.owner_references):
        return ()
    return tuple(sorted((name, value) for name, value in head.metadata.labels.items() if name not in _ITS_OWN))


def is_spread(ask: Ask) -> bool:
    """Whether it requests no device: the resource names of devices have a domain."""
    return ask.devices is None and not any("/" in name for name, _ in ask.requests)


def with_usual_spread(pod: Pod, shared: Shared) -> Pod:
    rule = TopologySpreadConstraint(3, _HOST, "ScheduleAnyway", LabelSelector(dict(shared)))
    return structs.replace(pod, spec=structs.replace(pod.spec, topology_spread_constraints=(rule,)))
