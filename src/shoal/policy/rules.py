"""Lists the checked kinds with their rules. A new rule is a line here and a case in its test."""

from __future__ import annotations

from typing import Final

import msgspec

from shoal.policy.advice import Rule
from shoal.policy.autoscaling_rules import (
    autoscaler_targets,
    expander_priorities,
    misplaced_scaled_objects,
    node_pools,
    several_autoscalers,
)
from shoal.policy.file_rules import invalid_objects, replaced_objects
from shoal.policy.instance_rules import instance_requests, shared_models
from shoal.policy.kinds import (
    AUTOSCALER,
    CLUSTER_POLICY,
    CLUSTER_QUEUE,
    CONFIG_MAP,
    DEPLOYMENT,
    INFERENCE_SERVICE,
    JOB,
    JOB_SET,
    LEADER_WORKER_SET,
    LIMIT_RANGE,
    LOCAL_QUEUE,
    MISPLACED_CLUSTER_POLICY,
    MISPLACED_SCALED_OBJECT,
    MPI_JOB,
    NAMESPACE,
    NETWORK_POLICY,
    NODE,
    NODE_POOL,
    PIPELINE,
    POD,
    PRIORITY_CLASS,
    PROMETHEUS_RULE,
    RAY_CLUSTER,
    RAY_JOB,
    RESOURCE_FLAVOR,
    RESOURCE_QUOTA,
    SCALED_OBJECT,
    SERVICE,
    STATEFUL_SET,
    TASK,
    TRAIN_JOB,
    TRAINING_JOBS,
    VOLCANO_JOB,
    VOLCANO_POD_GROUP,
    VOLCANO_QUEUE,
    VOLUME_CLAIM,
    WORKFLOW,
    WORKLOAD_PRIORITY_CLASS,
    GroupKind,
)
from shoal.policy.launching_rules import (
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
from shoal.policy.monitoring_rules import prometheus_rules
from shoal.policy.network_rules import network_policies
from shoal.policy.pipeline_rules import pipelines, workflows
from shoal.policy.placement_rules import (
    one_sided_anti_affinity,
    product_names,
    strict_counts,
    unknown_node_labels,
    untolerated,
)
from shoal.policy.queue_rules import (
    flavors_without_nodes,
    misplaced_queue_names,
    misread_fields,
    missing_queues,
    pod_groups,
    volcano_queues,
)
from shoal.policy.quota_rules import default_gpus, uncounted_limits, unknown_priorities, unsupported_scopes
from shoal.policy.scheduler_rules import scheduler_configurations
from shoal.policy.serving_rules import (
    cpu_of_gpu_pods,
    governing_services,
    open_load_balancers,
    plain_secrets,
)
from shoal.policy.sharing_rules import cluster_policies, mig_layouts, sharing_configurations

_POD_RULES: Final[tuple[Rule, ...]] = (
    product_names,
    strict_counts,
    one_sided_anti_affinity,
    launchers,
    unset_variables,
    visible_devices,
    dead_images,
    plain_secrets,
    instance_requests,
)
_WORKLOAD_RULES: Final[tuple[Rule, ...]] = (*_POD_RULES, unknown_node_labels, master_addresses, shared_models)
_OPERATOR_RULES: Final[tuple[Rule, ...]] = (
    *_POD_RULES,
    unknown_node_labels,
    shared_models,
    untolerated,
    missing_volumes,
    pod_security,
    misplaced_queue_names,
)
"""For kinds whose pods and Services an operator creates, if one is installed."""
_TRAINING_RULES: Final[tuple[Rule, ...]] = (*_OPERATOR_RULES, idle_gpus)

_POD_HINTS: Final = (
    *(b"nvidia.com/gpu.", b"requiredDuring", b"_VISIBLE_DEVICES", b"$(", b"torch", b"nvidia/", b"comfyui"),
    b"nvidia.com/mig-",
    *(b"SECRET", b'PASSWORD"', b'TOKEN"', b'_KEY"'),
)


class AdvisedKind(msgspec.Struct, frozen=True):
    kind: GroupKind
    rules: tuple[Rule, ...]
    hints: tuple[bytes, ...] = ()
    """Objects without any of these words are never decoded: there may be fifty thousand objects."""
    is_partial: bool = False
    """Objects without any of the words are not even kept: they may be large."""
    is_rechecked: bool = False
    """Other objects affect the advice, so it is checked at intervals; there are few objects of the kind."""

    def is_judged(self, data: bytes) -> bool:
        """Whether a rule could have advice for the object with these bytes."""
        return not self.hints or any(word in data for word in self.hints)


def _checked(kind: GroupKind, *rules: Rule, is_rechecked: bool = False) -> AdvisedKind:
    return AdvisedKind(kind, rules, is_rechecked=is_rechecked)


_CONFIGURATION_RULES: Final[tuple[Rule, ...]] = (
    scheduler_configurations,
    sharing_configurations,
    mig_layouts,
    expander_priorities,
)
_CONFIGURATION_HINTS: Final = (
    *(b"KubeSchedulerConfiguration", b"sharing:", b"mig-configs"),
    b"cluster-autoscaler-priority-expander",
)
_MPI_RULES: Final = (*_OPERATOR_RULES, mpi_launchers)

TABLE: Final[tuple[AdvisedKind, ...]] = (
    AdvisedKind(POD, _POD_RULES, _POD_HINTS),
    _checked(JOB, *_WORKLOAD_RULES, misplaced_queue_names),
    _checked(DEPLOYMENT, *_WORKLOAD_RULES, missing_queues),
    _checked(STATEFUL_SET, *_WORKLOAD_RULES, governing_services),
    _checked(SERVICE, open_load_balancers),
    _checked(AUTOSCALER, cpu_of_gpu_pods, autoscaler_targets, several_autoscalers),
    _checked(SCALED_OBJECT, several_autoscalers),
    _checked(MISPLACED_SCALED_OBJECT, misplaced_scaled_objects, several_autoscalers),
    _checked(NODE_POOL, node_pools),
    _checked(CLUSTER_POLICY, cluster_policies, is_rechecked=True),
    _checked(MISPLACED_CLUSTER_POLICY, cluster_policies, is_rechecked=True),
    _checked(NETWORK_POLICY, network_policies),
    _checked(PROMETHEUS_RULE, prometheus_rules),
    _checked(RESOURCE_QUOTA, uncounted_limits, unknown_priorities, unsupported_scopes),
    _checked(LIMIT_RANGE, default_gpus),
    AdvisedKind(CONFIG_MAP, _CONFIGURATION_RULES, _CONFIGURATION_HINTS, is_partial=True),
    _checked(CLUSTER_QUEUE, misread_fields),
    _checked(RESOURCE_FLAVOR, flavors_without_nodes, is_rechecked=True),
    _checked(WORKLOAD_PRIORITY_CLASS, misread_fields),
    _checked(VOLCANO_QUEUE, volcano_queues, is_rechecked=True),
    _checked(VOLCANO_POD_GROUP, pod_groups),
    *(_checked(kind, *(_MPI_RULES if kind == MPI_JOB else _TRAINING_RULES)) for kind in TRAINING_JOBS),
    *(
        _checked(kind, *_OPERATOR_RULES)
        for kind in (JOB_SET, TRAIN_JOB, RAY_JOB, RAY_CLUSTER, LEADER_WORKER_SET, VOLCANO_JOB, INFERENCE_SERVICE)
    ),
    _checked(WORKFLOW, *_OPERATOR_RULES, workflows),
    _checked(PIPELINE, pipelines),
)
LOOKUP_KINDS: Final[tuple[GroupKind, ...]] = (NODE, NAMESPACE, PRIORITY_CLASS, VOLUME_CLAIM, TASK, LOCAL_QUEUE)
"""Kinds that rules look up, beside those of the table."""
FILE_RULES: Final[tuple[Rule, ...]] = (invalid_objects, replaced_objects)
"""For objects of any kind that no server has accepted yet."""
