"""Bodies that cannot be taken: malformed, of the wrong type, too large, too deep, with fields that nobody knows."""

from __future__ import annotations

import json

import pytest

from build.api_objects import configmap, deployment, line, make_configmap
from build.cluster_api import MERGE, Api

UNREADABLE = "the object provided is unrecognized (must be of type ConfigMap): "
YAML = "application/yaml"
UNKNOWN = 'unknown field "spec.replicaz"'


@pytest.mark.parametrize("body", [b"{", b"[1,2", b'{"metadata": nul}', b"\x00\x01", b'{"a":1}}', b""])
async def test_what_is_no_json_is_refused(api: Api, body: bytes) -> None:
    answer = await api.post(api.core("configmaps"), body)
    words = f"{UNREADABLE}couldn't get version/kind; json parse error: "
    assert answer.refused(400, "BadRequest").startswith(words)


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"7", b"true"])
async def test_what_is_no_object_is_refused(api: Api, body: bytes) -> None:
    answer = await api.post(api.core("configmaps"), body)
    words = f"{UNREADABLE}couldn't get version/kind; json parse error: json: cannot unmarshal "
    assert answer.refused(400, "BadRequest").startswith(words)


async def test_what_is_no_yaml_is_refused(api: Api) -> None:
    for body in (b"a: b: c", b"a: [1", b"\tkind: ConfigMap"):
        answer = await api.post(api.core("configmaps"), body, media=YAML)
        assert answer.refused(400, "BadRequest").startswith(UNREADABLE)


async def test_yaml_is_taken(api: Api) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: |\n    one\n    two\n"
    made = (await api.post(api.core("configmaps"), body, media=YAML)).ok(201)
    assert made["data"] == {"k": "one\ntwo\n"}


async def test_a_value_of_the_wrong_type_is_refused_by_its_place(api: Api) -> None:
    answer = await api.post(api.group("apps/v1", "deployments"), deployment("web", replicas="three"))
    assert answer.refused(400, "BadRequest") == (
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct '
        "field DeploymentSpec.spec.replicas of type int32"
    )


async def test_a_number_that_is_no_text_is_refused(api: Api) -> None:
    answer = await api.post(api.core("configmaps"), {**configmap("a"), "data": {"k": 1}})
    assert answer.refused(400, "BadRequest") == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct '
        "field ConfigMap.data of type string"
    )


@pytest.mark.parametrize("media", ["text/plain", "application/xml", "application/x-www-form-urlencoded"])
async def test_a_body_in_a_form_that_nobody_reads_is_refused(api: Api, media: str) -> None:
    answer = await api.post(api.core("configmaps"), line(configmap("a")), media=media)
    assert answer.refused(415, "UnsupportedMediaType").startswith(
        "the body of the request was in an unknown format - accepted media types include: application/json, "
        "application/yaml"
    )


async def test_a_content_type_may_have_parameters(api: Api) -> None:
    media = "application/json; charset=utf-8"
    (await api.post(api.core("configmaps"), line(configmap("a")), media=media)).ok(201)


async def test_a_patch_in_a_form_that_nobody_reads_is_refused(api: Api) -> None:
    await make_configmap(api, "a")
    for media in ("application/json", "text/plain"):
        answer = await api.patch(api.core("configmaps", "a"), {}, media)
        assert answer.refused(415, "UnsupportedMediaType")


async def test_a_body_that_is_too_large_is_refused(api: Api) -> None:
    answer = await api.post(api.core("configmaps"), configmap("a", {"k": "x" * (3 * 1024 * 1024 + 1)}))
    words = "Request entity too large: limit is 3145728"
    assert answer.refused(413, "RequestEntityTooLarge") == words
    assert (await api.get(api.core("configmaps", "a"))).code == 404


async def test_a_config_map_that_is_too_large_is_invalid(api: Api) -> None:
    answer = await api.post(api.core("configmaps"), configmap("a", {"k": "x" * (1024 * 1024 + 1)}))
    words = 'ConfigMap "a" is invalid: []: Too long: may not be more than 1048576 bytes'
    assert answer.refused(422, "Invalid") == words


@pytest.mark.parametrize("media", ["application/json", YAML])
async def test_nesting_without_end_is_refused(api: Api, media: str) -> None:
    deep = (
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":'
        + b'{"a":' * 20000
        + b"1"
        + b"}" * 20001
    )
    answer = await api.post(api.core("configmaps"), deep, media=media)
    assert answer.code in (400, 413)
    assert answer.body["kind"] == "Status"


async def test_a_field_that_nobody_knows_is_refused_when_strict(api: Api) -> None:
    answer = await api.post(
        api.group("apps/v1", "deployments"), deployment("web", replicaz=1), fieldValidation="Strict"
    )
    assert answer.refused(400, "BadRequest") == (
        f'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: {UNKNOWN}'
    )
    assert (await api.get(api.group("apps/v1", "deployments", "web"))).code == 404


@pytest.mark.parametrize("query", [{}, {"fieldValidation": "Warn"}])
async def test_a_field_that_nobody_knows_is_warned_of(api: Api, query: dict[str, str]) -> None:
    answer = await api.post(api.group("apps/v1", "deployments"), deployment("web", replicaz=1), **query)
    assert "replicaz" not in answer.ok(201)["spec"]
    assert answer.warnings == ['299 - "unknown field \\"spec.replicaz\\""']


async def test_a_field_that_nobody_knows_may_be_ignored(api: Api) -> None:
    path = api.group("apps/v1", "deployments")
    answer = await api.post(path, deployment("web", replicaz=1), fieldValidation="Ignore")
    assert answer.ok(201)
    assert answer.warnings == []


async def test_replacing_and_patching_are_validated_too(api: Api) -> None:
    path = api.group("apps/v1", "deployments")
    made = (await api.post(path, deployment("web"))).ok(201)
    body = {**made, "spec": {**made["spec"], "replicaz": 1}}
    assert UNKNOWN in (await api.put(f"{path}/web", body, fieldValidation="Strict")).refused(400, "BadRequest")
    answer = await api.patch(f"{path}/web", {"spec": {"replicaz": 1}}, MERGE, fieldValidation="Strict")
    assert answer.code in (400, 422)
    assert UNKNOWN in answer.body["message"]


async def test_a_field_that_stands_twice_is_refused_when_strict(api: Api) -> None:
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","k":"2"}}'
    answer = await api.post(api.core("configmaps"), body, fieldValidation="Strict")
    assert answer.refused(400, "BadRequest") == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.k"'
    )
    warned = await api.post(api.core("configmaps"), body)
    assert warned.ok(201)["data"] == {"k": "2"}
    assert warned.warnings == ['299 - "duplicate field \\"data.k\\""']


async def test_a_key_that_stands_twice_in_yaml_is_refused_when_strict(api: Api) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: '1'\n  k: '2'\n"
    answer = await api.post(api.core("configmaps"), body, media=YAML, fieldValidation="Strict")
    message = answer.refused(400, "BadRequest")
    assert "strict decoding error: yaml: unmarshal errors:" in message
    assert 'line 7: key "k" already set in map' in message


async def test_an_unknown_strictness_is_invalid(api: Api) -> None:
    answer = await api.post(api.core("configmaps"), configmap("a"), fieldValidation="Maybe")
    assert answer.refused(422, "Invalid") == (
        'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Maybe": '
        'supported values: "", "Ignore", "Strict", "Warn"'
    )


async def test_text_of_all_scripts_is_kept(api: Api) -> None:
    data = {"k": 'Grüße, 世界 \U0001f41f \u2028 \\ " \t\n'}
    await make_configmap(api, "a", data)
    assert (await api.get(api.core("configmaps", "a"))).ok()["data"] == data


async def test_refusals_are_objects_with_their_code(api: Api) -> None:
    answer = await api.post(api.core("configmaps"), b"{")
    assert answer.headers["Content-Type"] == "application/json"
    assert set(json.loads(answer.raw)) == {"kind", "apiVersion", "metadata", "status", "message", "reason", "code"}


@pytest.mark.parametrize(("method", "rest"), [("POST", ("a",)), ("PUT", ()), ("PATCH", ())])
async def test_a_method_that_a_path_does_not_have_is_not_allowed(api: Api, method: str, rest: tuple[str, ...]) -> None:
    answer = await api.ask(
        method, api.core("configmaps", *rest), configmap("a"), media=MERGE if method == "PATCH" else "application/json"
    )
    words = "the server does not allow this method on the requested resource"
    assert answer.refused(405, "MethodNotAllowed") == words
