"""JSON Patch (RFC 6902) as the API serves it: what applies, what is refused and with which words."""

from typing import Any

import pytest

from build.cluster_api import JSON_PATCH, Api
from build.contract_objects import config_map, container, deployment, made

DOES_NOT_APPLY = "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("operations", "wanted"),
    [
        pytest.param([{"op": "add", "path": "/data/c", "value": "3"}], {"a": "1", "b": "2", "c": "3"}, id="add"),
        pytest.param([{"op": "add", "path": "/data/a", "value": "9"}], {"a": "9", "b": "2"}, id="add replaces"),
        pytest.param([{"op": "remove", "path": "/data/a"}], {"b": "2"}, id="remove"),
        pytest.param([{"op": "replace", "path": "/data/a", "value": "7"}], {"a": "7", "b": "2"}, id="replace"),
        pytest.param([{"op": "move", "from": "/data/a", "path": "/data/z"}], {"b": "2", "z": "1"}, id="move"),
        pytest.param([{"op": "copy", "from": "/data/a", "path": "/data/b"}], {"a": "1", "b": "1"}, id="copy"),
        pytest.param([{"op": "replace", "path": "/data", "value": {"x": ""}}], {"x": ""}, id="replace a whole map"),
        pytest.param(
            [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "remove", "path": "/data/b"}],
            {"a": "1"},
            id="a test that holds lets the others through",
        ),
        pytest.param(
            [{"op": "replace", "path": "/data/c", "value": "3"}],
            {"a": "1", "b": "2", "c": "3"},
            id="replace adds what is not there",
        ),
        pytest.param(
            [{"op": "copy", "from": "/data/c", "path": "/data/a"}],
            {"a": "", "b": "2"},
            id="what is not there is copied as null",
        ),
        pytest.param(
            [{"op": "add", "path": "ignored/data/c", "value": "3"}],
            {"a": "1", "b": "2", "c": "3"},
            id="what stands before the first slash is ignored",
        ),
        pytest.param([], {"a": "1", "b": "2"}, id="nothing"),
    ],
)
async def test_each_operation_changes_just_what_it_names(
    api: Api, operations: list[Any], wanted: dict[str, str]
) -> None:
    await made(api, "configmaps", config_map("c", {"a": "1", "b": "2"}))
    patched = (await api.patch(api.core("configmaps", "c"), operations, JSON_PATCH)).ok(200)
    assert patched["data"] == wanted
    assert (await api.get(api.core("configmaps", "c"))).ok()["data"] == wanted


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "test", "path": "/data/a", "value": "2"}, id="a test that does not hold"),
        pytest.param({"op": "test", "path": "/data/x", "value": "2"}, id="a test of what is not there"),
        pytest.param({"op": "remove", "path": "/data/x"}, id="remove what is not there"),
        pytest.param({"op": "replace", "path": "/spec/x", "value": "2"}, id="replace below what is not there"),
        pytest.param({"op": "add", "path": "/spec/deep/x", "value": "2"}, id="add below what is not there"),
        pytest.param({"op": "move", "from": "/data/x", "path": "/data/y"}, id="move what is not there"),
        pytest.param({"op": "copy", "from": "/spec/x", "path": "/data/y"}, id="copy from below what is not there"),
        pytest.param({"op": "replace", "path": "", "value": "text"}, id="replace the whole by text"),
        pytest.param({"op": "add", "path": "", "value": {}}, id="add the whole"),
        pytest.param({"op": "fly", "path": "/data/a"}, id="an operation that does not exist"),
    ],
)
async def test_an_operation_that_does_not_apply_refuses_the_whole_patch(api: Api, operation: dict[str, Any]) -> None:
    before = await made(api, "configmaps", config_map("c", {"a": "1"}))
    operations = [{"op": "add", "path": "/data/first", "value": "1"}, operation]
    message = (await api.patch(api.core("configmaps", "c"), operations, JSON_PATCH)).refused(422, "Invalid")
    assert message == DOES_NOT_APPLY
    assert (await api.get(api.core("configmaps", "c"))).ok() == before


async def test_keys_with_slashes_and_tildes_are_escaped(api: Api) -> None:
    await made(api, "configmaps", config_map("c", annotations={"example.com/a": "1"}))
    operations = [
        {"op": "replace", "path": "/metadata/annotations/example.com~1a", "value": "2"},
        {"op": "add", "path": "/data", "value": {"x": "y"}},
    ]
    patched = (await api.patch(api.core("configmaps", "c"), operations, JSON_PATCH)).ok()
    assert patched["metadata"]["annotations"] == {"example.com/a": "2"}
    assert patched["data"] == {"x": "y"}


async def test_items_of_lists_are_named_by_their_place(api: Api) -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    await made(api, "deployments", deployment("d", container(env=env)))
    root = "/spec/template/spec/containers/0/env"
    operations = [
        {"op": "add", "path": f"{root}/-", "value": {"name": "Z", "value": "9"}},
        {"op": "add", "path": f"{root}/0", "value": {"name": "FIRST", "value": "0"}},
        {"op": "remove", "path": f"{root}/1"},
    ]
    patched = (await api.patch(api.group("apps/v1", "deployments", "d"), operations, JSON_PATCH)).ok()
    assert [one["name"] for one in patched["spec"]["template"]["spec"]["containers"][0]["env"]] == ["FIRST", "B", "Z"]


async def test_a_patch_that_is_no_list_is_malformed(api: Api) -> None:
    await made(api, "configmaps", config_map("c"))
    message = (await api.patch(api.core("configmaps", "c"), {"data": {}}, JSON_PATCH)).refused(400, "BadRequest")
    assert "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp" in message


async def test_a_patch_that_is_no_json_is_malformed(api: Api) -> None:
    await made(api, "configmaps", config_map("c"))
    (await api.patch(api.core("configmaps", "c"), b'[{"op": ', JSON_PATCH)).refused(400, "BadRequest")


async def test_more_than_ten_thousand_operations_are_too_many(api: Api) -> None:
    await made(api, "configmaps", config_map("c", {"a": "1"}))
    operations = [{"op": "test", "path": "/data/a", "value": "1"}] * 10_001
    message = (await api.patch(api.core("configmaps", "c"), operations, JSON_PATCH)).refused(
        413, "RequestEntityTooLarge"
    )
    assert message.endswith("The allowed maximum operations in a JSON patch is 10000, got 10001")


async def test_what_comes_out_must_be_an_object_of_the_kind(api: Api) -> None:
    before = await made(api, "configmaps", config_map("c", {"a": "1"}))
    operations = [{"op": "replace", "path": "/data", "value": "text"}]
    message = (await api.patch(api.core("configmaps", "c"), operations, JSON_PATCH)).refused(422, "Invalid")
    assert "patch: Invalid value: " in message
    assert "cannot unmarshal string" in message
    assert (await api.get(api.core("configmaps", "c"))).ok() == before


async def test_what_comes_out_is_validated(api: Api) -> None:
    await made(api, "deployments", deployment("d"))
    operations = [{"op": "replace", "path": "/spec/replicas", "value": -1}]
    message = (await api.patch(api.group("apps/v1", "deployments", "d"), operations, JSON_PATCH)).refused(
        422, "Invalid"
    )
    assert (
        'Deployment.apps "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
        in message
    )


async def test_the_name_cannot_be_patched(api: Api) -> None:
    await made(api, "configmaps", config_map("c"))
    operations = [{"op": "replace", "path": "/metadata/name", "value": "other"}]
    message = (await api.patch(api.core("configmaps", "c"), operations, JSON_PATCH)).refused(400, "BadRequest")
    assert message == "the name of the object (other) does not match the name on the URL (c)"


async def test_a_resource_version_in_the_patch_is_a_precondition(api: Api) -> None:
    first = await made(api, "configmaps", config_map("c", {"a": "1"}))
    (await api.patch(api.core("configmaps", "c"), {"data": {"a": "2"}})).ok()
    version = first["metadata"]["resourceVersion"]
    operations = [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}]
    message = (await api.patch(api.core("configmaps", "c"), operations, JSON_PATCH)).refused(409, "Conflict")
    assert message == (
        'Operation cannot be fulfilled on configmaps "c": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def test_a_patch_that_changes_nothing_writes_nothing(api: Api) -> None:
    before = await made(api, "configmaps", config_map("c", {"a": "1"}))
    operations = [{"op": "replace", "path": "/data/a", "value": "1"}]
    assert (await api.patch(api.core("configmaps", "c"), operations, JSON_PATCH)).ok() == before


async def test_there_must_be_something_to_patch(api: Api) -> None:
    message = (await api.patch(api.core("configmaps", "none"), [], JSON_PATCH)).refused(404, "NotFound")
    assert message == 'configmaps "none" not found'


async def test_unknown_members_of_operations_are_told_or_refused(api: Api) -> None:
    await made(api, "configmaps", config_map("c", {"a": "1"}))
    operations = [{"op": "add", "path": "/data/b", "value": "2", "why": "so"}]
    told = await api.patch(api.core("configmaps", "c"), operations, JSON_PATCH)
    assert told.ok()["data"]["b"] == "2"
    assert any('json patch unknown field \\"[0].why\\"' in one for one in told.warnings), told.warnings
    strict = await api.patch(api.core("configmaps", "c"), operations, JSON_PATCH, fieldValidation="Strict")
    assert 'strict decoding error: json patch unknown field "[0].why"' in strict.refused(422, "Invalid")


async def test_unknown_fields_that_a_patch_brings_are_told_or_refused(api: Api) -> None:
    await made(api, "deployments", deployment("d"))
    path = api.group("apps/v1", "deployments", "d")
    operations = [{"op": "add", "path": "/spec/replicaz", "value": 2}]
    told = await api.patch(path, operations, JSON_PATCH)
    assert "replicaz" not in told.ok()["spec"]
    assert any('unknown field \\"spec.replicaz\\"' in one for one in told.warnings), told.warnings
    message = (await api.patch(path, operations, JSON_PATCH, fieldValidation="Strict")).refused(422, "Invalid")
    assert 'strict decoding error: unknown field "spec.replicaz"' in message
