"""Reading one object: what is there, what is not, in which form, and at which version."""

from __future__ import annotations

import pytest
import yaml

from build.api_objects import configmap, deployment, make_configmap
from build.cluster_api import Api


async def test_an_object_is_read_back_as_it_was_created(api: Api) -> None:
    made = await make_configmap(api, "a", {"k": "v"}, labels={"l": "1"}, annotations={"n": "2"})
    found = (await api.get(api.core("configmaps", "a"))).ok(200)
    assert found == made
    assert found["data"] == {"k": "v"}
    assert found["kind"] == "ConfigMap"
    assert found["apiVersion"] == "v1"


async def test_what_the_server_sets_is_set_and_no_self_link_is(api: Api) -> None:
    metadata = (await make_configmap(api, "a"))["metadata"]
    assert metadata["namespace"] == api.namespace
    assert len(metadata["uid"]) == 36
    assert metadata["resourceVersion"].isdecimal()
    assert metadata["resourceVersion"] != "0"
    assert metadata["creationTimestamp"].endswith("Z")
    assert len(metadata["creationTimestamp"]) == 20
    assert "selfLink" not in metadata
    assert "generation" not in metadata


async def test_a_missing_object_is_not_found_by_resource_and_name(api: Api) -> None:
    answer = await api.get(api.core("configmaps", "none"))
    assert answer.refused(404, "NotFound") == 'configmaps "none" not found'
    assert answer.body["details"] == {"name": "none", "kind": "configmaps"}
    assert answer.body["metadata"] == {}
    assert answer.body["apiVersion"] == "v1"


async def test_a_missing_object_of_a_group_is_named_with_its_group(api: Api) -> None:
    answer = await api.get(api.group("apps/v1", "deployments", "none"))
    assert answer.refused(404, "NotFound") == 'deployments.apps "none" not found'
    assert answer.body["details"] == {"name": "none", "group": "apps", "kind": "deployments"}


async def test_a_read_in_a_namespace_that_is_not_there_misses_the_object_and_not_the_namespace(api: Api) -> None:
    path = "/api/v1/namespaces/no-such-namespace-here/configmaps"
    assert (await api.get(f"{path}/a")).refused(404, "NotFound") == 'configmaps "a" not found'
    assert (await api.get(path)).ok()["items"] == []


async def test_a_resource_that_is_not_served_has_no_path(api: Api) -> None:
    answer = await api.get(api.core("gizmos", "a"))
    assert answer.refused(404, "NotFound") == "the server could not find the requested resource"


async def test_a_group_that_is_not_served_is_not_found(api: Api) -> None:
    assert (await api.get("/apis/no.such.group.example.com/v1/gizmos")).code == 404


@pytest.mark.parametrize("version", ["0", "own"])
async def test_a_read_may_name_a_version_that_has_been(api: Api, version: str) -> None:
    made = await make_configmap(api, "a")
    asked = made["metadata"]["resourceVersion"] if version == "own" else version
    answer = await api.get(api.core("configmaps", "a"), resourceVersion=asked)
    # A read of "any" version may come from a cache that has not seen the object yet.
    assert answer.code == 200 or (version == "0" and answer.code == 404)


async def test_a_read_of_a_version_that_has_not_been_times_out(api: Api) -> None:
    await make_configmap(api, "a")
    answer = await api.get(api.core("configmaps", "a"), resourceVersion=10**15)
    message = answer.refused(504, "Timeout")
    assert message.startswith(f"Timeout: Too large resource version: {10**15}, current: ")
    causes = answer.body["details"]["causes"]
    assert causes == [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    assert answer.body["details"]["retryAfterSeconds"] == 1


async def test_a_version_that_is_no_number_is_an_invalid_value(api: Api) -> None:
    for path in (api.core("configmaps", "a"), api.core("configmaps")):
        answer = await api.get(path, resourceVersion="never")
        assert 400 <= answer.code <= 500
        assert "Invalid value" in answer.body["message"]
        assert "never" in answer.body["message"]


async def test_yaml_is_given_to_who_accepts_it(api: Api) -> None:
    await make_configmap(api, "a", {"k": "yes"})
    answer = await api.get(api.core("configmaps", "a"), headers={"Accept": "application/yaml"})
    assert answer.code == 200
    assert answer.headers["Content-Type"].startswith("application/yaml")
    found = yaml.safe_load(answer.raw)
    assert found["kind"] == "ConfigMap"
    assert found["data"] == {"k": "yes"}


async def test_a_refusal_is_given_as_yaml_to_who_accepts_it(api: Api) -> None:
    answer = await api.get(api.core("configmaps", "none"), headers={"Accept": "application/yaml"})
    assert answer.code == 404
    assert yaml.safe_load(answer.raw)["message"] == 'configmaps "none" not found'


async def test_a_list_is_given_as_yaml_too(api: Api) -> None:
    await make_configmap(api, "a")
    answer = await api.get(api.core("configmaps"), headers={"Accept": "application/yaml"})
    assert yaml.safe_load(answer.raw)["kind"] == "ConfigMapList"


async def test_the_first_acceptable_form_is_taken(api: Api) -> None:
    await make_configmap(api, "a")
    for accept in ("text/html, application/json;q=0.5", "*/*", "application/json;charset=utf-8"):
        answer = await api.get(api.core("configmaps", "a"), headers={"Accept": accept})
        assert answer.ok(200)["kind"] == "ConfigMap"
        assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("accept", ["text/html", "application/*", "application/xml"])
async def test_a_form_that_the_server_cannot_make_is_not_acceptable(api: Api, accept: str) -> None:
    await make_configmap(api, "a")
    lead = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml"
    for path in (api.core("configmaps", "a"), api.core("configmaps"), api.core("configmaps", "none")):
        message = (await api.get(path, headers={"Accept": accept})).refused(406, "NotAcceptable")
        assert message.startswith(lead)
        assert ("application/json;stream=watch" in message) is (path == api.core("configmaps"))


async def test_a_shape_that_the_server_cannot_make_is_not_acceptable(api: Api) -> None:
    await make_configmap(api, "a")
    accept = "application/json;as=Picture;v=v1;g=meta.k8s.io"
    message = (await api.get(api.core("configmaps", "a"), headers={"Accept": accept})).refused(406, "NotAcceptable")
    assert message.startswith("only the following media types are accepted: application/json, application/yaml")


async def test_pretty_output_is_indented(api: Api) -> None:
    await make_configmap(api, "a")
    answer = await api.get(api.core("configmaps", "a"), pretty="true")
    assert answer.raw.startswith(b'{\n  "kind": "ConfigMap",\n  "apiVersion": "v1",\n  "metadata": {\n    "name": "a",')


async def test_the_same_object_is_seen_in_every_version_of_its_group(api: Api) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
    ]
    spec = {"scaleTargetRef": target, "maxReplicas": 3, "metrics": metrics}
    hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}
    made = (await api.post(api.group("autoscaling/v2", "horizontalpodautoscalers"), hpa)).ok(201)
    old = (await api.get(api.group("autoscaling/v1", "horizontalpodautoscalers", "h"))).ok()
    assert old["apiVersion"] == "autoscaling/v1"
    assert old["spec"]["targetCPUUtilizationPercentage"] == 70
    assert old["spec"]["minReplicas"] == 1
    assert old["metadata"]["uid"] == made["metadata"]["uid"]


async def test_the_status_of_an_object_is_read_through_its_door(api: Api) -> None:
    made = (await api.post(api.group("apps/v1", "deployments"), deployment("web"))).ok(201)
    found = (await api.get(api.group("apps/v1", "deployments", "web", "status"))).ok()
    assert found["kind"] == "Deployment"
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    assert found["spec"] == made["spec"]


async def test_a_door_that_a_kind_does_not_have_is_no_path(api: Api) -> None:
    await make_configmap(api, "a")
    assert (await api.get(api.core("configmaps", "a", "status"))).code == 404


async def test_every_json_body_ends_with_a_newline(api: Api) -> None:
    await make_configmap(api, "a")
    lists, table = api.core("configmaps"), "application/json;as=Table;v=v1;g=meta.k8s.io"
    paths = (lists, api.core("configmaps", "a"), api.core("configmaps", "missing"), "/api", "/apis", "/apis/apps/v1")
    for path in (*paths, "/api/v1/nonesuch"):
        assert (await api.get(path)).raw.endswith(b"}\n"), path
    for accept in (table, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"):
        assert (await api.get(lists, headers={"Accept": accept})).raw.endswith(b"}\n"), accept
    assert (await api.post(lists, configmap("a"))).raw.endswith(b"}\n")
    assert (await api.delete(api.core("configmaps", "a"))).raw.endswith(b"}\n")


async def test_an_indented_body_ends_without_a_newline(api: Api) -> None:
    assert (await api.get(api.core("configmaps"), pretty="true")).raw.endswith(b"\n}")
