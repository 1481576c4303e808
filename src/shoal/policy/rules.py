"""Lists the checked kinds with their rules. A new rule is a line here and a case in its test."""

from __future__ import annotations

from typing import Final

import msgspec

from shoal.policy import (
    autoscaling_rules,
    file_rules,
    instance_rules,
    launching_rules,
    monitoring_rules,
    name_references,
    network_rules,
    number_rules,
    pipeline_rules,
    placement_rules,
    pod_rules,
    process_rules,
    queue_rules,
    quota_rules,
    reference_rules,
    scheduler_rules,
    schema_rules,
    serving_rules,
    sharing_rules,
    spelling_rules,
)
from shoal.policy.admission_rules.quota_rule import over_quota
from shoal.policy.advice import Rule
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

_POD_RULES: Final[tuple[Rule, ...]] = (
    pod_rules.gpu_names,
    pod_rules.unaccounted_gpus,
    placement_rules.product_names,
    placement_rules.strict_counts,
    placement_rules.one_sided_anti_affinity,
    launching_rules.launchers,
    launching_rules.unset_variables,
    launching_rules.visible_devices,
    launching_rules.dead_images,
    serving_rules.plain_secrets,
    instance_rules.instance_requests,
    process_rules.processes,
)
_WORKLOAD_RULES: Final[tuple[Rule, ...]] = (
    *_POD_RULES,
    placement_rules.unknown_node_labels,
    launching_rules.master_addresses,
    process_rules.endpoints,
    instance_rules.shared_models,
)
_OPERATOR_RULES: Final[tuple[Rule, ...]] = (
    *_POD_RULES,
    placement_rules.unknown_node_labels,
    instance_rules.shared_models,
    placement_rules.untolerated,
    launching_rules.missing_volumes,
    launching_rules.pod_security,
    queue_rules.misplaced_queue_names,
    process_rules.endpoints,
    number_rules.contradictions,
)
"""For kinds whose pods and Services an operator creates, if one is installed."""
_TRAINING_RULES: Final[tuple[Rule, ...]] = (*_OPERATOR_RULES, launching_rules.idle_gpus, spelling_rules.training_roles)

_POD_HINTS: Final = (
    *(b"nvidia.com/gpu.", b"requiredDuring", b"_VISIBLE_DEVICES", b"$(", b"torch", b"nvidia/", b"comfyui"),
    *(b"nvidia.com/mig-", b"/dev/nvidia", b'runtimeClassName":"nvidia"', b'{"operator":"Exists"}'),
    # Misspelled names of GPUs: pods with the right one are not decoded for this.
    *(b"nvidia.com/gpus", b"nvidia.com/GPU", b"nvidia/gpu", b"nvidia.com.gpu", b"nvidia-com/gpu", b"nvidia.gpu"),
    *(b"nvidia-gpu", b"amd.com/gpus"),
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
    scheduler_rules.scheduler_configurations,
    sharing_rules.sharing_configurations,
    sharing_rules.mig_layouts,
    autoscaling_rules.expander_priorities,
)
_CONFIGURATION_HINTS: Final = (
    *(b"KubeSchedulerConfiguration", b"sharing:", b"mig-configs"),
    b"cluster-autoscaler-priority-expander",
)
_MPI_RULES: Final = (*_OPERATOR_RULES, launching_rules.mpi_launchers, spelling_rules.training_roles)

TABLE: Final[tuple[AdvisedKind, ...]] = (
    AdvisedKind(POD, _POD_RULES, _POD_HINTS),
    _checked(JOB, *_WORKLOAD_RULES, queue_rules.misplaced_queue_names),
    _checked(DEPLOYMENT, *_WORKLOAD_RULES, queue_rules.missing_queues),
    _checked(STATEFUL_SET, *_WORKLOAD_RULES, serving_rules.governing_services),
    _checked(SERVICE, serving_rules.open_load_balancers),
    _checked(
        AUTOSCALER,
        serving_rules.cpu_of_gpu_pods,
        autoscaling_rules.autoscaler_targets,
        autoscaling_rules.several_autoscalers,
    ),
    _checked(
        SCALED_OBJECT,
        autoscaling_rules.several_autoscalers,
        number_rules.contradictions,
        spelling_rules.trigger_names,
    ),
    _checked(
        MISPLACED_SCALED_OBJECT, autoscaling_rules.misplaced_scaled_objects, autoscaling_rules.several_autoscalers
    ),
    _checked(NODE_POOL, autoscaling_rules.node_pools, number_rules.pool_values),
    _checked(CLUSTER_POLICY, sharing_rules.cluster_policies, spelling_rules.policy_components, is_rechecked=True),
    _checked(MISPLACED_CLUSTER_POLICY, sharing_rules.cluster_policies, is_rechecked=True),
    _checked(NETWORK_POLICY, network_rules.network_policies),
    _checked(PROMETHEUS_RULE, monitoring_rules.prometheus_rules),
    _checked(
        RESOURCE_QUOTA, quota_rules.uncounted_limits, quota_rules.unknown_priorities, quota_rules.unsupported_scopes
    ),
    _checked(LIMIT_RANGE, quota_rules.default_gpus),
    AdvisedKind(CONFIG_MAP, _CONFIGURATION_RULES, _CONFIGURATION_HINTS, is_partial=True),
    _checked(CLUSTER_QUEUE, queue_rules.misread_fields),
    _checked(RESOURCE_FLAVOR, queue_rules.flavors_without_nodes, queue_rules.flavor_products, is_rechecked=True),
    _checked(WORKLOAD_PRIORITY_CLASS, queue_rules.misread_fields),
    _checked(VOLCANO_QUEUE, queue_rules.volcano_queues, is_rechecked=True),
    _checked(VOLCANO_POD_GROUP, queue_rules.pod_groups),
    *(_checked(kind, *(_MPI_RULES if kind == MPI_JOB else _TRAINING_RULES)) for kind in TRAINING_JOBS),
    *(
        _checked(kind, *_OPERATOR_RULES)
        for kind in (JOB_SET, TRAIN_JOB, RAY_JOB, RAY_CLUSTER, LEADER_WORKER_SET, INFERENCE_SERVICE)
    ),
    _checked(VOLCANO_JOB, *_OPERATOR_RULES, spelling_rules.job_actions),
    _checked(WORKFLOW, *_OPERATOR_RULES, pipeline_rules.workflows),
    _checked(PIPELINE, pipeline_rules.pipelines),
)
LOOKUP_KINDS: Final[tuple[GroupKind, ...]] = (NODE, NAMESPACE, PRIORITY_CLASS, VOLUME_CLAIM, TASK, LOCAL_QUEUE)
"""Kinds that rules look up, beside those of the table."""
FILE_RULES: Final[tuple[Rule, ...]] = (
    schema_rules.kubernetes_kinds,
    schema_rules.object_names,
    schema_rules.kubernetes_fields,
    file_rules.invalid_objects,
    file_rules.replaced_objects,
    pod_rules.pod_parts,
    pod_rules.usual_omissions,
    over_quota,
    reference_rules.file_references,
    name_references.misspelled_references,
    placement_rules.spreading,
    spelling_rules.misspelled_keys,
    spelling_rules.images_and_media,
    scheduler_rules.scheduler_files,
)
"""For objects of any kind that no server has accepted yet."""
