"""The preflight: each row is a fact about a cluster, and the finding with its fix. A good cluster has none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.install.inventory import REMOVING
from shoal.install.manifest import Address, manifest
from shoal.install.preflight.checks import adapted, findings
from shoal.install.preflight.facts import (
    ClusterFacts,
    DefinitionFacts,
    Finding,
    FoundNode,
    FoundWorkload,
    HookFacts,
    PolicyFacts,
    ReleaseFacts,
    Right,
)
from shoal.install.preflight.rights import needed_rights, observing_rights
from shoal.install.release import Release
from shoal.install.values.reading import ChartValues, ValuesText, read_values

RELEASE = Release("shoal", "gpu-operator", "0.2.0")
GPU = {"nvidia.com/gpu.present": "true"}


def _node(name: str = "a", product: str = "NVIDIA-A100-SXM4-80GB", driver: str = "", **more: Any) -> FoundNode:
    labels = {**GPU, "nvidia.com/gpu.product": product}
    if driver:
        labels["nvidia.com/cuda.driver-version.major"] = driver
    usual: dict[str, Any] = {"runtime": "containerd://2.1.4", "os": "Ubuntu 24.04", "gpus": 8}
    return FoundNode(name, labels=labels, **{**usual, **more})


GOOD = ClusterFacts(version="v1.36.2", nodes=(_node("a"), _node("b")))


def _values(text: str = "") -> ChartValues:
    given = [ValuesText("--values", text, "values.yaml")] if text else []
    return read_values([*given, ValuesText("--set", "image.repository=registry.example.com/shoal")])


def _found(text: str = "", foreign: tuple[Address, ...] = (), **facts: Any) -> list[Finding]:
    values = _values(text)
    return findings(msgspec.structs.replace(GOOD, **facts), values, RELEASE, manifest(RELEASE, values), foreign)


def test_a_good_cluster_has_no_finding() -> None:
    assert _found() == []


@pytest.mark.parametrize(
    ("version", "level", "words"),
    [
        ("v1.33.9", "error", "is older than 1.34"),
        ("v1.34.0", "", ""),
        ("v1.37.0", "warning", "was not tested"),
        ("v1.20.4-gke", "error", "upgrade Kubernetes first"),
        ("strange", "", ""),
    ],
)
def test_kubernetes_versions(version: str, level: str, words: str) -> None:
    assert [one.level for one in _found(version=version)] == ([level] if level else [])
    assert all(words in str(one) for one in _found(version=version))


def _only(found: list[Finding]) -> Finding:
    (one,) = found
    return one


def test_a_missing_right_names_verb_resource_and_the_command_that_grants_it() -> None:
    denied: tuple[Right, ...] = (
        Right("clusterroles", "rbac.authorization.k8s.io", "create"),
        Right("nodes", "", "list"),
    )
    denied += (Right("clusterroles", "rbac.authorization.k8s.io", "bind"),)
    first, second = _found(denied=denied, user="ann")
    assert str(first) == (
        "ann may not bind,create clusterroles.rbac.authorization.k8s.io; a cluster administrator grants it with: "
        "kubectl create clusterrole shoal-install-clusterroles-rbac-authorization-k8s-io --verb=bind,create "
        "--resource=clusterroles.rbac.authorization.k8s.io && kubectl create clusterrolebinding "
        "shoal-install-clusterroles-rbac-authorization-k8s-io "
        "--clusterrole=shoal-install-clusterroles-rbac-authorization-k8s-io --user=ann"
    )
    assert "may not list nodes" in second.what


def test_a_missing_right_in_a_namespace_is_granted_there_and_to_an_account() -> None:
    denied = (Right("deployments", "apps", "create", "gpu-operator"),)
    one = _only(_found(denied=denied, user="system:serviceaccount:ci:installer"))
    assert "may not create deployments.apps in the namespace gpu-operator" in one.what
    assert "kubectl create role shoal-install-deployments-apps" in one.fix
    assert "--serviceaccount=ci:installer -n gpu-operator" in one.fix


def test_rights_cover_every_object_and_observing_only_reads() -> None:
    rights = needed_rights(manifest(RELEASE, _values()))
    assert Right("deployments", "apps", "create", "gpu-operator") in rights
    assert Right("roles", "rbac.authorization.k8s.io", "escalate", "kube-system") in rights
    assert Right("clusterpolicies", "nvidia.com", "patch") in rights
    assert {right.verb for right in observing_rights()} == {"get", "list"}


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_a_namespace_that_forbids_privileged_pods_fails_with_the_command(level: str) -> None:
    labels = {"pod-security.kubernetes.io/enforce": level}
    one = _only(_found(namespace_labels=labels))
    assert one.level == "error"
    assert one.fix.endswith("kubectl label --overwrite ns gpu-operator pod-security.kubernetes.io/enforce=privileged")
    assert _found("operator: {enabled: false}", namespace_labels=labels) == []


def test_a_privileged_or_unlabelled_namespace_is_taken() -> None:
    assert _found(namespace_labels={"pod-security.kubernetes.io/enforce": "privileged"}) == []
    assert _found(namespace_labels={}) == []


def test_a_namespace_that_goes_away_is_waited_for() -> None:
    assert "kubectl get namespace gpu-operator" in _only(_found(is_namespace_terminating=True)).fix


@pytest.mark.parametrize(
    ("runtime", "text", "level"),
    [
        ("containerd://2.0.0", "", ""),
        ("cri-o://1.34.1", "", ""),
        ("docker://28.0", "", "error"),
        ("docker://28.0", "toolkit: {enabled: false}", "warning"),
    ],
)
def test_container_runtimes(runtime: str, text: str, level: str) -> None:
    found = _found(text, nodes=(_node("a"), _node("b", runtime=runtime)))
    assert [one.level for one in found] == ([level] if level else [])
    assert all("node b" in one.what for one in found)


def test_the_runtime_of_a_node_without_gpus_does_not_matter() -> None:
    assert _found(nodes=(*GOOD.nodes, FoundNode("cpu", "docker://28.0", "Ubuntu 20.04"))) == []


def test_one_driver_image_is_for_one_operating_system() -> None:
    nodes = (_node("a"), _node("b", os="Rocky 9.4"))
    one = _only(_found(nodes=nodes))
    assert (one.level, one.check) == ("error", "operating system")
    assert "Rocky 9.4 (b)" in one.what
    for text in ("driver: {enabled: false}", "driver: {nvidiaDriverCRD: {enabled: true}}"):
        assert _found(text, nodes=nodes) == []


def test_a_node_whose_host_has_the_driver_may_have_another_system() -> None:
    other = _node("b", os="Rocky 9.4")
    labels = {**other.labels, "nvidia.com/gpu.deploy.driver": "pre-installed"}
    assert _found(nodes=(_node("a"), msgspec.structs.replace(other, labels=labels))) == []


@pytest.mark.parametrize(
    ("product", "version", "least"),
    [
        ("NVIDIA-H100-80GB-HBM3", "525.60.13", 535),
        ("NVIDIA-H100-80GB-HBM3", "535.104.05", 0),
        ("NVIDIA-B200", "535.104.05", 570),
        ("NVIDIA-B200", "570.86.15", 0),
        ("NVIDIA-A100-SXM4-80GB", "450.80.02", 0),
        ("NVIDIA-GB300", "550.1", 570),
        ("Unknown-GPU", "100.1", 0),
    ],
)
def test_the_oldest_driver_of_each_generation(product: str, version: str, least: int) -> None:
    nodes = (_node("a", product), _node("b", product))
    found = _found(f"driver: {{version: '{version}'}}", nodes=nodes)
    assert [one.level for one in found] == (["error"] if least else [])
    assert all(f"set driver.version to {least} or newer" in one.fix for one in found)


def test_a_driver_of_the_host_is_read_from_the_labels_of_its_node() -> None:
    nodes = (_node("a", "NVIDIA-H100-80GB-HBM3", "525"), _node("b", "NVIDIA-H100-80GB-HBM3", "550"))
    one = _only(_found("driver: {enabled: false}", nodes=nodes))
    assert "node a: the driver 525 is too old for GPUs of the generation hopper" in one.what
    assert "535" in one.what


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("kueue-controller-manager", "Kueue admits jobs"),
        ("volcano-scheduler", "Volcano's pods stay"),
        ("kai-scheduler-default", "KAI's pods stay"),
    ],
)
def test_other_schedulers_are_named_with_what_follows(name: str, words: str) -> None:
    one = _only(_found(workloads=(FoundWorkload("Deployment", "there", name),)))
    assert one.level == "note"
    assert words in one.what


def test_beside_the_gpu_operator_its_stack_is_used() -> None:
    operator = FoundWorkload("Deployment", "gpu-operator", "gpu-operator", app="gpu-operator")
    plugin = FoundWorkload("DaemonSet", "gpu-operator", "nvidia-device-plugin-daemonset", owner="ClusterPolicy")
    facts = msgspec.structs.replace(GOOD, workloads=(operator, plugin), policies=(PolicyFacts("cluster-policy"),))
    values = adapted(_values(), facts)
    assert not values.get("operator.enabled")
    found = findings(facts, values, RELEASE, manifest(RELEASE, values))
    assert [one.level for one in found] == ["note"]
    assert "its device plugin and exporter are used" in found[0].what
    assert adapted(_values(), GOOD) == _values()


def test_a_device_plugin_of_its_own_is_an_error_and_can_be_kept() -> None:
    plugin = FoundWorkload("DaemonSet", "kube-system", "nvidia-device-plugin-daemonset")
    one = _only(_found(workloads=(plugin,)))
    assert one.level == "error"
    assert "kubectl delete daemonset -n kube-system nvidia-device-plugin-daemonset" in one.fix
    assert _found("devicePlugin: {enabled: false}", workloads=(plugin,)) == []


def test_our_own_components_are_no_rivals() -> None:
    ours = FoundWorkload("DaemonSet", "gpu-operator", "nvidia-device-plugin-daemonset", owner="ClusterPolicy")
    assert _found(workloads=(ours,)) == []


def test_a_policy_that_another_operator_left_is_named() -> None:
    one = _only(_found(policies=(PolicyFacts("gpu-cluster-policy"),)))
    assert one.fix.endswith("kubectl delete clusterpolicy gpu-cluster-policy")
    assert _found(policies=(PolicyFacts("cluster-policy", RELEASE.labels("gpu-stack")),)) == []


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (ReleaseFacts("other", "elsewhere", "deployed"), "shoal uninstall other -n elsewhere"),
        (ReleaseFacts("shoal", "gpu-operator", REMOVING), "complete it with: shoal uninstall shoal -n gpu-operator"),
        (ReleaseFacts("shoal", "gpu-operator", "deployed", "0.3.0"), "which is newer than 0.2.0"),
    ],
)
def test_earlier_releases(release: ReleaseFacts, words: str) -> None:
    assert words in str(_only(_found(releases=(release,))))


def test_an_interrupted_installation_is_completed() -> None:
    assert _found(releases=(ReleaseFacts("shoal", "gpu-operator", "installing", "0.2.0"),)) == []


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "clusterpolicies.nvidia.com"},
    "spec": {"versions": [{"name": "v1", "storage": True}]},
}


@pytest.mark.parametrize(
    ("facts", "level", "words"),
    [
        ({"served": ("v1",)}, "", ""),
        ({"served": ("v2",)}, "warning", "does not serve the version v1"),
        ({"is_terminating": True}, "error", "is terminating"),
        ({"labels": RELEASE.labels("definitions"), "stored": ("v1",)}, "", ""),
        ({"labels": RELEASE.labels("definitions"), "stored": ("v1", "v2")}, "error", "in the version v2"),
        ({"labels": Release("shoal", "x", "0.3.0").labels("d"), "stored": ("v1",)}, "error", "by Shoal 0.3.0"),
    ],
)
def test_definitions_that_exist(facts: dict[str, Any], level: str, words: str) -> None:
    there = msgspec.structs.replace(GOOD, definitions=(DefinitionFacts("clusterpolicies.nvidia.com", **facts),))
    found = findings(there, _values(), RELEASE, [DEFINITION])
    assert [one.level for one in found] == ([level] if level else [])
    assert all(words in one.what for one in found)


@pytest.mark.parametrize(
    ("resources", "has_endpoints", "count"),
    [({"pods"}, False, 1), ({"*"}, False, 1), ({"pods"}, True, 0), ({"certificates"}, False, 0)],
)
def test_a_webhook_that_does_not_answer_is_found_before_it_refuses_pods(
    resources: set[str], has_endpoints: bool, count: int
) -> None:
    hook = HookFacts(
        "policy", "deny.example.com", "ValidatingWebhookConfiguration", frozenset(resources), "a/b", has_endpoints
    )
    found = _found(hooks=(hook,))
    assert len(found) == count
    assert all("kubectl delete validatingwebhookconfiguration policy" in one.fix for one in found)


def test_objects_of_others_are_named_and_can_be_taken_over() -> None:
    foreign = tuple(Address("v1", "Service", "gpu-operator", f"s{number}") for number in range(7))
    one = _only(_found(foreign=foreign))
    assert "Service gpu-operator/s0" in one.what
    assert "and 2 others" in one.what
    assert "--take-ownership" in one.fix


def test_a_missing_priority_class_is_found() -> None:
    one, _ = _found(priority_classes=frozenset({"high"}))
    assert "the PriorityClass system-cluster-critical" in one.what
    assert _found(priority_classes=frozenset({"system-cluster-critical", "system-node-critical"})) == []


def test_an_image_without_a_registry_is_named() -> None:
    values = read_values([])
    one = _only(findings(GOOD, values, RELEASE, manifest(RELEASE, values)))
    assert (one.level, "the image shoal:0.2.0 names no registry" in one.what) == ("note", True)


def test_numbers_of_gpus() -> None:
    assert "none of 1 nodes has a GPU yet" in _only(_found(nodes=(FoundNode("cpu"),))).what
    assert "at least two" in _only(_found(nodes=(_node(gpus=1),))).what


def test_what_could_not_be_read_is_said_and_errors_come_first() -> None:
    found = _found(unread=("nodes",), version="v1.20.0", nodes=(FoundNode("cpu"),))
    assert [one.level for one in found] == ["error", "warning", "note"]
    assert "nodes" in found[1].what


def test_the_level_of_a_namespace_that_the_release_created_is_no_error() -> None:
    """An observer has the level `restricted`; the GPU stack that replaces it changes the level."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    assert [one.check for one in _found(namespace_labels=labels)] == ["namespace"]
    assert _found(namespace_labels={**labels, **RELEASE.labels("namespace")}) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{controllers: [scheduler, queues]}", "does not run jobs, pods, gatekeeper"),
        ("{observe: {enabled: true}}", "only observes"),
    ],
)
def test_values_that_leave_an_adopted_project_without_a_decision_are_an_error(text: str, words: str) -> None:
    (error,) = [one for one in _found(text, adopted=("kueue",)) if one.check == "adoption"]
    assert (error.level, words in error.what) == ("error", True)
    assert "shoal install shoal -n gpu-operator --adopt kueue --revert" in error.fix
    assert not [one for one in _found(text) if one.check == "adoption"]
    assert not [one for one in _found(adopted=("kueue",)) if one.check == "adoption"]
