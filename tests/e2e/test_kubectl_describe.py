"""`kubectl describe` and `kubectl explain`: the first reads many kinds at once, the second the published schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from build.kubectl_runs import Kubectl, Obj


def fields(told: str) -> dict[str, str]:
    """The unindented `Name:   value` lines."""
    pairs = (line.partition(":") for line in told.splitlines() if line and not line.startswith(" "))
    return {name: value.strip() for name, _, value in pairs}


def test_a_pod_is_described_with_its_containers_and_node(
    kubectl: Kubectl, bound_pod: Callable[..., str], gpu_node: str
) -> None:
    told = kubectl("describe", "pod", bound_pod(app="x"))
    found = fields(told)
    assert (found["Name"], found["Status"], found["IP"]) == ("trainer", "Running", "10.1.0.7")
    assert found["Node"].startswith(f"{gpu_node}/")
    assert found["QoS Class"] == "BestEffort"
    assert "nvidia.com/gpu:  1" in told
    assert "/var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-" in told
    assert found["Events"] == "<none>"


def test_a_node_is_described_with_what_its_pods_take(
    kubectl: Kubectl, bound_pod: Callable[..., str], gpu_node: str
) -> None:
    bound_pod("one")
    bound_pod("two")
    told = kubectl("describe", "node", gpu_node)
    assert "(2 in total)" in told
    lines = [line.split() for line in told.splitlines()]
    assert ["nvidia.com/gpu", "2", "2"] in lines
    assert ["nvidia.com/gpu:", "8"] in lines


def test_a_deployment_is_described(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3")
    found = fields(kubectl("describe", "deployment", "web"))
    assert found["Replicas"] == "3 desired | 0 updated | 0 total | 0 available | 0 unavailable"
    assert found["RollingUpdateStrategy"] == "25% max unavailable, 25% max surge"


def test_jobs_cron_jobs_and_autoscalers_are_described(kubectl: Kubectl) -> None:
    kubectl("create", "job", "once", "--image=busybox", "--", "date")
    kubectl("create", "cronjob", "often", "--image=busybox", "--schedule=@daily", "--", "date")
    kubectl("create", "deployment", "web", "--image=nginx")
    kubectl("autoscale", "deployment", "web", "--max=4", "--cpu=50%")
    job = fields(kubectl("describe", "job", "once"))
    assert (job["Completion Mode"], job["Backoff Limit"]) == ("NonIndexed", "6")
    assert fields(kubectl("describe", "cronjob", "often"))["Schedule"] == "@daily"
    told = kubectl("describe", "hpa", "web")
    assert "resource cpu on pods  (as a percentage of request):  <unknown> / 50%" in told


def test_a_quota_is_described_with_what_is_used(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "small", "--hard=pods=3,requests.nvidia.com/gpu=4")
    container = {"name": "probe", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 3}}}
    overrides = json.dumps({"spec": {"containers": [container]}})
    kubectl("run", "probe", "--image=x", f"--overrides={overrides}")
    lines = [line.split() for line in kubectl("describe", "quota", "small").splitlines()]
    assert ["pods", "1", "3"] in lines
    assert ["requests.nvidia.com/gpu", "3", "4"] in lines


def test_the_other_kinds_of_a_namespace_are_described(kubectl: Kubectl) -> None:
    kubectl("create", "service", "clusterip", "inner", "--tcp=80:8080")
    kubectl("create", "ingress", "door", "--rule=example.com/*=inner:80")
    kubectl("create", "pdb", "keep", "--selector=app=web", "--min-available=1")
    kubectl("create", "secret", "generic", "words", "--from-literal=a=bcd")
    kubectl("create", "configmap", "settings", "--from-literal=a=bcd")
    kubectl("create", "role", "reader", "--verb=get", "--resource=pods")
    kubectl("create", "serviceaccount", "bot")
    service = fields(kubectl("describe", "service", "inner"))
    assert (service["Type"], service["TargetPort"]) == ("ClusterIP", "8080/TCP")
    assert "inner:80" in kubectl("describe", "ingress", "door")
    assert fields(kubectl("describe", "pdb", "keep"))["Min available"] == "1"
    assert "a:  3 bytes" in kubectl("describe", "secret", "words")
    assert fields(kubectl("describe", "secret", "words"))["Type"] == "Opaque"
    assert "bcd" in kubectl("describe", "configmap", "settings")
    assert "[get]" in kubectl("describe", "role", "reader")
    assert fields(kubectl("describe", "serviceaccount", "bot"))["Name"] == "bot"


def test_a_namespace_is_described_with_its_quotas(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "small", "--hard=pods=3")
    told = kubectl("describe", "namespace", kubectl.namespace)
    assert fields(told)["Status"] == "Active"
    assert fields(told)["Labels"] == f"kubernetes.io/metadata.name={kubectl.namespace}"
    assert ["pods", "0", "3"] in [line.split() for line in told.splitlines()]


def test_events_are_described_with_what_they_are_about(kubectl: Kubectl) -> None:
    kubectl("run", "probe", "--image=x")
    uid = kubectl.get("pod", "probe")["metadata"]["uid"]
    about = {"kind": "Pod", "namespace": kubectl.namespace, "name": "probe", "uid": uid, "apiVersion": "v1"}
    kubectl("create", "-f-", given=event(about, kubectl.namespace))
    assert "no room for it" in kubectl("describe", "pod", "probe")
    assert "no room for it" in kubectl("events", "--for", "pod/probe")
    (row,) = kubectl("get", "events", "--no-headers").splitlines()
    assert row.split()[1:4] == ["Warning", "FailedScheduling", "pod/probe"]
    assert kubectl.names("events", f"--field-selector=involvedObject.uid={uid},type=Warning") == ["event/probe.1"]


def event(about: Obj, namespace: str) -> Obj:
    now = "2026-01-01T00:00:00Z"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "probe.1", "namespace": namespace},
        "involvedObject": about,
        "reason": "FailedScheduling",
        "message": "no room for it",
        "type": "Warning",
        "source": {"component": "shoal"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def test_fields_are_explained_with_type_and_words(kubectl: Kubectl) -> None:
    told = kubectl("explain", "pod.spec.containers.resources.limits")
    assert "FIELD: limits <map[string]Quantity>" in told
    assert "maximum amount of compute resources" in told
    assert "VERSION:    v1" in told


def test_everything_below_a_field_is_explained(kubectl: Kubectl) -> None:
    told = kubectl("explain", "deployment", "--recursive")
    assert told.startswith("GROUP:      apps\nKIND:       Deployment\n")
    assert "  spec\t<DeploymentSpec>" in told
    assert re.search(r"^ +tolerationSeconds\t<integer>$", told, re.MULTILINE)
    refusal = kubectl.refused("explain", "deployment.spec.replicaz")
    assert refusal == 'error: field "replicaz" does not exist'


def test_an_older_version_is_explained_when_it_is_named(kubectl: Kubectl) -> None:
    told = kubectl("explain", "hpa.spec", "--api-version=autoscaling/v1")
    assert "targetCPUUtilizationPercentage" in told
    assert "metrics" in kubectl("explain", "hpa.spec")
