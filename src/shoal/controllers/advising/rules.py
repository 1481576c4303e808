"""Lists the checked kinds with their rules. A new rule is a line here and a case in its test."""

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
    TRAIN_JOBS,
    VOLCANO_JOBS,
    VOLCANO_POD_GROUPS,
    VOLCANO_QUEUES,
    WORKLOAD_PRIORITY_CLASSES,
)
from shoal.client.kind import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    SERVICES,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    Kind,
)
from shoal.controllers.advising.advice import Rule
from shoal.controllers.advising.launching_rules import (
    dead_images,
    idle_gpus,
    launchers,
    master_addresses,
    missing_volumes,
    mpi_launchers,
    pod_security,
    unset_variables,
    visible_devices,
)
from shoal.controllers.advising.pipeline_rules import TASKS, pipelines, workflows
from shoal.controllers.advising.placement_rules import (
    one_sided_anti_affinity,
    product_names,
    strict_counts,
    unknown_node_labels,
    untolerated,
)
from shoal.controllers.advising.queue_rules import (
    flavors_without_nodes,
    misread_fields,
    missing_queues,
    pod_groups,
    volcano_queues,
)
from shoal.controllers.advising.quota_rules import default_gpus, uncounted_limits, unknown_priorities
from shoal.controllers.advising.scheduler_rules import scheduler_configurations
from shoal.controllers.advising.serving_rules import (
    cpu_of_gpu_pods,
    governing_services,
    open_load_balancers,
    plain_secrets,
)
from shoal.store.queues.job_parts import JOB_KINDS

RESOURCE_QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota")
LIMIT_RANGES = Kind("", "v1", "limitranges", "LimitRange")
AUTOSCALERS = Kind("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
WORKFLOWS = Kind("argoproj.io", "v1alpha1", "workflows", "Workflow")
PIPELINES = Kind("tekton.dev", "v1", "pipelines", "Pipeline")
INFERENCE_SERVICES = Kind("serving.kserve.io", "v1beta1", "inferenceservices", "InferenceService")

_POD_RULES: Final[tuple[Rule, ...]] = (
    product_names,
    strict_counts,
    one_sided_anti_affinity,
    launchers,
    unset_variables,
    visible_devices,
    dead_images,
    plain_secrets,
)
_WORKLOAD_RULES: Final[tuple[Rule, ...]] = (*_POD_RULES, unknown_node_labels, master_addresses)
_OPERATOR_RULES: Final[tuple[Rule, ...]] = (
    *_POD_RULES,
    unknown_node_labels,
    untolerated,
    missing_volumes,
    pod_security,
)
"""For kinds whose pods and Services an operator creates, if one is installed."""
_TRAINING_RULES: Final[tuple[Rule, ...]] = (*_OPERATOR_RULES, idle_gpus)

_POD_HINTS: Final = (
    *(b"nvidia.com/gpu.", b"requiredDuring", b"_VISIBLE_DEVICES", b"$(", b"torch", b"nvidia/", b"comfyui"),
    *(b"SECRET", b'PASSWORD"', b'TOKEN"', b'_KEY"'),
)


class AdvisedKind(msgspec.Struct, frozen=True):
    kind: Kind
    rules: tuple[Rule, ...]
    older: tuple[str, ...] = ()
    is_optional: bool = False
    """Served only if its definition is installed."""
    hints: tuple[bytes, ...] = ()
    """Objects without any of these words are never decoded: there may be fifty thousand objects."""
    is_partial: bool = False
    """Objects without any of the words are not even kept: they may be large."""
    is_rechecked: bool = False
    """Other objects affect the advice, so it is checked at intervals; there are few objects of the kind."""


def _built_in(kind: Kind, *rules: Rule, hints: tuple[bytes, ...] = (), is_partial: bool = False) -> AdvisedKind:
    return AdvisedKind(kind, rules, hints=hints, is_partial=is_partial)


def _optional(kind: Kind, *rules: Rule, older: tuple[str, ...] = (), is_rechecked: bool = False) -> AdvisedKind:
    return AdvisedKind(kind, rules, older, is_optional=True, is_rechecked=is_rechecked)


_MPI_RULES: Final = (*_OPERATOR_RULES, mpi_launchers)

TABLE: Final[tuple[AdvisedKind, ...]] = (
    _built_in(PODS, *_POD_RULES, hints=_POD_HINTS),
    _built_in(JOBS, *_WORKLOAD_RULES),
    _built_in(DEPLOYMENTS, *_WORKLOAD_RULES, missing_queues),
    _built_in(STATEFUL_SETS, *_WORKLOAD_RULES, governing_services),
    _built_in(SERVICES, open_load_balancers),
    _built_in(AUTOSCALERS, cpu_of_gpu_pods),
    _built_in(RESOURCE_QUOTAS, uncounted_limits, unknown_priorities),
    _built_in(LIMIT_RANGES, default_gpus),
    _built_in(CONFIG_MAPS, scheduler_configurations, hints=(b"KubeSchedulerConfiguration",), is_partial=True),
    _optional(CLUSTER_QUEUES, misread_fields, older=("v1beta1",)),
    _optional(RESOURCE_FLAVORS, flavors_without_nodes, older=("v1beta1",), is_rechecked=True),
    _optional(WORKLOAD_PRIORITY_CLASSES, misread_fields, older=("v1beta1",)),
    _optional(VOLCANO_QUEUES, volcano_queues, is_rechecked=True),
    _optional(VOLCANO_POD_GROUPS, pod_groups),
    *(
        _optional(row.kind, *(_MPI_RULES if row.kind.name == "MPIJob" else _TRAINING_RULES), older=row.older)
        for row in JOB_KINDS
        if row.replica_types
    ),
    _optional(JOB_SETS, *_OPERATOR_RULES),
    _optional(TRAIN_JOBS, *_OPERATOR_RULES),
    _optional(RAY_JOBS, *_OPERATOR_RULES, older=("v1alpha1",)),
    _optional(RAY_CLUSTERS, *_OPERATOR_RULES, older=("v1alpha1",)),
    _optional(LEADER_WORKER_SETS, *_OPERATOR_RULES),
    _optional(VOLCANO_JOBS, *_OPERATOR_RULES),
    _optional(WORKFLOWS, *_OPERATOR_RULES, workflows),
    _optional(PIPELINES, pipelines, older=("v1beta1",)),
    _optional(INFERENCE_SERVICES, *_OPERATOR_RULES),
)
LOOKUP_KINDS: Final[tuple[Kind, ...]] = (NODES, NAMESPACES, PRIORITY_CLASSES, VOLUME_CLAIMS)
"""Kinds that rules look up, beside those of the table."""
OPTIONAL_LOOKUP_KINDS: Final[tuple[Kind, ...]] = (TASKS, LOCAL_QUEUES)
