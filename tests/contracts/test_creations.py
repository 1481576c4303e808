"""Creating objects: names, what is filled in, and what is refused before anything is stored."""

from __future__ import annotations

import re

import pytest

from build.api_objects import configmap, deployment, make_configmap, names, secret
from build.cluster_api import Api, Obj

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


async def test_the_writer_is_recorded_as_the_owner_of_its_fields(api: Api) -> None:
    answer = await api.post(api.core("configmaps"), configmap("a", {"k": "v"}), fieldManager="tester")
    (entry,) = answer.ok(201)["metadata"]["managedFields"]
    time = entry.pop("time")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", time)
    assert entry == {
        "manager": "tester",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {".": {}, "f:k": {}}},
    }


async def test_a_writer_without_a_name_is_called_by_its_agent(api: Api) -> None:
    made = await make_configmap(api, "a", {"k": "v"})
    assert made["metadata"]["managedFields"][0]["manager"] == "shoal-test"


async def test_a_name_that_is_taken_is_refused(api: Api) -> None:
    await make_configmap(api, "a")
    answer = await api.post(api.core("configmaps"), configmap("a"))
    assert answer.refused(409, "AlreadyExists") == 'configmaps "a" already exists'
    assert answer.body["details"] == {"name": "a", "kind": "configmaps"}
    path = api.group("apps/v1", "deployments")
    (await api.post(path, deployment("web"))).ok(201)
    answer = await api.post(path, deployment("web"))
    assert answer.refused(409, "AlreadyExists") == 'deployments.apps "web" already exists'


async def test_a_generated_name_is_the_prefix_and_five_letters(api: Api) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "job-"}}
    made = [(await api.post(api.core("configmaps"), body)).ok(201)["metadata"] for _ in range(2)]
    assert made[0]["name"] != made[1]["name"]
    assert all(re.fullmatch(r"job-[bcdfghjklmnpqrstvwxz2456789]{5}", one["name"]) for one in made)
    assert made[0]["generateName"] == "job-"


async def test_a_long_prefix_is_cut_so_that_the_name_is_a_label(api: Api) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x" * 70}}
    name = (await api.post(api.core("configmaps"), body)).ok(201)["metadata"]["name"]
    assert len(name) == 63
    assert name.startswith("x" * 58)


async def test_a_name_wins_over_a_prefix(api: Api) -> None:
    made = (await api.post(api.core("configmaps"), configmap("a", generateName="b-"))).ok(201)
    assert made["metadata"]["name"] == "a"


async def test_an_object_needs_a_name(api: Api) -> None:
    answer = await api.post(api.core("configmaps"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})
    words = 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    assert answer.refused(422, "Invalid") == words
    cause = {"reason": "FieldValueRequired", "message": "Required value: name or generateName is required"}
    assert answer.body["details"] == {"kind": "ConfigMap", "causes": [{**cause, "field": "metadata.name"}]}


async def test_a_name_that_cannot_be_is_refused(api: Api) -> None:
    answer = await api.post(api.core("configmaps"), configmap("Bad_Name"))
    words = f'ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": {SUBDOMAIN}'
    assert answer.refused(422, "Invalid") == words
    assert answer.body["details"]["name"] == "Bad_Name"


async def test_several_faults_are_told_together(api: Api) -> None:
    body = configmap("a", {"no spaces": "1"}, labels={"l": "-"}, annotations={"a/b/c": "1"})
    answer = await api.post(api.core("configmaps"), body)
    assert answer.refused(422, "Invalid").startswith('ConfigMap "a" is invalid: [')
    fields = {cause["field"] for cause in answer.body["details"]["causes"]}
    assert fields == {"metadata.labels", "metadata.annotations", "data[no spaces]"}


async def test_what_only_the_server_sets_is_not_taken_from_the_writer(api: Api) -> None:
    given: Obj = {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "selfLink": "/x", "generation": 9}
    made = (await api.post(api.core("configmaps"), configmap("a", **given))).ok(201)["metadata"]
    assert made["uid"] != "mine"
    assert made["creationTimestamp"] != given["creationTimestamp"]
    assert "selfLink" not in made


async def test_an_object_with_a_version_cannot_be_created(api: Api) -> None:
    answer = await api.post(api.core("configmaps"), configmap("a", resourceVersion="1"))
    assert answer.refused(500) == "resourceVersion should not be set on objects to be created"
    for ignored in ("0", "-1", "latest"):
        made = await make_configmap(api, f"a{len(ignored)}", resourceVersion=ignored)
        assert made["metadata"]["resourceVersion"] != ignored


async def test_nothing_is_created_in_a_namespace_that_is_not_there(api: Api) -> None:
    answer = await api.post("/api/v1/namespaces/no-such-namespace-here/configmaps", configmap("a"))
    assert answer.refused(404, "NotFound") == 'namespaces "no-such-namespace-here" not found'
    assert answer.body["details"] == {"name": "no-such-namespace-here", "kind": "namespaces"}


async def test_the_namespace_of_an_object_is_that_of_the_request(api: Api) -> None:
    answer = await api.post(api.core("configmaps"), configmap("a", namespace="default"))
    words = "the namespace of the provided object does not match the namespace sent on the request"
    assert answer.refused(400, "BadRequest") == words
    assert (await api.post(api.core("configmaps"), configmap("a", namespace=api.namespace))).code == 201


@pytest.mark.parametrize("path", ["/api/v1/configmaps", "/apis/apps/v1/deployments"])
async def test_nothing_is_created_in_no_namespace(api: Api, path: str) -> None:
    words = "the server does not allow this method on the requested resource"
    assert (await api.post(path, configmap("a"))).refused(405, "MethodNotAllowed") == words


async def test_an_object_of_another_kind_is_refused(api: Api) -> None:
    answer = await api.post(api.core("configmaps"), secret("a"))
    message = answer.refused(400, "BadRequest")
    assert message.startswith('Secret in version "v1" cannot be handled as a ConfigMap: ')
    answer = await api.post(api.core("configmaps"), {**configmap("a"), "kind": "Gizmo"})
    message = answer.refused(400, "BadRequest")
    assert message.startswith(
        'Gizmo in version "v1" cannot be handled as a ConfigMap: no kind "Gizmo" is registered for version "v1"'
    )


@pytest.mark.parametrize(
    ("subresource", "kind"),
    [("binding", "Binding"), ("eviction", "Eviction"), ("ephemeralcontainers", "Pod"), ("status", "Pod")],
)
async def test_an_object_of_another_kind_is_refused_at_every_door(api: Api, subresource: str, kind: str) -> None:
    method = "POST" if subresource in ("binding", "eviction") else "PUT"
    answer = await api.ask(method, api.core("pods", "p", subresource), configmap("p"))
    message = answer.refused(400, "BadRequest")
    assert message.startswith(f'ConfigMap in version "v1" cannot be handled as a {kind}: ')


async def test_an_object_of_another_version_is_refused(api: Api) -> None:
    body = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}, "spec": {}}
    answer = await api.post(api.group("autoscaling/v1", "horizontalpodautoscalers"), body)
    assert answer.refused(400, "BadRequest") == (
        "the API version in the data (autoscaling/v2) does not match the expected API version (autoscaling/v1)"
    )


async def test_the_kind_may_be_left_out(api: Api) -> None:
    made = (await api.post(api.core("configmaps"), {"metadata": {"name": "a"}})).ok(201)
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")


async def test_owners_and_finalizers_are_kept(api: Api) -> None:
    owner = (await make_configmap(api, "owner"))["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    made = await make_configmap(api, "a", ownerReferences=[reference], finalizers=["example.com/f"])
    assert made["metadata"]["ownerReferences"] == [reference]
    assert made["metadata"]["finalizers"] == ["example.com/f"]
    (await api.patch(api.core("configmaps", "a"), {"metadata": {"finalizers": None}})).ok()


async def test_an_owner_without_its_parts_is_refused(api: Api) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": ""}
    answer = await api.post(api.core("configmaps"), configmap("a", ownerReferences=[reference]))
    message = answer.refused(422, "Invalid")
    assert 'metadata.ownerReferences.name: Invalid value: "": must not be empty' in message
    assert 'metadata.ownerReferences.uid: Invalid value: "": must not be empty' in message


async def test_a_trial_creates_nothing_and_shows_what_would_be(api: Api) -> None:
    path = api.group("apps/v1", "deployments")
    shown = (await api.post(path, deployment("web"), dryRun="All")).ok(201)
    assert shown["spec"]["strategy"]["type"] == "RollingUpdate"
    assert shown["metadata"]["uid"]
    assert shown["metadata"]["generation"] == 1
    assert "resourceVersion" not in shown["metadata"]
    assert names((await api.get(path)).ok()) == []
    (await api.post(path, deployment("web"))).ok(201)
    assert (await api.post(path, deployment("web"), dryRun="All")).code == 409


async def test_a_trial_generates_a_name(api: Api) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "job-"}}
    shown = (await api.post(api.core("configmaps"), body, dryRun="All")).ok(201)
    assert len(shown["metadata"]["name"]) == len("job-") + 5


async def test_an_unknown_kind_of_trial_is_invalid(api: Api) -> None:
    answer = await api.post(api.core("configmaps"), configmap("a"), dryRun="Some")
    message = answer.refused(422, "Invalid")
    assert message.startswith('CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ')
    assert message.endswith(': supported values: "All"')
