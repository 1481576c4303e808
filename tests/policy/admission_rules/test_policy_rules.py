"""The admission rules: which pods break them, and that Python and the API server's expressions agree."""

from __future__ import annotations

import random
from typing import Any

import pytest

from build.ruled_pods import GPU, CompiledRules, container, cron_job, deployment, pod
from shoal.policy.admission_rules.modes import MAXIMUM_LABEL
from shoal.policy.admission_rules.policies import policy_name
from shoal.policy.catalogue import policy_checks
from shoal.policy.object_set import ObjectSet
from shoal.policy.rules.namespace_quotas import over_quota

Obj = dict[str, Any]
EQUAL = "GPU requests must equal limits"
TAINT = "GPU pods must tolerate nvidia.com/gpu taint"
AFFINITY = "GPU pods must specify nodeAffinity for GPU nodes"
MIG = "nvidia.com/mig-1g.10gb"
LIMIT_OF_TWO = {MAXIMUM_LABEL: "2"}


@pytest.fixture(scope="module")
def compiled() -> CompiledRules:
    return CompiledRules()


def _broken(obj: Obj, labels: dict[str, str]) -> dict[str, list[str]]:
    """The messages by reason, according to the rules in Python."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}}
    context = ObjectSet([namespace])
    found: dict[str, list[str]] = {}
    for check in policy_checks():
        for advice in check(obj, context):
            assert advice.reason in check.reasons
            found.setdefault(advice.reason, []).append(advice.what)
    return found


def _unequal(requests: Obj, limits: Obj | None = None) -> Obj:
    resources = {"requests": requests, **({} if limits is None else {"limits": limits})}
    return pod({"name": "main", "image": "i", "resources": resources})


def _affinity(*terms: Obj) -> Obj:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return pod(nodeSelector={}, affinity={"nodeAffinity": required})


def _expression(key: str, operator: str = "Exists") -> Obj:
    return {"matchExpressions": [{"key": key, "operator": operator}]}


def _env(name: str, value: str | None = None, **more: Any) -> Obj:
    return pod(container(env=[{"name": name, **({} if value is None else {"value": value}), **more}]))


def _host_path(path: str) -> Obj:
    return pod(volumes=[{"name": "v", "hostPath": {"path": path}}])


def _with_part(**annotations: str) -> Obj:
    named = {name.replace("_", "-"): text for name, text in annotations.items()}
    return pod(container(0), runtimeClassName="nvidia", annotations=named)


CASES = [
    (pod(), {}),
    (pod(container(0), tolerations=[], nodeSelector={}), {}),
    (pod(container(4, MIG)), {"OverNamespaceMaximum": 1}),
    (_unequal({GPU: "1"}, {GPU: "2"}), {"UnequalGpus": EQUAL}),
    (_unequal({GPU: "1"}), {"UnequalGpus": EQUAL}),
    (_unequal({MIG: "1"}, {GPU: "1"}), {"UnequalGpus": EQUAL}),
    (_unequal({f"{GPU}.shared": "1"}, {}), {"UnequalGpus": EQUAL}),
    (_unequal({"cpu": "1"}, {"cpu": "2", GPU: "1"}), {}),
    (pod(container(0), initContainers=[{**_unequal({GPU: "1"})["spec"]["containers"][0]}]), {"UnequalGpus": EQUAL}),
    (pod(tolerations=[]), {"NoGpuToleration": TAINT}),
    (pod(container(1, MIG), tolerations=[]), {"NoGpuToleration": TAINT}),
    (pod(container(1, f"{GPU}.shared"), tolerations=[]), {"NoGpuToleration": TAINT}),
    (pod(container(0), initContainers=[container()], tolerations=[]), {"NoGpuToleration": TAINT}),
    (pod(tolerations=[{"operator": "Exists"}]), {}),
    (pod(tolerations=[{"key": GPU, "operator": "Equal", "value": "present"}]), {}),
    (pod(tolerations=[{"key": GPU, "operator": "Exists", "effect": "NoExecute"}]), {"NoGpuToleration": TAINT}),
    (pod(tolerations=[{"key": "other", "operator": "Exists"}]), {"NoGpuToleration": TAINT}),
    (pod(nodeSelector={}), {"NoGpuNodeAffinity": AFFINITY}),
    (pod(nodeSelector={"zone": "a"}), {"NoGpuNodeAffinity": AFFINITY}),
    (pod(nodeSelector={"cloud.google.com/gke-accelerator": "nvidia-l4"}), {}),
    (pod(nodeSelector={}, nodeName="n1"), {}),
    (_affinity(_expression("nvidia.com/gpu.product", "In")), {}),
    (_affinity(_expression("nvidia.com/gpu.product"), _expression("zone")), {"NoGpuNodeAffinity": AFFINITY}),
    (_affinity(_expression("nvidia.com/gpu.product", "DoesNotExist")), {"NoGpuNodeAffinity": AFFINITY}),
    (_affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}), {}),
    (_env("NVIDIA_VISIBLE_DEVICES", "all"), {"VisibleDevicesByHand": 1}),
    (_env("NVIDIA_VISIBLE_DEVICES", "void"), {}),
    (_env("NVIDIA_VISIBLE_DEVICES"), {}),
    (
        _env("NVIDIA_VISIBLE_DEVICES", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
        {"VisibleDevicesByHand": 1},
    ),
    (_env("CUDA_VISIBLE_DEVICES", "0"), {}),
    (pod(container(envFrom=[{"prefix": "NVIDIA_", "configMapRef": {"name": "c"}}])), {"VisibleDevicesByHand": 1}),
    (pod(container(envFrom=[{"prefix": "APP_", "configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}])), {}),
    (pod(annotations={"cdi.k8s.io/x": "nvidia.com/gpu=all"}), {"VisibleDevicesByHand": 1}),
    (
        pod(container(volumeMounts=[{"name": "v", "mountPath": "/var/run/nvidia-container-devices/all"}])),
        {"VisibleDevicesByHand": 1},
    ),
    (_host_path("/dev/nvidia0"), {"GpuWithoutRequest": 1}),
    (_host_path("/dev"), {"GpuWithoutRequest": 1}),
    (_host_path("/"), {"GpuWithoutRequest": 1}),
    (_host_path("/./dev//nvidia-uvm"), {"GpuWithoutRequest": 1}),
    (_host_path("/proc/1/root/dev"), {"GpuWithoutRequest": 1}),
    (_host_path("/proc/1/cwd/dev/nvidia0"), {"GpuWithoutRequest": 1}),
    (_host_path("/proc"), {"GpuWithoutRequest": 1}),
    (_host_path("/run/nvidia/driver"), {"GpuWithoutRequest": 1}),
    (_host_path("/run/"), {"GpuWithoutRequest": 1}),
    (_host_path("/var"), {"GpuWithoutRequest": 1}),
    (_host_path("/var/run"), {"GpuWithoutRequest": 1}),
    (_host_path("/var/run/nvidia"), {"GpuWithoutRequest": 1}),
    (_host_path("/var/run/cdi"), {}),
    (_host_path("/var/log"), {}),
    (_host_path("/run/containerd"), {}),
    (_host_path("/process"), {}),
    (_host_path("/dev/hugepages"), {}),
    (_host_path("/dev/infiniband"), {}),
    (_host_path("/home/dev"), {}),
    (_host_path("/data"), {}),
    (pod(container(0), runtimeClassName="nvidia"), {"GpuWithoutRequest": 1}),
    (pod(container(0, env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}]), runtimeClassName="nvidia"), {}),
    (pod(runtimeClassName="nvidia"), {}),
    (pod(container(0), runtimeClassName="nvidia", annotations={"gpu-fraction": "0.5"}), {}),
    (_with_part(gpu_fraction="1.0"), {}),
    (_with_part(gpu_fraction="0"), {"GpuWithoutRequest": 1}),
    (_with_part(gpu_fraction="0.00"), {"GpuWithoutRequest": 1}),
    (_with_part(gpu_fraction=""), {"GpuWithoutRequest": 1}),
    (_with_part(gpu_fraction="-0.5"), {"GpuWithoutRequest": 1}),
    (_with_part(gpu_fraction="half 0.5"), {"GpuWithoutRequest": 1}),
    (_with_part(gpu_fraction="0.5\n"), {"GpuWithoutRequest": 1}),
    (_with_part(gpu_memory="2000"), {}),
    (_with_part(gpu_memory="0"), {"GpuWithoutRequest": 1}),
    (_with_part(gpu_memory="2Gi"), {"GpuWithoutRequest": 1}),
    (_with_part(gpu_fraction="0", gpu_memory="2000"), {}),
    (pod(container(0), runtimeClassName="nvidia", resourceClaims=[{"name": "c"}]), {"GpuWithoutRequest": 1}),
    (
        pod(
            container(0, env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]),
            runtimeClassName="nvidia",
            resourceClaims=[{"name": "c"}],
        ),
        {},
    ),
    (pod(container(0), runtimeClassName="gvisor"), {}),
    (pod(container(securityContext={"privileged": True})), {"PrivilegedContainer": 1}),
    (pod(container(securityContext={"privileged": False})), {}),
    (pod(ephemeralContainers=[container(0, securityContext={"privileged": True})]), {"PrivilegedContainer": 1}),
    (pod(container(2)), {}),
    (pod(container(1), container(2)), {"OverNamespaceMaximum": 1}),
    (pod(container(1), initContainers=[container(3)]), {"OverNamespaceMaximum": 1}),
]


@pytest.mark.parametrize("wrapped", [lambda made: made, deployment, cron_job], ids=["pod", "deployment", "cronjob"])
@pytest.mark.parametrize(("made", "expected"), CASES)
def test_the_rules_find_what_a_pod_breaks_in_pods_and_in_templates(
    compiled: CompiledRules, made: Obj, expected: Obj, wrapped: Any
) -> None:
    obj = wrapped(made)
    found = _broken(obj, LIMIT_OF_TWO)
    assert sorted(found) == sorted(expected)
    for reason, message in expected.items():
        assert message == 1 or message in found[reason]
    assert {name for name, _ in compiled.refusals(obj, LIMIT_OF_TWO)} == {policy_name(reason) for reason in expected}
    for name, message in compiled.refusals(obj, LIMIT_OF_TWO):
        reason = next(reason for reason in found if policy_name(reason) == name)
        assert message in found[reason] or reason == "OverNamespaceMaximum"


def test_rules_and_expressions_agree_about_combinations_of_all_cases(compiled: CompiledRules) -> None:
    draw = random.Random(22)
    for _ in range(150):
        spec: Obj = {}
        annotations: Obj = {}
        for made, _ in draw.sample(CASES, 3):
            for field, value in made["spec"].items():
                if isinstance(value, list):
                    spec[field] = [*spec.get(field, []), *value]
                elif draw.random() < 0.5:
                    spec[field] = value
            annotations |= made["metadata"].get("annotations", {})
        obj = pod(annotations=annotations)
        obj["spec"] = spec
        labels = draw.choice([{}, LIMIT_OF_TWO, {MAXIMUM_LABEL: "many"}])
        broken = {policy_name(reason) for reason in _broken(obj, labels)}
        assert {name for name, _ in compiled.refusals(obj, labels)} == broken


def test_config_maps_and_secrets_must_not_name_devices() -> None:
    for kind, field in (
        ("ConfigMap", "data"),
        ("Secret", "stringData"),
        ("Secret", "data"),
        ("ConfigMap", "binaryData"),
    ):
        obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "c"}, field: {"NVIDIA_VISIBLE_DEVICES": "all"}}
        assert list(_broken(obj, {})) == ["VisibleDevicesByHand"]
    assert _broken({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"A": "b"}}, {}) == {}


def test_an_update_that_leaves_the_template_alone_is_not_refused(compiled: CompiledRules) -> None:
    bad = deployment(pod(container(securityContext={"privileged": True})))
    scaled = {**bad, "spec": {**bad["spec"], "replicas": 3}}
    assert compiled.refusals(scaled, {}, before=bad) == set()
    assert compiled.refusals(scaled, {}, before=deployment(pod())) != set()
    annotated = deployment(pod(annotations={"cdi.k8s.io/x": "nvidia.com/gpu=all"}))
    assert compiled.refusals(annotated, {}, before=deployment(pod())) != set()


def test_the_maximum_of_a_namespace_is_named_in_the_message() -> None:
    found = _broken(pod(container(3)), LIMIT_OF_TWO)
    assert found == {"OverNamespaceMaximum": ["pods of this namespace must not request more than 2 GPUs"]}
    assert _broken(pod(container(3)), {}) == {}


ODD: tuple[Obj, ...] = (
    {},
    {"kind": "Pod", "metadata": [], "spec": None},
    {"kind": "Pod", "metadata": {"annotations": 3}, "spec": {"containers": [None, {"resources": 7, "env": "x"}]}},
    {"kind": "Pod", "spec": {"containers": {}, "volumes": [{"hostPath": []}], "nodeSelector": [], "affinity": "no"}},
    {"spec": {"template": {"spec": {"containers": [{"resources": {"limits": [], "requests": {GPU: []}}}]}}}},
)


@pytest.mark.parametrize("obj", ODD)
def test_rules_accept_objects_of_any_structure(obj: Obj) -> None:
    for check in (*policy_checks(), over_quota):
        assert all(advice.message() for advice in check(obj, ObjectSet([])))
