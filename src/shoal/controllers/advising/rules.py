"""THE TABLE: whose objects are looked at, and by which rules. A new rule is a line here and a case in its test."""

from __future__ import annotations

from typing import Final

import msgspec

from shoal.controllers.advising.advice import Rule
from shoal.controllers.advising.launching_rules import (
    dead_images,
    idle_gpus,
    launchers,
    masters,
    missing_volumes,
    mpi,
    restricted,
    unset_variables,
    visible_devices,
)
from shoal.controllers.advising.pipeline_rules import TASKS, pipelines, workflows
from shoal.controllers.advising.placing_rules import (
    labels_of_nobody,
    product_names,
    repels_others_only,
    strict_counts,
    untolerated,
)
from shoal.controllers.advising.queue_rules import (
    flavors_without_nodes,
    pod_groups,
    queues_of_nobody,
    slipped,
    volcano_queues,
)
from shoal.controllers.advising.quota_rules import gpus_for_everybody, uncounted_limits, unknown_priorities
from shoal.controllers.advising.scheduler_rules import scheduler_configurations
from shoal.controllers.advising.serving_rules import cpu_of_gpu_pods, governing_services, open_doors, plain_secrets
from shoal.store.live.ecosystem_kinds import (
    CLUSTER_QUEUES,
    JAX_JOBS,
    JOB_SETS,
    LEADER_WORKER_SETS,
    LOCAL_QUEUES,
    MPI_JOBS,
    PADDLE_JOBS,
    PYTORCH_JOBS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RESOURCE_FLAVORS,
    TF_JOBS,
    TRAIN_JOBS,
    VOLCANO_JOBS,
    VOLCANO_POD_GROUPS,
    VOLCANO_QUEUES,
    WORKLOAD_PRIORITY_CLASSES,
    XGBOOST_JOBS,
)
from shoal.store.live.kind import (
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

RESOURCE_QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota")
LIMIT_RANGES = Kind("", "v1", "limitranges", "LimitRange")
AUTOSCALERS = Kind("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
WORKFLOWS = Kind("argoproj.io", "v1alpha1", "workflows", "Workflow")
PIPELINES = Kind("tekton.dev", "v1", "pipelines", "Pipeline")
INFERENCE_SERVICES = Kind("serving.kserve.io", "v1beta1", "inferenceservices", "InferenceService")

_OF_PODS: Final[tuple[Rule, ...]] = (
    product_names,
    strict_counts,
    repels_others_only,
    launchers,
    unset_variables,
    visible_devices,
    dead_images,
    plain_secrets,
)
_OF_MAKERS: Final[tuple[Rule, ...]] = (*_OF_PODS, labels_of_nobody, masters)
_OF_OTHERS: Final[tuple[Rule, ...]] = (*_OF_PODS, labels_of_nobody, untolerated, missing_volumes, restricted)
"""Makers whose pods, and Services, are made by an operator, if one is there."""
_OF_TRAINING: Final[tuple[Rule, ...]] = (*_OF_OTHERS, idle_gpus)

_PODS_TOLD_OF: Final = (
    *(b"nvidia.com/gpu.", b"requiredDuring", b"_VISIBLE_DEVICES", b"$(", b"torch", b"nvidia/", b"comfyui"),
    *(b"SECRET", b'PASSWORD"', b'TOKEN"', b'_KEY"'),
)


class Watched(msgspec.Struct, frozen=True):
    kind: Kind
    rules: tuple[Rule, ...]
    older: tuple[str, ...] = ()
    is_optional: bool = False
    """Served only where somebody brought it."""
    hints: tuple[bytes, ...] = ()
    """Objects without any of these words are never decoded: there may be fifty thousand."""
    in_part: bool = False
    """Those without any of the words are not even kept: they may be large."""
    again: bool = False
    """What is around it changes what is to be said: looked at now and then, there being few."""


def _there(kind: Kind, *rules: Rule, hints: tuple[bytes, ...] = (), in_part: bool = False) -> Watched:
    return Watched(kind, rules, hints=hints, in_part=in_part)


def _optional(kind: Kind, *rules: Rule, older: tuple[str, ...] = (), again: bool = False) -> Watched:
    return Watched(kind, rules, older, is_optional=True, again=again)


TABLE: Final[tuple[Watched, ...]] = (
    _there(PODS, *_OF_PODS, hints=_PODS_TOLD_OF),
    _there(JOBS, *_OF_MAKERS),
    _there(DEPLOYMENTS, *_OF_MAKERS, queues_of_nobody),
    _there(STATEFUL_SETS, *_OF_MAKERS, governing_services),
    _there(SERVICES, open_doors),
    _there(AUTOSCALERS, cpu_of_gpu_pods),
    _there(RESOURCE_QUOTAS, uncounted_limits, unknown_priorities),
    _there(LIMIT_RANGES, gpus_for_everybody),
    _there(CONFIG_MAPS, scheduler_configurations, hints=(b"KubeSchedulerConfiguration",), in_part=True),
    _optional(CLUSTER_QUEUES, slipped, older=("v1beta1",)),
    _optional(RESOURCE_FLAVORS, flavors_without_nodes, older=("v1beta1",), again=True),
    _optional(WORKLOAD_PRIORITY_CLASSES, slipped, older=("v1beta1",)),
    _optional(VOLCANO_QUEUES, volcano_queues, again=True),
    _optional(VOLCANO_POD_GROUPS, pod_groups),
    _optional(PYTORCH_JOBS, *_OF_TRAINING),
    _optional(TF_JOBS, *_OF_TRAINING),
    _optional(XGBOOST_JOBS, *_OF_TRAINING),
    _optional(PADDLE_JOBS, *_OF_TRAINING),
    _optional(JAX_JOBS, *_OF_TRAINING),
    _optional(MPI_JOBS, *_OF_OTHERS, mpi, older=("v1",)),
    _optional(JOB_SETS, *_OF_OTHERS),
    _optional(TRAIN_JOBS, *_OF_OTHERS),
    _optional(RAY_JOBS, *_OF_OTHERS, older=("v1alpha1",)),
    _optional(RAY_CLUSTERS, *_OF_OTHERS, older=("v1alpha1",)),
    _optional(LEADER_WORKER_SETS, *_OF_OTHERS),
    _optional(VOLCANO_JOBS, *_OF_OTHERS),
    _optional(WORKFLOWS, *_OF_OTHERS, workflows),
    _optional(PIPELINES, pipelines, older=("v1beta1",)),
    _optional(INFERENCE_SERVICES, *_OF_OTHERS),
)
LOOKED_UP: Final[tuple[Kind, ...]] = (NODES, NAMESPACES, PRIORITY_CLASSES, VOLUME_CLAIMS)
"""Beside the kinds of the table."""
LOOKED_UP_IF_THERE: Final[tuple[Kind, ...]] = (TASKS, LOCAL_QUEUES)
