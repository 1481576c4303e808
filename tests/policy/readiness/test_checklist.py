"""Each readiness check passes in a ready cluster, fails in a bare one, and is not run where its objects are unknown."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from build.manifests import Object, pod, thing
from build.ready_clusters import LABELS, METRICS, bare, checked_items, program, ready
from shoal.api.plain_objects import PlainObjects, add_file
from shoal.policy.catalogue import rules
from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster
from shoal.policy.kinds import DEPLOYMENT, LIMIT_RANGE
from shoal.policy.readiness.checklist import SECTIONS, check_ids, needed_kinds, readiness
from shoal.policy.readiness.outcomes import ReadinessFacts, ReadinessItem, RecordedHistory, passed

_ONLY_BY_HAND = {"device-files", "storage-bandwidth", "spot-strategy", "commitments"}
"""What no object of a cluster can show."""
_OPTIONAL = {
    "node-pools",
    "scaled-objects",
    "workflows",
    "delivery",
    "serving",
    "gitops",
    "spot-training",
    "shared-gpus",
}
_TESTING = {check.id for section, checks in SECTIONS if section == "Testing" for check in checks}
_READY = checked_items(*ready(), metrics=METRICS)
_BARE = checked_items(*bare())
_NOT_FAILING_WHEN_BARE = {
    "drivers": "not run",
    "toolkit": "manual",
    "numa": "manual",
    "fabric": "not applicable",
    "dashboards": "manual",
    "idle-cost": "manual",
    "queue-metrics": "not applicable",
    "driver-updates": "manual",
    "object-store": "manual",
    "loaders": "manual",
    "utilization": "not run",
}


@pytest.mark.parametrize("name", check_ids())
def test_a_ready_cluster_passes_every_check_that_objects_can_answer(name: str) -> None:
    item = _READY[name]
    expected = "manual" if name in _ONLY_BY_HAND else "not run" if name in _TESTING else "pass"
    if name == "fabric":
        expected = "not applicable"
    assert (item.state, item.evidence) == (expected, item.evidence)
    assert item.evidence


@pytest.mark.parametrize("name", check_ids())
def test_a_bare_cluster_fails_or_says_why_it_cannot_be_judged(name: str) -> None:
    item = _BARE[name]
    if name in _TESTING:
        expected = "not run"
    elif name in _ONLY_BY_HAND:
        expected = "manual"
    elif name in _OPTIONAL:
        expected = "not applicable"
    else:
        expected = _NOT_FAILING_WHEN_BARE.get(name, "fail")
    assert item.state == expected, item
    assert item.state != "fail" or item.fix


def test_without_objects_nothing_passes() -> None:
    states = Counter(item.state for item in checked_items(unread=True).values())
    assert states["pass"] == 0
    assert states["fail"] == 0
    assert states["not run"] > 40


def test_a_kind_that_may_not_be_read_is_the_reason_why_a_check_is_not_run() -> None:
    from shoal.policy.kinds import NODE

    report = readiness(ReadinessFacts(DiagnosedCluster([], (), unread={NODE: "nodes is forbidden"})))
    found = {item.id: item for item in report.items}["drivers"]
    assert (found.state, found.evidence) == ("not run", ("nodes is forbidden",))


def test_ids_are_unique() -> None:
    assert len(set(check_ids())) == len(check_ids())


def _changed(name: str, *objects: Object) -> str:
    """The state of a check in a ready cluster with these objects in place of those of the same kind and name."""
    given = {(obj["kind"], obj["metadata"]["name"]): obj for obj in (*ready(), *objects)}
    return checked_items(*given.values(), metrics=METRICS)[name].state


def _node(**labels: str) -> Object:
    made = next(obj for obj in ready() if obj["kind"] == "Node")
    made["metadata"]["labels"] |= labels
    return made


@pytest.mark.parametrize(
    ("name", "obj"),
    [
        ("gpu-operator", program("Deployment", "gpu-operator/gpu-operator", "nvidia/gpu-operator:v24.6.1")),
        ("drivers", _node(**{"nvidia.com/cuda.driver-version.major": "525"})),
        ("drivers", _node(**{"nvidia.com/gpu.product": "NVIDIA-B200", "nvidia.com/cuda.driver-version.major": "550"})),
        ("toolkit", program("DaemonSet", "gpu-operator/nvidia-container-toolkit-daemonset", "x/toolkit:v1.17.4-ubi8")),
        ("numa", _node(**{"shoal.dev/topology-manager-policy": "best-effort"})),
        ("mig-layouts", _node(**{"nvidia.com/mig.config.state": "failed"})),
        ("node-autoscaling", program("Deployment", "kube-system/cluster-autoscaler", "a:v1", "--v=4")),
        ("shared-gpus", pod("other/notebook", 1, "gpu-1", status={"phase": "Running"})),
        ("spot-training", pod("team/loose", 1, "gpu-1", status={"phase": "Running"})),
        ("quotas", thing("v1", "ResourceQuota", "team/quota", spec={"hard": {"limits.nvidia.com/gpu": 8}})),
        (
            "replica-metrics",
            thing(
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                "team/serve",
                spec={
                    "scaleTargetRef": {"kind": "Deployment", "name": "serve"},
                    "metrics": [{"type": "Resource", "resource": {"name": "cpu"}}],
                },
            ),
        ),
        (
            "scrape-interval",
            thing(
                "monitoring.coreos.com/v1",
                "ServiceMonitor",
                "monitoring/dcgm",
                spec={"endpoints": [{"interval": "1m"}]},
            ),
        ),
        (
            "admission-rules",
            thing(
                "admissionregistration.k8s.io/v1",
                "ValidatingAdmissionPolicyBinding",
                "gpus",
                spec={"policyName": "gpus", "validationActions": ["Warn"]},
            ),
        ),
        (
            "admission-rules",
            thing(
                "admissionregistration.k8s.io/v1",
                "ValidatingAdmissionPolicyBinding",
                "gpus",
                spec={
                    "policyName": "gpus",
                    "validationActions": ["Deny"],
                    "matchResources": {"namespaceSelector": {"matchLabels": {"other": "x"}}},
                },
            ),
        ),
        (
            "network-policies",
            thing(
                "networking.k8s.io/v1",
                "NetworkPolicy",
                "team/deny",
                spec={"podSelector": {"matchLabels": {"app": "x"}}, "policyTypes": ["Ingress", "Egress"]},
            ),
        ),
    ],
)
def test_one_fault_fails_its_check(name: str, obj: Object) -> None:
    assert _changed(name) == "pass"
    assert _changed(name, obj) == "fail"


@pytest.mark.parametrize(
    ("name", "kind", "place", "image", "status"),
    [
        ("gpu-operator", "Deployment", "gpu-operator/gpu-operator", "gpu-operator:v25.10.0", {"replicas": 1}),
        ("admission", "Deployment", "kueue-system/kueue-controller-manager", "kueue:v0.14.0", {"replicas": 1}),
        ("exporter", "DaemonSet", "gpu-operator/nvidia-dcgm-exporter", "x:1", {"desiredNumberScheduled": 2}),
    ],
)
def test_a_program_without_a_ready_pod_is_no_program(
    name: str, kind: str, place: str, image: str, status: Object
) -> None:
    obj = program(kind, place, image)
    obj["status"] = status
    queue = thing("kueue.x-k8s.io/v1beta2", "ClusterQueue", "team")
    assert _changed(name, obj, queue) == "fail"


@pytest.mark.parametrize(("state", "expected"), [("ready", "pass"), ("notReady", "manual")])
def test_a_version_of_the_toolkit_that_is_only_asked_for_is_not_there(state: str, expected: str) -> None:
    policy = thing("nvidia.com/v1", "ClusterPolicy", "p", spec={"toolkit": {"version": "v1.18.0"}})
    policy["status"] = {"state": state}
    assert checked_items(*bare(), policy)["toolkit"].state == expected


def test_a_version_that_is_no_number_is_for_a_person() -> None:
    assert _changed("gpu-operator", program("Deployment", "gpu-operator/gpu-operator", "gpu-operator:main")) == "manual"


@pytest.mark.parametrize(("use", "state"), [(20, "fail"), (74, "pass"), (99, "fail")])
def test_utilization_is_compared_with_its_target(use: int, state: str) -> None:
    found = checked_items(*ready(), metrics=METRICS.replace(" 74", f" {use}"))["utilization"]
    assert found.state == state


@pytest.mark.parametrize(
    ("since_ms", "until_ms", "state", "words"),
    [
        pytest.param(0, 1_000_000, "pass", "since 1970-01-01T00:00:00Z, in /h", id="a history that goes on passes"),
        pytest.param(0, 600_000, "fail", "no record after 1970-01-01T00:10:00Z", id="one that has ended fails"),
        pytest.param(None, None, "fail", "has no record yet", id="an empty one fails"),
    ],
)
def test_a_history_beside_the_cluster_records_costs(
    since_ms: int | None, until_ms: int | None, state: str, words: str
) -> None:
    history = RecordedHistory("/h", since_ms, until_ms, 1_000_000)
    facts = ReadinessFacts(DiagnosedCluster(bare(), (DEPLOYMENT,)), history=history)
    item = {one.id: one for one in readiness(facts).items}["idle-cost"]
    assert item.state == state
    assert words in item.evidence[0]


def test_safe_corrections_refuse_nothing() -> None:
    corrections = [obj for item in _BARE.values() for obj in item.corrections]
    kinds = sorted({obj["kind"] for obj in corrections})
    assert kinds == ["Namespace", "PrometheusRule", "WorkloadPriorityClass"]
    namespace = next(obj for obj in corrections if obj["kind"] == "Namespace")
    assert sorted(namespace["metadata"]["labels"]) == [
        "pod-security.kubernetes.io/audit",
        "pod-security.kubernetes.io/warn",
    ]


def test_a_result_of_a_smoke_test_is_the_state_of_its_check() -> None:
    report = readiness(ReadinessFacts(DiagnosedCluster([]), smoke={"vectoradd": passed("ran on gpu-1")}))
    found = {item.id: item for item in report.items}["vectoradd"]
    assert (found.state, found.evidence) == ("pass", ("ran on gpu-1",))


def test_names_of_objects_are_one_word_of_a_command() -> None:
    node = _node(**{key: value for key, value in LABELS.items() if key != "nvidia.com/mig.config"})
    node["metadata"] |= {"name": "x; rm -rf /"}
    del node["metadata"]["labels"]["nvidia.com/mig.config"]
    command = checked_items(node)["mig-layouts"].commands[0]
    assert "'x; rm -rf /'" in command


_WITH_RULES = [(check.id, reason) for _, checks in SECTIONS for check in checks for reason in check.rules]


@pytest.mark.parametrize(("name", "reason"), _WITH_RULES)
def test_a_finding_of_a_rule_fails_its_check_and_names_the_rule(name: str, reason: str) -> None:
    rule = rules()[reason]
    item = _with_example(rule.bad)[name]
    assert item.state == "fail"
    assert any(words.startswith(f"{rule.id} {reason}: ") for words in item.evidence)
    assert any(rule.id in command for command in item.commands)
    item = _with_example(rule.good)[name]
    assert not any(words.startswith(f"{rule.id} {reason}: ") for words in item.evidence)


def test_a_check_of_which_a_rule_finds_nothing_says_so() -> None:
    assert "SHL-701: no finding" in _READY["replica-metrics"].evidence


def test_a_check_whose_rules_may_not_read_their_objects_is_not_run() -> None:
    cluster = DiagnosedCluster(ready(), set(needed_kinds()) - {LIMIT_RANGE}, unread={LIMIT_RANGE: "is forbidden"})
    found = {item.id: item for item in readiness(ReadinessFacts(cluster)).items}["quotas"]
    assert (found.state, found.evidence) == ("not run", ("SHL-409, SHL-411, SHL-412: is forbidden",))


def test_rules_say_nothing_of_namespaces_without_gpus() -> None:
    objects = _example(rules()["NoNameResolution"].bad, "web")
    assert checked_items(*ready(), *objects, metrics=METRICS)["network-policies"].state == "pass"


def _with_example(text: str) -> dict[str, ReadinessItem]:
    """In a ready cluster, in place of its own objects of these kinds."""
    example = _example(text)
    kinds = {obj["kind"] for obj in example} - {"Namespace", "Pod"}
    return checked_items(*(obj for obj in ready() if obj["kind"] not in kinds), *example, metrics=METRICS)


def _example(text: str, namespace: str = "team") -> list[Object]:
    """The objects of an example, in this namespace; a part of an object is put into one."""
    found = PlainObjects()
    add_file(found, "example.yaml", text.replace("team-a", namespace).encode())
    for plain in found.objects:
        plain.obj["metadata"].setdefault("namespace", namespace)
    return [plain.obj for plain in found.objects] or [_around(msgspec.yaml.decode(text), text)]


def _around(part: Any, text: str) -> Object:
    if isinstance(part, list):
        return thing("monitoring.coreos.com/v1", "PrometheusRule", "team/part", spec={"groups": [{"rules": part}]})
    return thing("v1", "ConfigMap", "team/part", data={"config.yaml": text})
