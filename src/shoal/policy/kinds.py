"""Names the kinds that rules check or look up: group and kind, in any version.

Rejected: the kinds of `client/kind.py`. They have a version and a plural, which only requests to a server need; rules
also check objects in files.
"""

from __future__ import annotations

from typing import NamedTuple


class GroupKind(NamedTuple):
    group: str
    name: str
    """The value of `kind:`."""


POD = GroupKind("", "Pod")
NODE = GroupKind("", "Node")
NAMESPACE = GroupKind("", "Namespace")
SERVICE = GroupKind("", "Service")
CONFIG_MAP = GroupKind("", "ConfigMap")
SECRET = GroupKind("", "Secret")
SERVICE_ACCOUNT = GroupKind("", "ServiceAccount")
EVENT = GroupKind("", "Event")
VOLUME_CLAIM = GroupKind("", "PersistentVolumeClaim")
RESOURCE_QUOTA = GroupKind("", "ResourceQuota")
LIMIT_RANGE = GroupKind("", "LimitRange")
DAEMON_SET = GroupKind("apps", "DaemonSet")
REPLICA_SET = GroupKind("apps", "ReplicaSet")
DEPLOYMENT = GroupKind("apps", "Deployment")
STATEFUL_SET = GroupKind("apps", "StatefulSet")
JOB = GroupKind("batch", "Job")
CRON_JOB = GroupKind("batch", "CronJob")
AUTOSCALER = GroupKind("autoscaling", "HorizontalPodAutoscaler")
PRIORITY_CLASS = GroupKind("scheduling.k8s.io", "PriorityClass")

CLUSTER_QUEUE = GroupKind("kueue.x-k8s.io", "ClusterQueue")
WORKLOAD = GroupKind("kueue.x-k8s.io", "Workload")
LOCAL_QUEUE = GroupKind("kueue.x-k8s.io", "LocalQueue")
RESOURCE_FLAVOR = GroupKind("kueue.x-k8s.io", "ResourceFlavor")
WORKLOAD_PRIORITY_CLASS = GroupKind("kueue.x-k8s.io", "WorkloadPriorityClass")
VOLCANO_QUEUE = GroupKind("scheduling.volcano.sh", "Queue")
KAI_QUEUE = GroupKind("scheduling.run.ai", "Queue")
VOLCANO_POD_GROUP = GroupKind("scheduling.volcano.sh", "PodGroup")
VOLCANO_JOB = GroupKind("batch.volcano.sh", "Job")

MPI_JOB = GroupKind("kubeflow.org", "MPIJob")
TRAINING_JOBS = tuple(
    GroupKind("kubeflow.org", name) for name in ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
)
"""The kinds of Kubeflow's training operator."""
JOB_SET = GroupKind("jobset.x-k8s.io", "JobSet")
TRAIN_JOB = GroupKind("trainer.kubeflow.org", "TrainJob")
RAY_JOB = GroupKind("ray.io", "RayJob")
RAY_CLUSTER = GroupKind("ray.io", "RayCluster")
LEADER_WORKER_SET = GroupKind("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
WORKFLOW = GroupKind("argoproj.io", "Workflow")
PIPELINE = GroupKind("tekton.dev", "Pipeline")
TASK = GroupKind("tekton.dev", "Task")
INFERENCE_SERVICE = GroupKind("serving.kserve.io", "InferenceService")
NETWORK_POLICY = GroupKind("networking.k8s.io", "NetworkPolicy")
PROMETHEUS_RULE = GroupKind("monitoring.coreos.com", "PrometheusRule")
SCALED_OBJECT = GroupKind("keda.sh", "ScaledObject")
MISPLACED_SCALED_OBJECT = GroupKind("autoscaling.keda.sh", "ScaledObject")
NODE_POOL = GroupKind("karpenter.sh", "NodePool")
NODE_CLAIM = GroupKind("karpenter.sh", "NodeClaim")
NODE_TOPOLOGY = GroupKind("topology.node.k8s.io", "NodeResourceTopology")
CLUSTER_POLICY = GroupKind("nvidia.com", "ClusterPolicy")
MISPLACED_CLUSTER_POLICY = GroupKind("config.openshift.io", "ClusterPolicy")

BUDGET_REPORT = GroupKind("config.shoal.dev", "BudgetReport")

WORKLOADS = (JOB, DEPLOYMENT, STATEFUL_SET)
OPERATED = (
    *TRAINING_JOBS,
    *(JOB_SET, TRAIN_JOB, RAY_JOB, RAY_CLUSTER, LEADER_WORKER_SET, INFERENCE_SERVICE, VOLCANO_JOB, WORKFLOW),
)
"""Kinds whose pods and Services an operator creates, if one is installed."""
POD_CREATORS = (*WORKLOADS, *OPERATED)
WITH_PODS = (POD, *POD_CREATORS)
"""Kinds that are pods or have pod templates."""

CLUSTER_WIDE = frozenset(
    {
        *(NODE, NAMESPACE, PRIORITY_CLASS, CLUSTER_QUEUE, RESOURCE_FLAVOR, WORKLOAD_PRIORITY_CLASS, VOLCANO_QUEUE),
        *(KAI_QUEUE, NODE_POOL, NODE_CLAIM, NODE_TOPOLOGY, CLUSTER_POLICY, MISPLACED_CLUSTER_POLICY),
    }
)
"""Kinds without a namespace."""
