"""Configurations that server-side apply cannot take, and what it says of them."""

from typing import Any

import pytest

from build.cluster_api import Api
from build.contract_objects import config_map, container, deployment, made

Obj = dict[str, Any]
TYPED = "failed to create typed patch object (/c; /v1, Kind=ConfigMap): "


async def _said(api: Api, body: Any, code: int, reason: str = "", plural: str = "configmaps", name: str = "c") -> str:
    path = api.core(plural, name) if plural != "deployments" else api.group("apps/v1", plural, name)
    message = (await api.apply(path, body, "alice")).refused(code, reason)
    (await api.get(path)).refused(404)
    return message


async def test_a_field_that_the_kind_does_not_have_is_refused(api: Api) -> None:
    message = await _said(api, {**config_map("c"), "unheard": 1}, 500)
    assert message == (
        "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .unheard: field not declared in schema"
    )


async def test_the_object_is_named_as_the_configuration_names_it(api: Api) -> None:
    message = await _said(api, {**config_map("c", namespace=api.namespace), "unheard": 1}, 500)
    assert message.startswith(f"failed to create typed patch object ({api.namespace}/c; /v1, Kind=ConfigMap): ")


async def test_a_value_of_another_type_is_refused(api: Api) -> None:
    assert ".data: expected map, got " in await _said(api, {**config_map("c"), "data": "text"}, 500)


async def test_all_values_of_wrong_types_are_said(api: Api) -> None:
    message = await _said(api, {**config_map("c", labels="x"), "immutable": "true"}, 500)
    said = {"  .metadata.labels: expected map, got &{x}", "  .immutable: expected boolean, got &{true}"}
    assert set(message.removeprefix(f"{TYPED}errors:\n").splitlines()) == said


async def test_of_two_fields_that_a_map_does_not_have_one_is_said(api: Api) -> None:
    message = await _said(api, {**config_map("c"), "unheard": 1, "unknown": 2}, 500)
    assert message in {f"{TYPED}.{field}: field not declared in schema" for field in ("unheard", "unknown")}


async def test_the_metadata_must_be_a_map(api: Api) -> None:
    message = await _said(api, {**config_map("c"), "metadata": "text"}, 500)
    assert message == (
        "failed to create typed patch object (/; /v1, Kind=ConfigMap): .metadata: expected map, got &{text}"
    )


async def test_a_key_that_an_item_of_a_list_leaves_out_is_empty(api: Api) -> None:
    message = await _said(api, deployment("c", {"image": "x"}), 422, "Invalid", plural="deployments")
    assert message == 'Deployment.apps "c" is invalid: spec.template.spec.containers[0].name: Required value'
    message = await _said(api, deployment("c", {"image": "x"}, {"image": "y"}), 500, plural="deployments")
    assert message.endswith(' .spec.template.spec.containers: duplicate entries for key [name=""]')


async def test_items_of_a_keyed_list_may_not_stand_twice(api: Api) -> None:
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    message = await _said(api, deployment("c", container("m", env=env)), 500, plural="deployments")
    assert '.spec.template.spec.containers[name="m"].env: duplicate entries for key [name="A"]' in message


async def test_values_of_a_set_may_not_stand_twice(api: Api) -> None:
    message = await _said(api, config_map("c", finalizers=["example.com/a", "example.com/a"]), 500)
    assert "duplicate" in message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "Secret"}, "invalid object type: /v1, Kind=Secret"),
        ({"apiVersion": "v2"}, "invalid object type: /v2, Kind=ConfigMap"),
        ({"kind": None, "apiVersion": None}, "invalid object type: /, Kind="),
    ],
)
async def test_the_type_must_be_that_of_the_path(api: Api, change: Obj, said: str) -> None:
    body = {key: value for key, value in {**config_map("c"), **change}.items() if value is not None}
    assert await _said(api, body, 400, "BadRequest") == said


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param(
            [{"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}],
            id="one",
        ),
        pytest.param([], id="none"),
    ],
)
async def test_the_managers_cannot_be_applied(api: Api, entries: list[Obj]) -> None:
    message = await _said(api, config_map("c", managedFields=entries), 400, "BadRequest")
    assert message == "metadata.managedFields must be nil"


async def test_the_name_must_be_that_of_the_path(api: Api) -> None:
    message = await _said(api, config_map("other"), 400, "BadRequest")
    assert message == "the name of the object (other) does not match the name on the URL (c)"
    (await api.get(api.core("configmaps", "other"))).refused(404)


async def test_the_namespace_must_be_that_of_the_path(api: Api) -> None:
    message = await _said(api, config_map("c", namespace="other"), 400, "BadRequest")
    assert message == "the namespace of the provided object does not match the namespace sent on the request"


async def test_conflicts_are_said_before_another_name(api: Api) -> None:
    await made(api, "configmaps", config_map("c", {"a": "1"}))
    message = (await api.apply(api.core("configmaps", "c"), config_map("d", {"a": "2"}), "alice")).refused(409)
    assert message == 'Apply failed with 1 conflict: conflict with "shoal-test" using v1: .data.a'
    same = config_map("d", {"a": "1"})
    message = (await api.apply(api.core("configmaps", "c"), same, "alice")).refused(400, "BadRequest")
    assert message == "the name of the object (d) does not match the name on the URL (c)"


async def test_what_is_created_must_have_a_name(api: Api) -> None:
    body = config_map("c")
    del body["metadata"]["name"]
    message = await _said(api, body, 400, "BadRequest")
    assert message == "the name of the object (c based on URL) was undeterminable: name must be provided"


async def test_what_is_there_needs_no_name(api: Api) -> None:
    await made(api, "configmaps", config_map("c", {"a": "1"}))
    body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "2"}}
    assert (await api.apply(api.core("configmaps", "c"), body, "alice")).ok(200)["data"] == {"a": "1", "b": "2"}


async def test_text_that_is_no_yaml_is_refused(api: Api) -> None:
    message = await _said(api, b"data: [a\nb: }", 400, "BadRequest")
    assert message.startswith("error decoding YAML: ")


async def test_a_key_said_twice_is_told_or_refused(api: Api) -> None:
    path = api.core("configmaps", "c")
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '1'}\ndata: {b: '2'}\n"
    message = (await api.apply(path, body, "alice", fieldValidation="Strict")).refused(400, "BadRequest")
    assert message.startswith("error strict decoding YAML: ")
    told = await api.apply(path, body, "alice")
    assert told.ok(201)["data"] == {"b": "2"}
    assert told.warnings


async def test_what_comes_out_is_validated(api: Api) -> None:
    message = await _said(api, deployment("c", replicas=-1), 422, "Invalid", plural="deployments")
    assert "spec.replicas: Invalid value: -1: must be greater than or equal to 0" in message


async def test_an_unknown_resource_is_not_found(api: Api) -> None:
    answer = await api.apply(api.core("unheards", "c"), config_map("c"), "alice")
    assert answer.refused(404, "NotFound") == "the server could not find the requested resource"


async def test_a_namespace_that_is_not_there_is_not_found(api: Api) -> None:
    path = "/api/v1/namespaces/nowhere-at-all/configmaps/c"
    message = (await api.apply(path, config_map("c"), "alice")).refused(404, "NotFound")
    assert message == 'namespaces "nowhere-at-all" not found'
