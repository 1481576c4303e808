"""Objects of a cluster that passes all readiness checks which objects can answer, and of a bare one with GPUs."""

from __future__ import annotations

from build.diagnosed_clusters import GPU_TAINT, gpu_node
from build.manifests import Object, job, pod, replicas, thing
from shoal.policy.alert_rules import prometheus_rule
from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster
from shoal.policy.readiness.checklist import needed_kinds, readiness
from shoal.policy.readiness.outcomes import ReadinessFacts, ReadinessItem
from shoal.policy.tenants.priorities import PRIORITIES, workload_priority_class

LABELS = {
    "nvidia.com/cuda.driver-version.major": "580",
    "nvidia.com/mig.capable": "true",
    "nvidia.com/mig.config": "all-1g.10gb",
    "nvidia.com/mig.config.state": "success",
    "gpu.nvidia.com/nvlink-enabled": "true",
    "shoal.dev/topology-manager-policy": "single-numa-node",
    "karpenter.sh/capacity-type": "spot",
    "nvidia.com/gpu.sharing-strategy": "mps",
}
NODE_CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
DASHBOARD = "DCGM_FI_DEV_GPU_UTIL DCGM_FI_DEV_GPU_TEMP DCGM_FI_DEV_FB_USED DCGM_FI_PROF_NVLINK_TX_BYTES"
MESSAGES = (
    "GPU requests must equal limits",
    "GPU pods must tolerate nvidia.com/gpu taint",
    "GPU pods must specify nodeAffinity for GPU nodes",
)
METRICS = """
DCGM_FI_DEV_GPU_UTIL{UUID="a",Hostname="gpu-1",namespace="team",pod="train"} 74
DCGM_FI_DEV_FB_USED{UUID="a",Hostname="gpu-1",namespace="team",pod="train"} 70000
DCGM_FI_DEV_FB_FREE{UUID="a",Hostname="gpu-1",namespace="team",pod="train"} 10000
"""


def checked_items(*objects: Object, metrics: str | None = None, unread: bool = False) -> dict[str, ReadinessItem]:
    """By id, in a cluster of which all kinds are known; `unread`: only those of the objects."""
    known = () if unread else needed_kinds()
    report = readiness(ReadinessFacts(DiagnosedCluster(objects, known, metrics=metrics)))
    return {item.id: item for item in report.items}


def program(kind: str, name: str, image: str, *arguments: str) -> Object:
    made = replicas(kind, name, 1)
    made["spec"]["template"]["spec"]["containers"] = [{"name": "main", "image": image, "args": list(arguments)}]
    return made


def bare() -> list[Object]:
    """Nodes with GPUs and a pod that uses one, and nothing else."""
    node = gpu_node("gpu-1")
    node["spec"] = {"providerID": "aws:///zone/i-1"}
    train = job("team/train", 2, 8)
    serving = replicas("Deployment", "team/serve", 1, 1)
    namespace = thing("v1", "Namespace", "team")
    return [node, pod("team/train-0", 8, "gpu-1", status={"phase": "Running"}), train, serving, namespace]


def ready() -> list[Object]:
    node = gpu_node("gpu-1", labels=LABELS)
    node["spec"] = {"providerID": "aws:///zone/i-1", "taints": [GPU_TAINT]}
    train = job("team/train", 2, 8)
    spec = train["spec"]["template"]["spec"]
    spec["volumes"] = CLAIM
    spec["containers"][0] |= {
        "args": ["--out", "s3://bucket/run", "--loader", "webdataset"],
        "env": [{"name": "NCCL_TOPO_FILE", "value": "/topo/ndv5.xml"}],
    }
    serving = replicas("Deployment", "team/serve", 1, 1)
    running = pod("team/train-0", 8, "gpu-1", status={"phase": "Running"}, volumes=CLAIM)
    labels = {"pod-security.kubernetes.io/enforce": "restricted", "shoal.dev/team": "team"}
    namespace = thing("v1", "Namespace", "team")
    namespace["metadata"]["labels"] = labels
    dashboard = thing("v1", "ConfigMap", "monitoring/gpus", data={"gpus.json": DASHBOARD})
    dashboard["metadata"]["labels"] = {"grafana_dashboard": "1"}
    hard = {
        "requests.nvidia.com/gpu": 8,
        "requests.cpu": 64,
        "requests.memory": "1Ti",
        "requests.storage": "1Ti",
    }
    return [
        node,
        train,
        serving,
        running,
        namespace,
        dashboard,
        *_programs(),
        *_queues(),
        thing("v1", "ResourceQuota", "team/quota", spec={"hard": hard}),
        thing(
            "v1",
            "PersistentVolumeClaim",
            "team/data",
            spec={"accessModes": ["ReadWriteMany"]},
            status={"phase": "Bound"},
        ),
        thing(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "team/deny",
            spec={
                "podSelector": {},
                "policyTypes": ["Ingress", "Egress"],
                "egress": [{"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}],
            },
        ),
        thing(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "team/serve",
            spec={"scaleTargetRef": {"name": "serve"}, "metrics": [{"type": "Pods", "pods": {}}]},
        ),
        thing(
            "keda.sh/v1alpha1", "ScaledObject", "team/x", status={"conditions": [{"type": "Ready", "status": "True"}]}
        ),
        thing(
            "karpenter.sh/v1",
            "NodePool",
            "gpu",
            spec={
                "limits": {"nvidia.com/gpu": 8},
                "template": {"spec": {"taints": [GPU_TAINT], "nodeClassRef": NODE_CLASS}},
            },
        ),
        thing("nvidia.com/v1", "ClusterPolicy", "p", spec={"driver": {"upgradePolicy": {"autoUpgrade": True}}}),
        prometheus_rule("alerts", "monitoring", {}),
        *_monitors(),
        *_policies(),
    ]


def _programs() -> list[Object]:
    return [
        program("Deployment", "gpu-operator/gpu-operator", "nvcr.io/nvidia/gpu-operator:v25.10.0"),
        program("DaemonSet", "gpu-operator/nvidia-container-toolkit-daemonset", "nvcr.io/toolkit:v1.18.0"),
        program("DaemonSet", "gpu-operator/nvidia-dcgm-exporter", "nvcr.io/dcgm-exporter:4.4.1"),
        program("Deployment", "kueue-system/kueue-controller-manager", "kueue:v0.14.0"),
        program(
            "Deployment",
            "kube-system/cluster-autoscaler",
            "autoscaler:v1.34.0",
            "--scale-down-delay-after-add=10m",
            "--scale-down-unneeded-time=10m",
        ),
        program("Deployment", "cost/opencost", "opencost:1"),
        program("Deployment", "argo/workflow-controller", "argo:1"),
        program("Deployment", "tekton/tekton-pipelines-controller", "tekton:1"),
        program("Deployment", "kserve/kserve-controller-manager", "kserve:1"),
        program("Deployment", "argocd/argocd-server", "argocd:1"),
    ]


def _queues() -> list[Object]:
    resources = [{"name": "nvidia.com/gpu", "nominalQuota": 8}]
    spec = {
        "cohortName": "all",
        "preemption": {"reclaimWithinCohort": "Any"},
        "resourceGroups": [{"flavors": [{"name": "f", "resources": resources}]}],
    }
    return [
        thing("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "f"),
        thing("kueue.x-k8s.io/v1beta2", "ClusterQueue", "team", spec=spec),
        *(workload_priority_class(name) for name in PRIORITIES),
    ]


def _monitors() -> list[Object]:
    endpoints = {"endpoints": [{"port": "metrics", "interval": "30s"}]}
    return [
        thing("monitoring.coreos.com/v1", "ServiceMonitor", "monitoring/dcgm", spec=endpoints),
        thing("monitoring.coreos.com/v1", "ServiceMonitor", "monitoring/kueue", spec=endpoints),
    ]


def _policies() -> list[Object]:
    group = "admissionregistration.k8s.io/v1"
    spec = {"validations": [{"expression": "true", "message": message} for message in MESSAGES]}
    binding = {"policyName": "gpus", "validationActions": ["Deny"]}
    return [
        thing(group, "ValidatingAdmissionPolicy", "gpus", spec=spec),
        thing(group, "ValidatingAdmissionPolicyBinding", "gpus", spec=binding),
    ]
