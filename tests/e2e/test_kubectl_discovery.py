"""What a cluster says of itself: resources, versions, health, events, dumps; and kinds that users define."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.kubectl_runs import Kubectl, Obj


def definition(group: str) -> Obj:
    replicas = {"type": "integer", "minimum": 0, "default": 1, "description": "How many boats go out."}
    spec = {"type": "object", "properties": {"replicas": replicas, "colour": {"type": "string"}}}
    state = {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}
    schema = {"type": "object", "description": "A fleet.", "properties": {"spec": spec, "status": state}}
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version: Obj = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version["subresources"] = {"status": {}, "scale": {**paths, "labelSelectorPath": ".status.selector"}}
    version["additionalPrinterColumns"] = [{"name": "Boats", "type": "integer", "jsonPath": ".spec.replicas"}]
    names = {"plural": "fleets", "singular": "fleet", "kind": "Fleet", "shortNames": ["flt"]}
    body = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"fleets.{group}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": body,
    }


def test_resources_are_listed_with_short_names_and_verbs(kubectl: Kubectl) -> None:
    lines = [line.split() for line in kubectl("api-resources").splitlines()]
    assert lines[0] == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    assert ["pods", "po", "v1", "true", "Pod"] in lines
    assert ["horizontalpodautoscalers", "hpa", "autoscaling/v2", "true", "HorizontalPodAutoscaler"] in lines
    assert ["resourceslices", "resource.k8s.io/v1", "false", "ResourceSlice"] in lines
    named = kubectl("api-resources", "--verbs=list,watch", "--namespaced=false", "-o", "name").split()
    assert {"nodes", "namespaces", "clusterroles.rbac.authorization.k8s.io"} <= set(named)
    assert "pods" not in named


def test_versions_are_listed(kubectl: Kubectl) -> None:
    listed = kubectl("api-versions").split()
    assert {"v1", "apps/v1", "autoscaling/v1", "autoscaling/v2", "resource.k8s.io/v1"} <= set(listed)
    assert listed == sorted(listed)


def test_the_version_is_the_one_that_is_served(kubectl: Kubectl) -> None:
    told = json.loads(kubectl("version", "-o", "json"))
    assert told["serverVersion"]["gitVersion"].startswith("v1.36.")
    assert "WARNING" not in kubectl.run("version").err


def test_raw_paths_answer_health_discovery_and_metrics(kubectl: Kubectl) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        assert kubectl("get", "--raw", path) == "ok"
    assert "[+]ping ok" in kubectl("get", "--raw", "/readyz?verbose")
    assert "apiserver_request_total" in kubectl("get", "--raw", "/metrics")
    groups = json.loads(kubectl("get", "--raw", "/apis"))
    assert groups["kind"] == "APIGroupList"
    assert "/apis/apps/v1" in json.loads(kubectl("get", "--raw", "/openapi/v3"))["paths"].keys() | {"/apis/apps/v1"}
    assert kubectl.refused("get", "--raw", "/nowhere").startswith("Error from server (NotFound)")


def test_raw_objects_are_created_replaced_and_deleted(kubectl: Kubectl) -> None:
    path = f"/api/v1/namespaces/{kubectl.namespace}/configmaps"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "raw"}}
    made = json.loads(kubectl("create", "--raw", path, "-f-", given=json.dumps(body)))
    made["data"] = {"a": "1"}
    replaced = json.loads(kubectl("replace", "--raw", f"{path}/raw", "-f-", given=json.dumps(made)))
    assert replaced["data"] == {"a": "1"}
    gone = json.loads(kubectl("delete", "--raw", f"{path}/raw"))
    assert (gone["kind"], gone["status"]) == ("Status", "Success")


def test_cluster_info_says_where_the_server_is_and_dumps_everything(kubectl: Kubectl, tmp_path: Path) -> None:
    assert "Kubernetes control plane is running at" in kubectl("cluster-info").replace("\x1b[0;32m", "").replace(
        "\x1b[0m", ""
    )
    kubectl("run", "probe", "--image=x")
    kubectl("cluster-info", "dump", f"--namespaces={kubectl.namespace}", f"--output-directory={tmp_path}")
    folder = tmp_path / kubectl.namespace
    pods = json.loads((folder / "pods.json").read_text())
    assert [one["metadata"]["name"] for one in pods["items"]] == ["probe"]
    assert (tmp_path / "nodes.json").exists()


def test_the_kubeconfig_is_viewed_without_its_secrets(kubectl: Kubectl) -> None:
    view = json.loads(kubectl("config", "view", "-o", "json"))
    assert view["current-context"] == "shoal"
    assert view["users"][0]["user"]["client-key-data"] == "DATA+OMITTED"
    assert view["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")


def test_there_are_no_events_until_somebody_writes_one(kubectl: Kubectl) -> None:
    assert kubectl.run("events").err == f"No events found in {kubectl.namespace} namespace.\n"
    assert kubectl.run("get", "events").err == f"No resources found in {kubectl.namespace} namespace.\n"


@pytest.fixture
def fleets(kubectl: Kubectl) -> Any:
    """A kind of the test's own, ready to use."""
    group = f"{kubectl.namespace}.shoal.dev"
    kubectl("create", "-f-", given=definition(group))
    kubectl("wait", "--for=condition=Established", f"crd/fleets.{group}")
    yield group
    kubectl("delete", "crd", f"fleets.{group}")


def fleet(group: str, **spec: Any) -> Obj:
    return {"apiVersion": f"{group}/v1", "kind": "Fleet", "metadata": {"name": "herring"}, "spec": spec}


def test_a_defined_kind_is_applied_shown_explained_and_scaled(kubectl: Kubectl, fleets: str) -> None:
    assert kubectl("apply", "-f-", given=fleet(fleets, colour="red")) == f"fleet.{fleets}/herring created\n"
    resource = f"fleets.{fleets}"
    rows = [line.split() for line in kubectl("get", resource).splitlines()]
    assert rows == [["NAME", "BOATS"], ["herring", "1"]]
    assert "How many boats go out." in kubectl("explain", "fleets.spec.replicas", f"--api-version={fleets}/v1")
    assert "spec\t<Object>" in kubectl("explain", "fleets", f"--api-version={fleets}/v1", "--recursive")
    assert kubectl("scale", f"{resource}/herring", "--replicas=4") == f"fleet.{fleets}/herring scaled\n"
    assert kubectl.get(resource, "herring")["spec"] == {"colour": "red", "replicas": 4}
    assert "Replicas:  4" in kubectl("describe", resource, "herring")


def test_objects_of_a_defined_kind_are_checked_and_merged_by_all_appliers(kubectl: Kubectl, fleets: str) -> None:
    refusal = kubectl.refused("apply", "-f-", given=fleet(fleets, replicas=-1))
    assert "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0" in refusal
    unknown = kubectl.refused("apply", "-f-", given=fleet(fleets, sails=3))
    assert 'strict decoding error: unknown field "spec.sails"' in unknown
    kubectl("apply", "--server-side", "-f-", "--field-manager=ann", given=fleet(fleets, colour="red"))
    conflict = kubectl.refused(
        "apply", "--server-side", "-f-", "--field-manager=bob", given=fleet(fleets, colour="blue")
    )
    assert 'conflict with "ann": .spec.colour' in conflict
    name = f"fleets.{fleets}/herring"
    refusal = kubectl.refused("patch", name, "--type=strategic", "-p", '{"spec": {"colour": "blue"}}')
    assert refusal.startswith("error: application/strategic-merge-patch+json is not supported")
    kubectl("patch", name, "--type=merge", "-p", '{"spec": {"colour": "blue"}}')
    kubectl.set_status(name, {"replicas": 1})
    found = kubectl.get(name)
    assert (found["spec"]["colour"], found["status"]) == ("blue", {"replicas": 1})


def test_a_kind_is_gone_with_its_definition_and_its_objects(kubectl: Kubectl, fleets: str) -> None:
    kubectl("apply", "-f-", given=fleet(fleets))
    kubectl("delete", "crd", f"fleets.{fleets}")
    refusal = kubectl.refused("get", f"fleets.v1.{fleets}")
    assert "the server doesn't have a resource type" in refusal or "could not find the requested resource" in refusal
    kubectl("create", "-f-", given=definition(fleets))
    kubectl("wait", "--for=condition=Established", f"crd/fleets.{fleets}")
    assert kubectl.names(f"fleets.{fleets}") == []
