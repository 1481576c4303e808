"""JSON merge patch (RFC 7386) and what all kinds of patch share: options, media types, preconditions, subresources."""

import asyncio
from typing import Any

import pytest

from build.cluster_api import APPLY, JSON_PATCH, MERGE, STRATEGIC, Api
from build.contract_objects import config_map, container, deployment, gated_pod, made


@pytest.mark.parametrize(
    ("patch", "wanted"),
    [
        pytest.param({"data": {"c": "3"}}, {"a": "1", "b": "2", "c": "3"}, id="a key that is not there is added"),
        pytest.param({"data": {"a": "9"}}, {"a": "9", "b": "2"}, id="a key that is there is replaced"),
        pytest.param({"data": {"a": None}}, {"b": "2"}, id="null removes"),
        pytest.param({"data": {"x": None}}, {"a": "1", "b": "2"}, id="null for what is not there does nothing"),
        pytest.param({"data": None}, None, id="null removes a whole map"),
        pytest.param({"data": {}}, {"a": "1", "b": "2"}, id="an empty map does nothing"),
        pytest.param({}, {"a": "1", "b": "2"}, id="nothing"),
    ],
)
async def test_maps_are_merged_and_null_removes(api: Api, patch: Any, wanted: Any) -> None:
    await made(api, "configmaps", config_map("c", {"a": "1", "b": "2"}))
    assert (await api.patch(api.core("configmaps", "c"), patch)).ok(200).get("data") == wanted
    assert (await api.get(api.core("configmaps", "c"))).ok().get("data") == wanted


async def test_lists_are_replaced(api: Api) -> None:
    await made(api, "deployments", deployment("d", container("a"), container("b")))
    patch = {"spec": {"template": {"spec": {"containers": [container("c")]}}}}
    patched = (await api.patch(api.group("apps/v1", "deployments", "d"), patch)).ok()
    assert [one["name"] for one in patched["spec"]["template"]["spec"]["containers"]] == ["c"]


async def test_nulls_inside_a_new_map_bring_nothing(api: Api) -> None:
    await made(api, "configmaps", config_map("c"))
    patched = (await api.patch(api.core("configmaps", "c"), {"data": {"a": "1", "b": None}})).ok()
    assert patched["data"] == {"a": "1"}


async def test_labels_and_annotations_are_merged_key_by_key(api: Api) -> None:
    await made(api, "configmaps", config_map("c", labels={"a": "1", "b": "2"}, annotations={"x": "1"}))
    patch = {"metadata": {"labels": {"a": None, "c": "3"}, "annotations": None}}
    metadata = (await api.patch(api.core("configmaps", "c"), patch)).ok()["metadata"]
    assert metadata["labels"] == {"b": "2", "c": "3"}
    assert "annotations" not in metadata


async def test_a_patch_that_is_no_object_is_malformed(api: Api) -> None:
    await made(api, "configmaps", config_map("c"))
    message = (await api.patch(api.core("configmaps", "c"), [1])).refused(400, "BadRequest")
    assert message == "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"


@pytest.mark.parametrize("media", [MERGE, STRATEGIC, JSON_PATCH, APPLY])
async def test_a_patch_that_cannot_be_read_is_malformed(api: Api, media: str) -> None:
    await made(api, "configmaps", config_map("c"))
    answer = await api.patch(api.core("configmaps", "c"), b'{"data": [', media, fieldManager="m")
    answer.refused(400, "BadRequest")


async def test_an_object_stays_what_and_where_it_is(api: Api) -> None:
    before = await made(api, "configmaps", config_map("c", {"a": "1"}))
    path = api.core("configmaps", "c")
    message = (await api.patch(path, {"metadata": {"namespace": "other"}})).refused(400, "BadRequest")
    assert message == "the namespace of the provided object does not match the namespace sent on the request"
    message = (await api.patch(path, {"metadata": {"name": None}})).refused(400, "BadRequest")
    assert message == "the name of the object (c based on URL) was undeterminable: name must be provided"
    assert "patch: Invalid value: " in (await api.patch(path, {"kind": "Secret"})).refused(422, "Invalid")
    assert "patch: Invalid value: " in (await api.patch(path, {"metadata": {"labels": {"a": 1}}})).refused(
        422, "Invalid"
    )
    assert (await api.get(path)).ok() == before


async def test_other_media_types_are_not_supported(api: Api) -> None:
    await made(api, "configmaps", config_map("c"))
    for media in ("application/json", "text/plain"):
        (await api.patch(api.core("configmaps", "c"), {}, media)).refused(415, "UnsupportedMediaType")


async def test_a_media_type_may_say_its_charset(api: Api) -> None:
    await made(api, "configmaps", config_map("c"))
    (await api.patch(api.core("configmaps", "c"), {"data": {"a": "1"}}, f"{MERGE}; charset=utf-8")).ok(200)


async def test_a_key_said_twice_is_told_or_refused(api: Api) -> None:
    await made(api, "configmaps", config_map("c"))
    path, body = api.core("configmaps", "c"), b'{"data": {"a": "1", "a": "2"}}'
    told = await api.patch(path, body)
    assert told.ok()["data"] == {"a": "2"}
    assert any('duplicate field \\"data.a\\"' in one for one in told.warnings), told.warnings
    message = (await api.patch(path, body, fieldValidation="Strict")).refused(422, "Invalid")
    assert 'strict decoding error: duplicate field "data.a"' in message
    assert not (await api.patch(path, body, fieldValidation="Ignore")).warnings


async def test_a_dry_run_answers_as_if_and_stores_nothing(api: Api) -> None:
    before = await made(api, "configmaps", config_map("c", {"a": "1"}))
    patched = (await api.patch(api.core("configmaps", "c"), {"data": {"a": "2"}}, dryRun="All")).ok(200)
    assert patched["data"] == {"a": "2"}
    assert (await api.get(api.core("configmaps", "c"))).ok() == before


async def test_a_stale_resource_version_is_a_conflict(api: Api) -> None:
    first = await made(api, "configmaps", config_map("c", {"a": "1"}))
    path, version = api.core("configmaps", "c"), first["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "data": {"a": "2"}}
    (await api.patch(path, patch)).ok(200)
    (await api.patch(path, patch)).refused(409, "Conflict")


async def test_another_uid_is_a_field_that_may_not_change(api: Api) -> None:
    await made(api, "configmaps", config_map("c"))
    message = (await api.patch(api.core("configmaps", "c"), {"metadata": {"uid": "other"}})).refused(422, "Invalid")
    assert message == 'ConfigMap "c" is invalid: metadata.uid: Invalid value: "other": field is immutable'


async def test_what_the_server_sets_cannot_be_patched(api: Api) -> None:
    before = await made(api, "deployments", deployment("d"))
    patch = {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 77}, "status": {"replicas": 5}}
    after = (await api.patch(api.group("apps/v1", "deployments", "d"), patch)).ok()
    assert after["metadata"]["creationTimestamp"] == before["metadata"]["creationTimestamp"]
    assert after["metadata"]["generation"] == before["metadata"]["generation"] == 1
    assert "replicas" not in after["status"]


async def test_a_patch_of_the_spec_counts_the_generation(api: Api) -> None:
    await made(api, "deployments", deployment("d"))
    path = api.group("apps/v1", "deployments", "d")
    assert (await api.patch(path, {"spec": {"minReadySeconds": 5}})).ok()["metadata"]["generation"] == 2
    assert (await api.patch(path, {"metadata": {"labels": {"a": "b"}}})).ok()["metadata"]["generation"] == 2


async def test_the_status_is_patched_through_its_own_door(api: Api) -> None:
    await made(api, "pods", gated_pod("p"))
    condition = {"type": "example.com/Ready", "status": "True"}
    patch = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"activeDeadlineSeconds": 5},
        "status": {"conditions": [condition]},
    }
    patched = (await api.patch(api.core("pods", "p", "status"), patch)).ok()
    assert [one["type"] for one in patched["status"]["conditions"]] == ["example.com/Ready"]
    assert "activeDeadlineSeconds" not in patched["spec"]


async def test_the_scale_is_patched_through_its_own_door(api: Api) -> None:
    await made(api, "deployments", deployment("d"))
    scale = (await api.patch(api.group("apps/v1", "deployments", "d", "scale"), {"spec": {"replicas": 3}})).ok(200)
    assert scale["kind"] == "Scale"
    assert scale["apiVersion"] == "autoscaling/v1"
    assert scale["spec"] == {"replicas": 3}
    changed = (await api.get(api.group("apps/v1", "deployments", "d"))).ok()
    assert changed["spec"]["replicas"] == 3
    assert changed["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"dryRun": "Some"}, "dryRun: Unsupported value: "),
        ({"force": "true"}, "force: Forbidden: may not be specified for non-apply patch"),
        ({"fieldManager": "m" * 129}, "fieldManager: Too long: may not be more than 128 bytes"),
        ({"fieldManager": "m\x07"}, "fieldManager: Invalid value: "),
        ({"fieldValidation": "Maybe"}, 'fieldValidation: Unsupported value: "Maybe": supported values: '),
    ],
)
async def test_options_that_mean_nothing_are_invalid(api: Api, query: dict[str, str], message: str) -> None:
    await made(api, "configmaps", config_map("c"))
    said = (await api.patch(api.core("configmaps", "c"), {}, **query)).refused(422, "Invalid")
    assert said.startswith('PatchOptions.meta.k8s.io "" is invalid: ')
    assert message in said


async def test_what_is_immutable_stays(api: Api) -> None:
    await made(api, "configmaps", {**config_map("c", {"a": "1"}), "immutable": True})
    message = (await api.patch(api.core("configmaps", "c"), {"data": {"a": "2"}})).refused(422, "Invalid")
    assert "data: Forbidden: field is immutable when `immutable` is set" in message
    (await api.patch(api.core("configmaps", "c"), {"metadata": {"labels": {"a": "b"}}})).ok(200)


async def test_concurrent_patches_of_different_keys_all_get_in(api: Api) -> None:
    await made(api, "configmaps", config_map("c"))
    path = api.core("configmaps", "c")
    answers = await asyncio.gather(*(api.patch(path, {"data": {f"k{number}": "v"}}) for number in range(5)))
    assert {answer.code for answer in answers} == {200}
    assert len((await api.get(path)).ok()["data"]) == 5
