"""The kinds Shoal reads as typed values. A new kind is a line here; any other kind is passed on raw."""

from __future__ import annotations

from shoal.api import (
    claims,
    device_classes,
    hyper_nodes,
    limit_ranges,
    node_resource_topology,
    resource_quotas,
    runtime_classes,
    slices,
    topology,
    validity,
)
from shoal.api.budget_report import REPORT_KIND, REPORT_VERSION, BudgetReport, check_budget_report
from shoal.api.disruption import PodDisruptionBudget, PriorityClass
from shoal.api.groups import coscheduling, kai, kubernetes, volcano
from shoal.api.kind import Kind
from shoal.api.kueue.kinds import KUEUE_KINDS
from shoal.api.meta import Namespace
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.workloads import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet

_DRA = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2")
_DRA_BETA1 = ("resource.k8s.io/v1beta1",)

# A kind has two lines where its versions obey different rules.
KINDS: tuple[Kind, ...] = (
    Kind("Pod", ("v1",), Pod, validity.check_pod),
    Kind("Node", ("v1",), Node, validity.check_node, is_namespaced=False),
    Kind("Namespace", ("v1",), Namespace, validity.check_namespace, is_namespaced=False),
    Kind("DaemonSet", ("apps/v1",), DaemonSet, validity.check_daemon_set),
    Kind("Deployment", ("apps/v1",), Deployment, validity.check_replicas),
    Kind("ReplicaSet", ("apps/v1",), ReplicaSet, validity.check_replicas),
    Kind("StatefulSet", ("apps/v1",), StatefulSet, validity.check_replicas),
    Kind("Job", ("batch/v1",), Job, validity.check_job),
    Kind(
        "PriorityClass",
        ("scheduling.k8s.io/v1", "scheduling.k8s.io/v1beta1"),
        PriorityClass,
        validity.check_priority_class,
        is_namespaced=False,
    ),
    Kind(
        "PodDisruptionBudget",
        ("policy/v1", "policy/v1beta1"),
        PodDisruptionBudget,
        validity.check_disruption_budget,
    ),
    Kind(
        "PodGroup",
        ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"),
        kubernetes.PodGroup,
        kubernetes.check_pod_group,
    ),
    Kind("PodGroup", ("scheduling.k8s.io/v1alpha2",), kubernetes.PodGroup, kubernetes.check_pod_group_v1alpha2),
    Kind("Workload", ("scheduling.k8s.io/v1alpha1",), kubernetes.Workload, kubernetes.check_workload),
    Kind("PodGroup", ("scheduling.volcano.sh/v1beta1",), volcano.VolcanoPodGroup, volcano.check_volcano_pod_group),
    Kind("PodGroup", ("scheduling.run.ai/v2alpha2",), kai.KaiPodGroup, kai.check_kai_pod_group),
    Kind(
        "PodGroup",
        ("scheduling.x-k8s.io/v1alpha1",),
        coscheduling.CoschedulingPodGroup,
        coscheduling.check_coscheduling_pod_group,
    ),
    Kind(
        "Topology",
        ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1alpha1"),
        topology.KueueTopology,
        topology.check_topology,
        is_namespaced=False,
    ),
    Kind(
        "Topology",
        ("kai.scheduler/v1alpha1",),
        topology.KaiTopology,
        topology.check_topology,
        is_namespaced=False,
    ),
    Kind(
        "HyperNode",
        ("topology.volcano.sh/v1alpha1",),
        hyper_nodes.HyperNode,
        hyper_nodes.check_hyper_node,
        is_namespaced=False,
    ),
    Kind(
        "NodeResourceTopology",
        ("topology.node.k8s.io/v1alpha2",),
        node_resource_topology.NodeResourceTopology,
        node_resource_topology.check_node_resource_topology,
        is_namespaced=False,
    ),
    Kind(
        "DeviceClass",
        (*_DRA, *_DRA_BETA1),
        device_classes.DeviceClass,
        device_classes.check_device_class,
        is_namespaced=False,
    ),
    Kind("ResourceClaim", _DRA, claims.ResourceClaim, claims.check_claim),
    Kind("ResourceClaim", _DRA_BETA1, claims.ResourceClaim, claims.check_claim_v1beta1),
    Kind("ResourceClaimTemplate", _DRA, claims.ResourceClaimTemplate, claims.check_claim_template),
    Kind("ResourceClaimTemplate", _DRA_BETA1, claims.ResourceClaimTemplate, claims.check_claim_template_v1beta1),
    Kind("ResourceSlice", _DRA, slices.ResourceSlice, slices.check_slice, is_namespaced=False),
    Kind("ResourceSlice", _DRA_BETA1, slices.ResourceSlice, slices.check_slice_v1beta1, is_namespaced=False),
    Kind("LimitRange", ("v1",), limit_ranges.LimitRange, limit_ranges.check_limit_range),
    Kind("ResourceQuota", ("v1",), resource_quotas.ResourceQuota, resource_quotas.check_resource_quota),
    Kind(
        "RuntimeClass",
        ("node.k8s.io/v1", "node.k8s.io/v1beta1"),
        runtime_classes.RuntimeClass,
        runtime_classes.check_runtime_class,
        is_namespaced=False,
    ),
    Kind(REPORT_KIND, (REPORT_VERSION,), BudgetReport, check_budget_report, is_namespaced=False),
    *KUEUE_KINDS,
)

_BY_NAME = {(version, kind.name): kind for kind in KINDS for version in kind.api_versions}


_BY_TYPE = {kind.type: kind for kind in reversed(KINDS)}


def kind_of_type(wanted: type) -> Kind:
    """The kind of objects of this type, with the preferred version first."""
    return _BY_TYPE[wanted]


def find_kind(api_version: str, name: str) -> Kind | None:
    return _BY_NAME.get((api_version, name))
