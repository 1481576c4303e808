"""Lists the kinds of other projects that Shoal's controllers read and write, with the supported versions.

They exist only where they are installed; `served.py` reports which are. If a server has only an older version of a
kind, `served.py` finds that version, and `api/` reads both.
"""

from __future__ import annotations

from shoal.client.kind import Kind

KUEUE = "kueue.x-k8s.io"
VOLCANO = "scheduling.volcano.sh"


def _cluster_wide(group: str, version: str, plural: str, name: str) -> Kind:
    return Kind(group, version, plural, name, is_namespaced=False)


SCALED_OBJECTS = Kind("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject")
SCALED_JOBS = Kind("keda.sh", "v1alpha1", "scaledjobs", "ScaledJob")
TRIGGER_AUTHENTICATIONS = Kind("keda.sh", "v1alpha1", "triggerauthentications", "TriggerAuthentication")
CLUSTER_TRIGGER_AUTHENTICATIONS = _cluster_wide(
    "keda.sh", "v1alpha1", "clustertriggerauthentications", "ClusterTriggerAuthentication"
)

WORKLOADS = Kind(KUEUE, "v1beta2", "workloads", "Workload")
LOCAL_QUEUES = Kind(KUEUE, "v1beta2", "localqueues", "LocalQueue")
CLUSTER_QUEUES = _cluster_wide(KUEUE, "v1beta2", "clusterqueues", "ClusterQueue")
COHORTS = _cluster_wide(KUEUE, "v1beta2", "cohorts", "Cohort")
RESOURCE_FLAVORS = _cluster_wide(KUEUE, "v1beta2", "resourceflavors", "ResourceFlavor")
ADMISSION_CHECKS = _cluster_wide(KUEUE, "v1beta2", "admissionchecks", "AdmissionCheck")
KUEUE_TOPOLOGIES = _cluster_wide(KUEUE, "v1beta2", "topologies", "Topology")
WORKLOAD_PRIORITY_CLASSES = _cluster_wide(KUEUE, "v1beta2", "workloadpriorityclasses", "WorkloadPriorityClass")

VOLCANO_POD_GROUPS = Kind(VOLCANO, "v1beta1", "podgroups", "PodGroup")
VOLCANO_QUEUES = _cluster_wide(VOLCANO, "v1beta1", "queues", "Queue")
VOLCANO_JOBS = Kind("batch.volcano.sh", "v1alpha1", "jobs", "Job")
HYPER_NODES = _cluster_wide("topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode")

LIGHT_POD_GROUPS = Kind("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
"""PodGroups of scheduler-plugins."""

KAI_POD_GROUPS = Kind("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup")
KAI_QUEUES = _cluster_wide("scheduling.run.ai", "v2", "queues", "Queue")
KAI_SHARDS = _cluster_wide("kai.scheduler", "v1", "schedulingshards", "SchedulingShard")
KAI_CONFIGS = _cluster_wide("kai.scheduler", "v1", "configs", "Config")
KAI_TOPOLOGIES = _cluster_wide("kai.scheduler", "v1alpha1", "topologies", "Topology")

NODE_POOLS = _cluster_wide("karpenter.sh", "v1", "nodepools", "NodePool")
NODE_CLAIMS = _cluster_wide("karpenter.sh", "v1", "nodeclaims", "NodeClaim")

PROVISIONING_REQUESTS = Kind("autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest")
CAPACITY_BUFFERS = Kind("autoscaling.x-k8s.io", "v1beta1", "capacitybuffers", "CapacityBuffer")
PROVISIONING_CONFIGS = _cluster_wide(KUEUE, "v1beta2", "provisioningrequestconfigs", "ProvisioningRequestConfig")

GROUP_WORKLOADS = Kind("scheduling.k8s.io", "v1alpha1", "workloads", "Workload")
GROUP_POD_GROUPS = Kind("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")

NODE_TOPOLOGIES = _cluster_wide("topology.node.k8s.io", "v1alpha2", "noderesourcetopologies", "NodeResourceTopology")

JOB_SETS = Kind("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
PYTORCH_JOBS = Kind("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob")
TRAIN_JOBS = Kind("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
RAY_JOBS = Kind("ray.io", "v1", "rayjobs", "RayJob")
RAY_CLUSTERS = Kind("ray.io", "v1", "rayclusters", "RayCluster")
RAY_SERVICES = Kind("ray.io", "v1", "rayservices", "RayService")
LEADER_WORKER_SETS = Kind("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")
SPARK_APPLICATIONS = Kind("sparkoperator.k8s.io", "v1beta2", "sparkapplications", "SparkApplication")
APP_WRAPPERS = Kind("workload.codeflare.dev", "v1beta2", "appwrappers", "AppWrapper")

CLUSTER_POLICIES = _cluster_wide("nvidia.com", "v1", "clusterpolicies", "ClusterPolicy")
MISPLACED_CLUSTER_POLICIES = _cluster_wide("config.openshift.io", "v1", "misplacedclusterpolicies", "ClusterPolicy")
"""The kind in manifests that are often copied; it is used where there is no object of the real kind."""
NVIDIA_DRIVERS = _cluster_wide("nvidia.com", "v1alpha1", "nvidiadrivers", "NVIDIADriver")
SERVICE_MONITORS = Kind("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor")
