"""What the collected manifests are warned of, file by file: an Event on the object, once, and none on what is sound."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.collected_manifests import COLLECTED
from build.kubectl_runs import Kubectl
from build.living_cluster import until

pytestmark = pytest.mark.skipif(not COLLECTED.exists(), reason="no collected manifests beside this repository")

Said = Counter[tuple[str, str]]
"""Kind and reason."""
Found = Counter[tuple[str, str, str, str]]
"""Namespace, kind, name and reason."""
HANDS, LABEL = "VisibleDevicesByHand", "UnknownNodeLabel"
WANTED: dict[str, tuple[str, ...]] = {
    "kueue/clusterqueue-research-queue.yaml": ("ClusterQueue NoNamespaceSelector",),
    "kueue/localqueue-research-local.yaml": (),
    "kueue/resourceflavor-h100-nvlink.yaml": (),
    "kueue/workloadpriorityclasses-inference-spot.yaml": ("WorkloadPriorityClass MisplacedValue",) * 2,
    "kueue/workloadpriorityclasses-production-research.yaml": ("WorkloadPriorityClass MisplacedValue",) * 2,
    "volcano/podgroup-pytorch-distributed.yaml": ("PodGroup UnknownPriorityClass",),
    "volcano/queue-research.yaml": ("Queue UnknownField", "Queue UnknownField", "Queue NamesakeQueue"),
    "training/job-distributed-4x2.yaml": ("Job OldLauncher", "Job UnsetVariable", "Job NoSuchService"),
    "training/job-pytorch-4gpu-a100.yaml": (),
    "training/job-pytorch-single-gpu-v100.yaml": ("Job OldLauncher", f"Job {HANDS}", f"Job {HANDS}"),
    "training/job-pytorch-torchrun-2x4.yaml": ("Job NoRendezvous", "Job UnknownProductName"),
    "training/mpijob-nccl-test.yaml": ("MPIJob TopologyNotPassed", "MPIJob RootLauncher", "MPIJob MissingConfigMap"),
    "training/pytorchjob-llama2.yaml": (
        *("PyTorchJob MissingPersistentVolumeClaim",) * 2,
        *("PyTorchJob NoLauncher",) * 2,
        "PyTorchJob MisplacedQueueName",
    ),
    "scheduling/configmap-gpu-scheduler-leastallocated.yaml": (
        "ConfigMap NotAScheduler",
        "ConfigMap OldVersion",
        "ConfigMap Spreads",
    ),
    "scheduling/deployment-topology-4gpu-triton.yaml": (
        "Deployment UnknownProductName",
        "Deployment CountTooStrict",
        "Deployment NoSuchImage",
        f"Deployment {HANDS}",
    ),
    "scheduling/job-affinity-80gb-8gpu.yaml": (),
    "scheduling/job-nodeselector-hopper.yaml": (),
    "scheduling/pod-2-gpus-limits-only.yaml": (),
    "scheduling/pod-affinity-a100-antiaffinity-training.yaml": ("Pod UnknownProductName", "Pod RepelsOthersOnly"),
    "scheduling/pod-affinity-a100-memory-gt.yaml": ("Pod UnknownProductName",),
    "scheduling/pod-cuda-vectoradd-smoke.yaml": (),
    "scheduling/pod-nvidia-smi-smoke.yaml": ("Pod NoSuchImage",),
    "scheduling/pod-toleration-present.yaml": (),
    "scheduling/pod-tolerations-gpu-and-training.yaml": (),
    "quota/limitrange-ml-team.yaml": ("LimitRange GpuByDefault", "LimitRange GpuDemanded"),
    "quota/limitrange-team-ml.yaml": ("LimitRange GpuByDefault",),
    "quota/resourcequota-ml-team-20gpu.yaml": ("ResourceQuota NeverCounted",),
    "quota/resourcequota-ml-team-8gpu.yaml": ("ResourceQuota NeverCounted",),
    "quota/resourcequota-team-alpha.yaml": ("ResourceQuota NeverCounted",),
    "quota/resourcequota-team-ml.yaml": ("ResourceQuota NeverCounted",),
    "quota/resourcequota-team-research-priority-scope.yaml": ("ResourceQuota UnknownPriorityClass",),
    "inference/comfyui.yaml": (f"Deployment {LABEL}", "Deployment NoSuchImage", "Service OpenDoor"),
    "inference/ollama-multi-model.yaml": (f"StatefulSet {LABEL}", "StatefulSet NoHeadlessService"),
    "inference/open-webui.yaml": ("Deployment PlainSecret", "Service OpenDoor"),
    "inference/triton-deployment-service.yaml": (),
    "inference/vllm-mistral-7b.yaml": (f"Deployment {LABEL}", "HorizontalPodAutoscaler CpuOfGpuPods"),
    "mlops/argo-workflow-hyperparameter-sweep.yaml": ("Workflow ForeignTemplateLanguage", "Workflow UnusedParameters"),
    "mlops/kserve-inferenceservice-llama2.yaml": (),
    "mlops/tekton-pipeline-model-cicd.yaml": (
        *("Pipeline MissingTask",) * 2,
        "Pipeline OldFieldName",
        "Pipeline MisplacedTolerations",
        "Pipeline NotShared",
    ),
    "autoscale/cluster-autoscaler-priority-expander.yaml": ("ConfigMap HighestNumberWins",),
    "autoscale/hpa-llm-gpu-utilization.yaml": (),
    "autoscale/scaledobject-cron-business-hours.yaml": ("ScaledObject MisplacedGroup",),
    "autoscale/scaledobject-sqs.yaml": ("ScaledObject TriggerWithoutCredentials",),
    "monitoring/prometheusrule-gpu-health.yaml": (
        "PrometheusRule LabelNotInAlert",
        "PrometheusRule UsedByFree",
        "PrometheusRule XidIsAGauge",
    ),
    "monitoring/prometheusrule-gpu-rules.yaml": (),
    "monitoring/prometheusrule-legacy-dcgm-alerts.yaml": (
        *("PrometheusRule OldMetricName",) * 4,
        "PrometheusRule UsedByFree",
        "PrometheusRule RateOfGauge",
        "PrometheusRule TrueWithoutNvlink",
    ),
    "monitoring/prometheusrule-recording-deployment-util.yaml": (
        "PrometheusRule OldMetricName",
        "PrometheusRule LabelNotExported",
    ),
    "security/networkpolicy-deny-cross-tenant.yaml": (
        "NetworkPolicy NoNameResolution",
        "NetworkPolicy NoExternalTraffic",
    ),
    "security/networkpolicy-gpu-workload.yaml": (
        "NetworkPolicy NoNameResolution",
        *("NetworkPolicy UnsetNamespaceLabel",) * 2,
    ),
    "sharing/mig-custom-mixed-configmap.yaml": ("ConfigMap NoDisabledLayout", "ConfigMap MixedLayout"),
    "sharing/mig-pod-1g5gb-mistral.yaml": ("Pod ModelTooLarge",),
    "sharing/mig-plus-time-slicing-configmap.yaml": ("ConfigMap ShortForm", "ConfigMap SharedInstances"),
    "sharing/time-slicing-configmap-replicas4.yaml": (),
    "sharing/time-slicing-configmap-short-form.yaml": ("ConfigMap ShortForm",),
}
CLUSTER_WIDE = ("ClusterQueue", "ResourceFlavor", "WorkloadPriorityClass", "Queue")
SHARED = ("clusterqueues.kueue.x-k8s.io", "resourceflavors", "workloadpriorityclasses", "queues.scheduling.volcano.sh")


@pytest.fixture(scope="module")
def said(collected_fleet: ServerProcess, kubectl_home: Path) -> dict[str, Said]:
    """By file; every file in a namespace of its own, named by its place in the table."""
    kubectl = Kubectl(collected_fleet.kubeconfig, kubectl_home)
    names = {f"advice-{at}": path for at, path in enumerate(WANTED)}
    made = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    kubectl("create", "-f-", given=made)
    for name, path in names.items():
        text = re.sub(r"(?m)^  namespace: \S+$", f"  namespace: {name}", (COLLECTED / path).read_text())
        kubectl.within(name)("apply", "-f-", given=text)
    found: Found = Counter()

    def is_complete() -> bool:
        # Those of an hour ago have expired, and an hour is a minute here.
        nonlocal found
        found |= all_said(kubectl)
        return sum(found.values()) >= sum(len(each) for each in WANTED.values())

    try:
        with suppress(AssertionError):
            # What is missing is better told file by file.
            until(is_complete)
    finally:
        kubectl("delete", "namespace", *names, "--wait=false")
        for kind in SHARED:
            kubectl("delete", kind, "--all")
    return {path: _of(found, name, path) for name, path in names.items()}


def all_said(kubectl: Kubectl) -> Found:
    """Of objects that are there now; those without a namespace may have had namesakes before."""
    present = {one["metadata"]["uid"] for one in kubectl.get(",".join(SHARED))["items"]}
    found = kubectl.get("events", "--all-namespaces", "--field-selector=source=shoal-advisor")["items"]
    return Counter(
        (about.get("namespace", ""), about["kind"], about["name"], one["reason"])
        for one in found
        if one["count"] == 1 and one["type"] == "Warning" and (about := one["involvedObject"])
        if about.get("namespace", "").startswith("advice-") or about["uid"] in present
    )


def _of(found: Found, namespace: str, path: str) -> Said:
    text = (COLLECTED / path).read_text()
    said: Said = Counter()
    for (where, kind, name, reason), count in found.items():
        is_own = not where and kind in CLUSTER_WIDE and f"kind: {kind}\n" in text and f"  name: {name}\n" in text
        if where == namespace or is_own:
            said[kind, reason] += count
    return said


@pytest.mark.parametrize("path", WANTED)
def test_a_file_is_warned_of_what_is_wrong_with_it_and_of_nothing_else(said: dict[str, Said], path: str) -> None:
    wanted = Counter((kind, reason) for kind, reason in (one.split() for one in WANTED[path]))
    assert said[path] == wanted


def test_every_collected_object_is_in_the_table_or_has_a_test_of_its_own() -> None:
    folders = ("kueue", "volcano", "training", "scheduling", "quota", "inference", "mlops")
    found = [f"{folder}/{path.name}" for folder in folders for path in sorted((COLLECTED / folder).glob("*.yaml"))]
    told = "".join(path.read_text() for path in Path(__file__).parent.glob("test_collected_*.py"))
    assert [path for path in found if path not in told] == []
