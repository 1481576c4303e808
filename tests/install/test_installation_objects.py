"""The objects of an installation: all of them labelled, in stages, least rights, pods without privilege."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.yaml_texts import yaml_value, yaml_values
from shoal.api.decode import convert
from shoal.api.run_configuration import RunConfiguration
from shoal.api.yaml_text import read_yaml
from shoal.data.permissions import BY_DEFAULT
from shoal.install.manifest import STAGES, address_of, manifest, stage_of
from shoal.install.objects.agent_access import agent_access, agent_policies
from shoal.install.objects.requests import operator_resources, scheduler_resources
from shoal.install.release import INSTANCE, MANAGED_BY, Release, checked_name, generated_name
from shoal.install.values.reading import ChartValues, ValuesText, read_values
from shoal.units.errors import UserError, Where

Obj = dict[str, Any]
RELEASE = Release("prod", "gpu-operator", "1.2.3+abc")
AGENT = Path(__file__).parents[2] / "deploy" / "agent.yaml"


def _values(text: str = "") -> ChartValues:
    return read_values([ValuesText("--values", text, "values.yaml")])


def _objects(text: str = "", nodes: int = 100) -> list[Obj]:
    return manifest(RELEASE, _values(text), nodes=nodes)


def _one(kind: str, name: str, text: str = "") -> Obj:
    (found,) = [obj for obj in _objects(text) if (obj["kind"], obj["metadata"]["name"]) == (kind, name)]
    return found


def test_each_object_is_there_once_and_labelled_as_part_of_the_release() -> None:
    objects = _objects()
    addresses = [address_of(obj) for obj in objects]
    assert len(set(addresses)) == len(addresses) > 35
    for obj in objects:
        labels = obj["metadata"]["labels"]
        assert (labels[INSTANCE], labels[MANAGED_BY]) == ("prod", "shoal")
        assert labels["app.kubernetes.io/version"] == "1.2.3_abc"
        assert RELEASE.owns(labels)
        assert not Release("other", "gpu-operator").owns(labels)


def test_objects_come_in_the_order_of_the_stages() -> None:
    stages = [STAGES.index(stage_of(obj["kind"])) for obj in _objects()]
    assert stages == sorted(stages)
    assert stages[0] == 0


def test_everything_with_a_namespace_is_in_the_one_of_the_release_but_for_leader_election() -> None:
    elsewhere = {
        (obj["kind"], obj["metadata"]["name"], obj["metadata"]["namespace"])
        for obj in _objects()
        if obj["metadata"].get("namespace", "gpu-operator") != "gpu-operator"
    }
    assert {namespace for _, _, namespace in elsewhere} == {"kube-system"}
    assert {name for _, name, _ in elsewhere} == {"shoal-election", "shoal-operator-election"}


def test_pods_satisfy_the_level_restricted() -> None:
    deployments = [obj for obj in _objects() if obj["kind"] == "Deployment"]
    assert [one["metadata"]["name"] for one in deployments] == ["shoal", "shoal-operator"]
    for one in deployments:
        pod = one["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"]["memory"]
        assert one["spec"]["selector"]["matchLabels"].items() <= one["spec"]["template"]["metadata"]["labels"].items()


def test_no_role_has_a_wildcard_and_each_account_has_its_own_roles() -> None:
    roles = [obj for obj in _objects() if obj["kind"] in ("ClusterRole", "Role")]
    assert not any("*" in rule[part] for role in roles for rule in role["rules"] for part in rule)
    bound = {
        (obj["roleRef"]["name"], obj["subjects"][0]["name"])
        for obj in _objects()
        if obj["kind"] in ("ClusterRoleBinding", "RoleBinding")
    }
    assert ("shoal-scheduler", "shoal") in bound
    assert ("shoal-operator", "shoal-operator") in bound
    assert {account for _, account in bound} == {"shoal", "shoal-operator"}


def test_only_the_chosen_parts_get_roles() -> None:
    names = {obj["metadata"]["name"] for obj in _objects("controllers: [scheduler]") if obj["kind"] == "ClusterRole"}
    assert names == {"shoal", "shoal-scheduler", "shoal-operator"}
    config = yaml_value(_one("ConfigMap", "shoal-config", "controllers: [scheduler]")["data"]["config.yaml"])
    assert config["controllers"] == ["scheduler"]


def test_placeholder_pods_are_made_in_the_namespace_of_the_release() -> None:
    text = "controllers: [scheduler, placeholder-pods]"
    assert _one("Role", "shoal-placeholder-pods", text)["metadata"]["namespace"] == RELEASE.namespace
    deployment = _one("Deployment", "shoal", text)
    (namespace,) = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    assert namespace["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.namespace"
    assert namespace["name"] == "SHOAL_NAMESPACE"


def test_two_replicas_spread_over_nodes_with_a_disruption_budget() -> None:
    spec = _one("Deployment", "shoal")["spec"]
    assert spec["replicas"] == 2
    keys = [one["topologyKey"] for one in spec["template"]["spec"]["topologySpreadConstraints"]]
    assert keys == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    assert spec["template"]["spec"]["priorityClassName"] == "system-cluster-critical"
    assert _one("PodDisruptionBudget", "shoal")["spec"]["minAvailable"] == 1
    assert not [obj for obj in _objects("replicas: 1") if obj["kind"] == "PodDisruptionBudget"]


def test_beside_another_operator_there_is_no_gpu_stack() -> None:
    objects = _objects("operator: {enabled: false}")
    kinds = {obj["kind"] for obj in objects}
    assert "ClusterPolicy" not in kinds
    names = {obj["metadata"]["name"] for obj in objects if obj["kind"] != "Namespace"}
    assert not [name for name in names if "agent" in name or "operator" in name]


def test_the_namespace_allows_privileged_pods_only_for_the_gpu_stack() -> None:
    key = "pod-security.kubernetes.io/enforce"
    assert _one("Namespace", "gpu-operator")["metadata"]["labels"][key] == "privileged"
    without = _one("Namespace", "gpu-operator", "operator: {enabled: false}")
    assert without["metadata"]["labels"][key] == "restricted"


def test_a_changed_configuration_changes_the_pods() -> None:
    def digest(text: str) -> str:
        annotations = _one("Deployment", "shoal", text)["spec"]["template"]["metadata"]["annotations"]
        return str(annotations["shoal.dev/config-digest"])

    assert digest("") == digest("")
    assert digest("config: {policy: Shoal}") != digest("")


def test_the_configuration_of_kueues_chart_is_a_second_document() -> None:
    kueue = "apiVersion: config.kueue.x-k8s.io/v1beta1\\nkind: Configuration\\nmanageJobsWithoutQueueName: true\\n"
    text = f'managerConfig: {{controllerManagerConfigYaml: "{kueue}"}}'
    documents = list(yaml_values(_one("ConfigMap", "shoal-config", text)["data"]["config.yaml"]))
    assert [one["kind"] for one in documents] == ["ShoalConfiguration", "Configuration"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("config: {polcy: x}", "polcy"),
        ("config: {schedulerNames: []}", "at least one scheduler"),
        ("managerConfig: {controllerManagerConfigYaml: 'kind: Deployment'}", "is not one Configuration of Kueue"),
    ],
)
def test_a_wrong_configuration_is_found_before_anything_is_applied(text: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        _objects(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("", "shoal:1.2.3_abc"),
        ("image: {repository: registry.example.com/shoal, tag: '2'}", "registry.example.com/shoal:2"),
        ("image: {digest: 'sha256:00'}", "shoal@sha256:00"),
    ],
)
def test_the_image(text: str, image: str) -> None:
    for name in ("shoal", "shoal-operator"):
        assert _one("Deployment", name, text)["spec"]["template"]["spec"]["containers"][0]["image"] == image
    (operator,) = _one("Deployment", "shoal-operator", text)["spec"]["template"]["spec"]["containers"]
    assert {"name": "SHOAL_IMAGE", "value": image} in operator["env"]


def test_credentials_of_a_registry_are_names_or_objects() -> None:
    pod = _one("Deployment", "shoal", "imagePullSecrets: [a, {name: b}]")["spec"]["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]


def test_requests_grow_with_the_cluster_and_stay_above_measured_use() -> None:
    def memory(resources: Obj) -> int:
        return int(resources["requests"]["memory"].removesuffix("Mi"))

    assert memory(scheduler_resources(1_000)) >= 148
    assert memory(scheduler_resources(5_000)) >= 410
    assert memory(scheduler_resources(10)) < memory(scheduler_resources(5_000))
    assert memory(operator_resources(500)) <= 120


def test_components_that_are_the_agent_may_write_to_their_own_node_only() -> None:
    spec = _one("ValidatingAdmissionPolicy", "shoal-agent-own-node")["spec"]
    (condition,) = spec["matchConditions"]
    assert "'system:serviceaccount:gpu-operator:nvidia-gpu-feature-discovery'" in condition["expression"]
    assert "shoal-operator" not in condition["expression"]


def test_the_agents_manifest_grants_the_same() -> None:
    """`deploy/agent.yaml` is for people who apply the agent alone."""
    written = [one for one in yaml_values(AGENT.read_text()) if one["kind"] not in ("DaemonSet", "Namespace")]
    made = [*agent_access("shoal-system"), *agent_policies("shoal-system")]
    assert [address_of(one) for one in made] == [address_of(one) for one in written]
    for ours, theirs in zip(made, written, strict=True):
        assert _plain(ours) == _plain(theirs)


def _plain(obj: Obj) -> Any:
    if obj["kind"] == "ClusterRole":
        granted = set()
        for rule in obj["rules"]:
            granted |= {
                (group, resource, verb)
                for group in rule["apiGroups"]
                for resource in rule["resources"]
                for verb in rule["verbs"]
            }
        return granted
    if obj["kind"] == "ValidatingAdmissionPolicy":
        checks = [{**one, "expression": " ".join(one["expression"].split())} for one in obj["spec"]["validations"]]
        rules = [{**one, "scope": "*"} for one in obj["spec"]["matchConstraints"]["resourceRules"]]
        return {**obj, "spec": {**obj["spec"], "validations": checks, "matchConstraints": rules}}
    return obj


@pytest.mark.parametrize("name", ["Shoal", "-a", "a-", "", "a.b", "a" * 54])
def test_a_name_that_objects_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="is not a valid name"):
        checked_name(name, Where(path="RELEASE"))


def test_a_generated_name_is_a_valid_one() -> None:
    assert generated_name(1_732_695_806.9) == "shoal-1732695806"
    assert checked_name(generated_name(1.0), Where()) == "shoal-1"


def _started(text: str) -> list[str]:
    config = read_yaml(_one("ConfigMap", "shoal-config", text)["data"]["config.yaml"], "config.yaml")
    return list(next(iter(config))[1].get("controllers", []))


def test_pod_autoscaling_has_an_account_of_its_own() -> None:
    """Its right to read Secrets is nobody else's."""
    text = "podAutoscaling: {enabled: true}"
    rules = {obj["metadata"]["name"]: obj["rules"] for obj in _objects(text) if obj["kind"] == "ClusterRole"}
    readers = {
        name
        for name, found in rules.items()
        if any("secrets" in one["resources"] and "get" in one["verbs"] for one in found)
    }
    assert readers == {"shoal-pod-autoscaling"}
    pod = _one("Deployment", "shoal-pod-autoscaling", text)["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "shoal-pod-autoscaling"
    config = read_yaml(_one("ConfigMap", "shoal-pod-autoscaling-config", text)["data"]["config.yaml"], "config.yaml")
    rules_of_run = convert(next(iter(config))[1], RunConfiguration, Where())
    rules_of_run.check(Where())
    service = _one("Service", rules_of_run.pod_autoscaling.service_name, text)
    assert service["spec"]["ports"][0]["port"] == rules_of_run.pod_autoscaling.service_port
    assert _one("Role", "shoal-pod-autoscaling-election", text)["rules"][1]["resourceNames"] == [
        "shoal-pod-autoscaling"
    ]
    assert not [obj for obj in _objects("") if "pod-autoscaling" in obj["metadata"]["name"]]
    with pytest.raises(UserError, match="is a Deployment of its own"):
        _objects("controllers: [scheduler, pod-autoscaling]")


def test_drivers_are_upgraded_where_the_operator_is_the_one_of_shoal() -> None:
    """The operator of NVIDIA upgrades its drivers itself."""
    assert _started("") == [*BY_DEFAULT, "driver-upgrades"]
    assert _one("ClusterRoleBinding", "shoal-driver-upgrades")["subjects"][0]["name"] == "shoal"
    assert _started("operator: {enabled: false}") == []
    names = {obj["metadata"]["name"] for obj in _objects("operator: {enabled: false}")}
    assert "shoal-scheduler" in names
    assert "shoal-driver-upgrades" not in names
    assert _started("controllers: [scheduler]") == ["scheduler"]
