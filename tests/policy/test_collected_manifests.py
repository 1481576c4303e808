"""Every collected manifest is readable, and has the warnings that its collection expects, beside a tainted GPU node."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from build.collected_manifests import COLLECTED
from build.manifests import node
from shoal.api.plain_objects import read_plain_objects
from shoal.cli.main import main
from shoal.policy.catalogue import faults, rules
from shoal.policy.checks import warnings
from shoal.policy.fragments import described
from shoal.policy.lint import lint_files
from shoal.policy.object_set import ObjectSet

pytestmark = pytest.mark.skipif(not COLLECTED.exists(), reason="no collected manifests beside this repository")

_INDEX = COLLECTED / "INDEX.md"
ROWS: list[tuple[str, str, str]] = (
    re.findall(r"^\| (\S+\.yaml) \| ([^|]+) \| ([^|]+) \|$", _INDEX.read_text(encoding="utf-8"), re.MULTILINE)
    if _INDEX.exists()
    else []
)
"""File, kinds, and what should happen."""
NO_OBJECTS = ("values", "fragment", "test data")
_GPU_LABELS = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.family": "hopper",
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
}
_FLAVOR_LABELS = {"nvidia.com/gpu.count": "8", "gpu.nvidia.com/nvlink-enabled": "true"}
CLUSTER = (
    node(
        "gpu-0",
        8,
        labels={**_GPU_LABELS, **_FLAVOR_LABELS},
        spec={"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
    ),
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": 1},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}},
)
EXPECTED = {
    "autoscale/cluster-autoscaler-deployment.yaml": "MissingField",
    "autoscale/cluster-autoscaler-priority-expander.yaml": "HighestNumberWins",
    "autoscale/hpa-vllm-requests-running.yaml": "NoTargetVersion OldMetricName",
    "autoscale/scaledobject-cron-business-hours.yaml": "MisplacedGroup",
    "autoscale/scaledobject-sqs.yaml": "TriggerWithoutCredentials",
    "inference/comfyui.yaml": "NoSuchImage OpenDoor UnknownNodeLabel",
    "inference/ollama-multi-model.yaml": "NoHeadlessService UnknownNodeLabel",
    "inference/open-webui.yaml": "OpenDoor PlainSecret",
    "inference/vllm-mistral-7b.yaml": "CpuOfGpuPods UnknownNodeLabel",
    "karpenter/nodepool-gpu-inference.yaml": "NoNodeClass OldVersion TaintWithoutValue",
    "karpenter/nodepool-gpu-pool.yaml": "NoNodeClass NotAnInstanceAttribute OldFieldName OldVersion UnknownProductName",
    "karpenter/nodepool-gpu-training.yaml": "NoNodeClass OldFieldName OldVersion",
    "kueue/clusterqueue-research-queue.yaml": "NoNamespaceSelector",
    "kueue/resourceflavor-h100-nvlink.yaml": "TaintedNodes",
    "kueue/workloadpriorityclasses-inference-spot.yaml": "MisplacedValue",
    "kueue/workloadpriorityclasses-production-research.yaml": "MisplacedValue",
    "mlops/argo-workflow-hyperparameter-sweep.yaml": "ForeignTemplateLanguage UnusedParameters",
    "mlops/kserve-inferenceservice-llama2.yaml": "UntoleratedTaint",
    "mlops/tekton-pipeline-model-cicd.yaml": "MisplacedTolerations NotShared OldFieldName",
    "monitoring/prometheusrule-gpu-health.yaml": "LabelNotInAlert UsedByFree XidIsAGauge",
    "monitoring/prometheusrule-legacy-dcgm-alerts.yaml": "OldMetricName RateOfGauge TrueWithoutNvlink UsedByFree",
    "monitoring/prometheusrule-recording-deployment-util.yaml": "LabelNotExported OldMetricName",
    "quota/limitrange-ml-team.yaml": "GpuByDefault GpuDemanded",
    "quota/limitrange-team-ml.yaml": "GpuByDefault",
    "quota/resourcequota-ml-team-20gpu.yaml": "NeverCounted",
    "quota/resourcequota-ml-team-8gpu.yaml": "NeverCounted",
    "quota/resourcequota-team-alpha.yaml": "NeverCounted",
    "quota/resourcequota-team-ml.yaml": "NeverCounted",
    "quota/resourcequota-team-research-priority-scope.yaml": "UnknownPriorityClass",
    "scheduling/configmap-gpu-scheduler-leastallocated.yaml": "NotAScheduler OldVersion Spreads",
    "scheduling/deployment-topology-4gpu-triton.yaml": (
        "CountTooStrict NoSuchImage UnknownProductName VisibleDevicesByHand"
    ),
    "scheduling/node-nvlink-labels.yaml": "InvalidObject",
    "scheduling/pod-affinity-a100-antiaffinity-training.yaml": "RepelsOthersOnly UnknownProductName",
    "scheduling/pod-affinity-a100-memory-gt.yaml": "UnknownProductName",
    "scheduling/pod-nvidia-smi-smoke.yaml": "NoSuchImage",
    "security/networkpolicy-deny-cross-tenant.yaml": "NoExternalTraffic NoNameResolution",
    "security/networkpolicy-gpu-workload.yaml": "NoNameResolution UnsetNamespaceLabel",
    "security/resourcequota-team-a-gpu.yaml": "NeverCounted UnsupportedScope",
    "sharing/mig-custom-mixed-configmap.yaml": "MixedLayout NoDisabledLayout",
    "sharing/mig-custom-profile-configmap.yaml": "MixedLayout NoDisabledLayout",
    "sharing/mig-plus-time-slicing-configmap.yaml": "NotTheOperatorsNamespace SharedInstances ShortForm",
    "sharing/mig-pod-1g5gb-mistral.yaml": "ModelTooLarge",
    "sharing/time-slicing-configmap-nvidia-system.yaml": "MisplacedGroup",
    "sharing/time-slicing-configmap-short-form.yaml": "ShortForm",
    "training/job-distributed-4x2.yaml": "OldLauncher UnsetVariable",
    "training/job-pytorch-single-gpu-v100.yaml": "OldLauncher VisibleDevicesByHand",
    "training/job-pytorch-torchrun-2x4.yaml": "NoRendezvous UnknownProductName",
    "training/mpijob-nccl-test.yaml": "RootLauncher TopologyNotPassed UntoleratedTaint",
    "training/pytorchjob-llama2.yaml": "MisplacedQueueName NoLauncher UntoleratedTaint",
    "volcano/podgroup-pytorch-distributed.yaml": "UnknownPriorityClass",
    "volcano/queue-research.yaml": "UnknownField",
}
"""Rules by file. Other files have no warning."""


@pytest.mark.parametrize(("path", "kinds", "words"), ROWS, ids=[path for path, *_ in ROWS])
def test_a_collected_manifest_has_the_expected_warnings(path: str, kinds: str, words: str) -> None:
    read = read_plain_objects([str(COLLECTED / path)])
    assert read.errors == []
    if kinds in NO_OBJECTS:
        assert read.objects == []
        assert all(described(other.value) for other in read.others)
        return
    objects = [one.obj for one in read.objects]
    context = ObjectSet((*CLUSTER, *objects))
    found = warnings([("", obj) for obj in objects], context, faults(), of_files=True)
    # The collection expects nothing of what is only worth knowing.
    names = {one.rule for one in found if rules()[one.rule].severity != "info" or one.rule in EXPECTED.get(path, "")}
    assert sorted(names) == sorted(EXPECTED.get(path, "").split())
    is_warned = "warn" in words.partition(":")[0] or words.startswith("refuse")
    assert is_warned <= (path in EXPECTED), "the collection expects a warning"


def test_the_whole_collection_is_readable_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--fail-on", "never", str(COLLECTED)]) == 0
    out, err = capsys.readouterr()
    assert re.fullmatch(r"[0-9]+ findings in [0-9]+ of [0-9]+ objects", out.splitlines()[-1])
    without = {str(COLLECTED / path) for path, kinds, _ in ROWS if kinds in NO_OBJECTS}
    assert {line.split(": ")[1] for line in err.splitlines()} <= without, "fragments are checked"
    assert all("not checked, because it is no object but " in line for line in err.splitlines())


EXPRESSIONS = {
    "adapter-metrics-query": "OldMetricName",
    "alert-legacy-temp-over-85": "OldMetricName",
    "alert-memory-leaking": "OldMetricName RateOfGauge UsedByFree",
    "alert-memory-used-by-free-95": "UsedByFree",
    "alert-nccl-training-stalled": "OldMetricName TrueWithoutNvlink",
    "alert-underutilized-1h-20": "OldMetricName",
    "alert-xid-rate": "XidIsAGauge",
    "cost-efficiency-by-namespace": "NegativeIdleShare OldMetricName",
    "gpu-memory-over-90-used-by-free": "UsedByFree",
    "heatmap-namespace-gpu-utilization": "OldMetricName",
    "kueue-admission-wait": "HistogramAsValue",
    "pod-dram-active": "OldMetricName",
    "pod-gpu-temp": "OldMetricName",
    "pod-gpu-utilization": "OldMetricName",
    "pod-memory-used-by-free": "OldMetricName UsedByFree",
    "pod-namespace-gpu-utilization": "OldMetricName",
    "pod-power-usage": "OldMetricName",
    "recording-deployment-gpu-utilization-avg": "LabelNotExported OldMetricName",
    "xid48-present": "XidIsAGauge",
    "xid48-rate-called-oom": "XidIsAGauge",
}
"""Rules by expression. Other expressions are right."""


@pytest.mark.parametrize("path", sorted(COLLECTED.glob("promql/*.promql")), ids=lambda path: path.stem)
def test_a_collected_expression_has_the_warning_that_names_its_mistake(path: Path) -> None:
    read = read_plain_objects([str(path)])
    found = lint_files(read, ObjectSet(()), frozenset(faults())).findings
    assert sorted({each.rule for each in found}) == EXPRESSIONS.get(path.stem, "").split()
