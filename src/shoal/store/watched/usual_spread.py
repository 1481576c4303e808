"""Replicas are spread over nodes where their author said nothing, as kube-scheduler's usual constraints would have it.

Only for schedulers of which that is expected, and only for pods that ask for no device: a service should outlive the
loss of a node, while every node that a GPU pod touches without need is one less for those who want it whole. It is a
preference. Zones are left to those who name them: a node without a zone would count as being nowhere.
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
    """Labels that the pod has in common with its fellows; none where it is no replica or says itself how to spread."""
    if head.spec.node_name or head.spec.has_pod_rules:
        return ()
    if _REPLICAS.isdisjoint(owner.kind for owner in head.metadata.owner_references):
        return ()
    return tuple(sorted((name, value) for name, value in head.metadata.labels.items() if name not in _ITS_OWN))


def is_spread(ask: Ask) -> bool:
    """Whether it asks for no device: names of such resources have a domain."""
    return ask.devices is None and not any("/" in name for name, _ in ask.requests)


def with_usual_spread(pod: Pod, shared: Shared) -> Pod:
    rule = TopologySpreadConstraint(3, _HOST, "ScheduleAnyway", LabelSelector(dict(shared)))
    return structs.replace(pod, spec=structs.replace(pod.spec, topology_spread_constraints=(rule,)))
