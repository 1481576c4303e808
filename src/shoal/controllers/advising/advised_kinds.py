"""Maps the kinds that rules name to the resources of a server that the advisor watches."""

from __future__ import annotations

from typing import Final

import msgspec

from shoal.client.ecosystem_kinds import (
    CLUSTER_QUEUES,
    JOB_SETS,
    LEADER_WORKER_SETS,
    LOCAL_QUEUES,
    RAY_CLUSTERS,
    RAY_JOBS,
    RESOURCE_FLAVORS,
    SCALED_OBJECTS,
    TRAIN_JOBS,
    VOLCANO_JOBS,
    VOLCANO_POD_GROUPS,
    VOLCANO_QUEUES,
    WORKLOAD_PRIORITY_CLASSES,
)
from shoal.client.kind import (
    AUTOSCALERS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    SERVICES,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    Kind,
)
from shoal.policy.kinds import GroupKind
from shoal.store.queues.job_parts import JOB_KINDS

LIMIT_RANGES = Kind("", "v1", "limitranges", "LimitRange")
WORKFLOWS = Kind("argoproj.io", "v1alpha1", "workflows", "Workflow")
PIPELINES = Kind("tekton.dev", "v1", "pipelines", "Pipeline")
TASKS = Kind("tekton.dev", "v1", "tasks", "Task")
NETWORK_POLICIES = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
PROMETHEUS_RULES = Kind("monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule")
MISPLACED_SCALED_OBJECTS = Kind("autoscaling.keda.sh", "v1alpha1", "misplacedscaledobjects", "ScaledObject")
NODE_POOLS = Kind("karpenter.sh", "v1", "nodepools", "NodePool", is_namespaced=False)
CLUSTER_POLICIES = Kind("nvidia.com", "v1", "clusterpolicies", "ClusterPolicy", is_namespaced=False)
MISPLACED_CLUSTER_POLICIES = Kind(
    "config.openshift.io", "v1", "misplacedclusterpolicies", "ClusterPolicy", is_namespaced=False
)
INFERENCE_SERVICES = Kind("serving.kserve.io", "v1beta1", "inferenceservices", "InferenceService")


class ServedResource(msgspec.Struct, frozen=True):
    kind: Kind
    older: tuple[str, ...] = ()
    """Older versions that may be served instead."""
    is_optional: bool = False
    """Served only if its definition is installed."""

    def versions(self) -> tuple[Kind, ...]:
        """The kind in its older versions."""
        return tuple(self.kind._replace(version=version) for version in self.older)


_BUILT_IN = (
    *(PODS, NODES, NAMESPACES, SERVICES, CONFIG_MAPS, VOLUME_CLAIMS, DEPLOYMENTS, STATEFUL_SETS, JOBS),
    *(PRIORITY_CLASSES, RESOURCE_QUOTAS, LIMIT_RANGES, AUTOSCALERS, NETWORK_POLICIES),
)
_OPTIONAL: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (CLUSTER_QUEUES, ("v1beta1",)),
    (LOCAL_QUEUES, ("v1beta1",)),
    (RESOURCE_FLAVORS, ("v1beta1",)),
    (WORKLOAD_PRIORITY_CLASSES, ("v1beta1",)),
    (VOLCANO_QUEUES, ()),
    (VOLCANO_POD_GROUPS, ()),
    *((row.kind, row.older) for row in JOB_KINDS if row.replica_types),
    (JOB_SETS, ()),
    (TRAIN_JOBS, ()),
    (RAY_JOBS, ("v1alpha1",)),
    (RAY_CLUSTERS, ("v1alpha1",)),
    (LEADER_WORKER_SETS, ()),
    (VOLCANO_JOBS, ()),
    (WORKFLOWS, ()),
    (PIPELINES, ("v1beta1",)),
    (TASKS, ("v1beta1",)),
    (INFERENCE_SERVICES, ()),
    (PROMETHEUS_RULES, ()),
    (SCALED_OBJECTS, ()),
    (MISPLACED_SCALED_OBJECTS, ()),
    (NODE_POOLS, ("v1beta1",)),
    (CLUSTER_POLICIES, ()),
    (MISPLACED_CLUSTER_POLICIES, ()),
)


def _named(kind: Kind) -> GroupKind:
    return GroupKind(kind.group, kind.name)


RESOURCES: Final[dict[GroupKind, ServedResource]] = {
    **{_named(kind): ServedResource(kind) for kind in _BUILT_IN},
    **{_named(kind): ServedResource(kind, older, is_optional=True) for kind, older in _OPTIONAL},
}
