"""Strategic merge patch: lists merged by their keys, directives, and the order that comes out."""

from typing import Any

import pytest

from build.cluster_api import STRATEGIC, Api
from build.contract_objects import config_map, container, deployment, gated_pod, made, service

Obj = dict[str, Any]


async def _patched(api: Api, patch: Obj) -> Obj:
    """The pod template's spec of deployment `d` after this patch of it."""
    body = {"spec": {"template": {"spec": patch}}}
    whole = (await api.patch(api.group("apps/v1", "deployments", "d"), body, STRATEGIC)).ok(200)
    found: Obj = whole["spec"]["template"]["spec"]
    return found


def _names(items: list[Obj]) -> list[str]:
    return [one["name"] for one in items]


async def test_containers_are_merged_by_name(api: Api) -> None:
    await made(api, "deployments", deployment("d", container("a"), container("b")))
    spec = await _patched(api, {"containers": [{"name": "b", "image": "registry.example/other:2"}]})
    assert [(one["name"], one["image"]) for one in spec["containers"]] == [
        ("b", "registry.example/other:2"),
        ("a", "registry.example/a:1"),
    ] or [(one["name"], one["image"]) for one in spec["containers"]] == [
        ("a", "registry.example/a:1"),
        ("b", "registry.example/other:2"),
    ]


async def test_a_new_item_joins_the_others(api: Api) -> None:
    await made(api, "deployments", deployment("d", container("a"), container("b")))
    spec = await _patched(api, {"containers": [container("c")]})
    assert sorted(_names(spec["containers"])) == ["a", "b", "c"]


async def test_an_item_is_deleted_by_its_key(api: Api) -> None:
    await made(api, "deployments", deployment("d", container("a"), container("b")))
    spec = await _patched(api, {"containers": [{"name": "a", "$patch": "delete"}]})
    assert _names(spec["containers"]) == ["b"]


async def test_a_list_is_replaced_by_a_directive_among_its_items(api: Api) -> None:
    await made(api, "deployments", deployment("d", container("a"), container("b")))
    spec = await _patched(api, {"containers": [{"$patch": "replace"}, container("c")]})
    assert _names(spec["containers"]) == ["c"]


async def test_lists_inside_items_are_merged_too(api: Api) -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    ports = [{"containerPort": 80, "name": "http"}]
    await made(api, "deployments", deployment("d", container("a", env=env, ports=ports)))
    change = {
        "name": "a",
        "env": [{"name": "A", "value": "9"}, {"name": "B", "$patch": "delete"}, {"name": "C", "value": "3"}],
        "ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 81}],
    }
    (one,) = (await _patched(api, {"containers": [change]}))["containers"]
    assert {item["name"]: item["value"] for item in one["env"]} == {"A": "9", "C": "3"}
    assert {item["containerPort"]: item.get("name") for item in one["ports"]} == {80: "web", 81: None}


async def test_volumes_are_merged_and_keep_only_the_keys_that_are_said(api: Api) -> None:
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]
    await made(api, "deployments", deployment("d", template={"volumes": volumes}))
    change = {"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}
    spec = await _patched(api, {"volumes": [change]})
    held = {one["name"]: sorted(one) for one in spec["volumes"]}
    assert held == {"v": ["configMap", "name"], "w": ["emptyDir", "name"]}


async def test_the_strategy_of_a_deployment_retains_its_keys(api: Api) -> None:
    await made(api, "deployments", deployment("d"))
    path = api.group("apps/v1", "deployments", "d")
    bare = {"spec": {"strategy": {"type": "Recreate"}}}
    message = (await api.patch(path, bare, STRATEGIC)).refused(422, "Invalid")
    assert "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'" in message
    kept = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert (await api.patch(path, kept, STRATEGIC)).ok()["spec"]["strategy"] == {"type": "Recreate"}


async def test_lists_without_a_merge_key_are_replaced(api: Api) -> None:
    tolerations = [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]
    await made(api, "deployments", deployment("d", template={"tolerations": tolerations}))
    spec = await _patched(api, {"tolerations": [{"key": "c", "operator": "Exists"}]})
    assert spec["tolerations"] == [{"key": "c", "operator": "Exists"}]
    assert "tolerations" not in await _patched(api, {"tolerations": None})


async def test_a_map_is_replaced_or_emptied_by_a_directive(api: Api) -> None:
    await made(api, "configmaps", config_map("c", {"a": "1", "b": "2"}))
    path = api.core("configmaps", "c")
    assert (await api.patch(path, {"data": {"$patch": "replace", "z": "9"}}, STRATEGIC)).ok()["data"] == {"z": "9"}
    assert not (await api.patch(path, {"data": {"$patch": "delete"}}, STRATEGIC)).ok().get("data")


async def test_null_removes_a_field(api: Api) -> None:
    await made(api, "deployments", deployment("d", template={"nodeSelector": {"a": "1", "b": "2"}}))
    assert (await _patched(api, {"nodeSelector": {"a": None}}))["nodeSelector"] == {"b": "2"}
    assert "nodeSelector" not in await _patched(api, {"nodeSelector": None})


async def test_lists_of_plain_values_are_united_and_taken_from(api: Api) -> None:
    await made(api, "configmaps", config_map("c", finalizers=["example.com/a", "example.com/b"]))
    path = api.core("configmaps", "c")
    united = (await api.patch(path, {"metadata": {"finalizers": ["example.com/c", "example.com/a"]}}, STRATEGIC)).ok()
    assert sorted(united["metadata"]["finalizers"]) == ["example.com/a", "example.com/b", "example.com/c"]
    taken = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b", "example.com/c"]}}
    assert not (await api.patch(path, taken, STRATEGIC)).ok()["metadata"].get("finalizers")


async def test_the_order_of_items_follows_a_directive(api: Api) -> None:
    await made(api, "deployments", deployment("d", container("a"), container("b"), container("c")))
    order = [{"name": "c"}, {"name": "d"}, {"name": "a"}, {"name": "b"}]
    spec = await _patched(api, {"$setElementOrder/containers": order, "containers": [container("d")]})
    assert _names(spec["containers"]) == ["c", "d", "a", "b"]


async def test_an_order_may_be_all_that_is_said(api: Api) -> None:
    await made(api, "deployments", deployment("d", container("a"), container("b")))
    spec = await _patched(api, {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]})
    assert _names(spec["containers"]) == ["b", "a"]


async def test_ports_of_services_are_merged_by_port(api: Api) -> None:
    await made(api, "services", service("s", {"name": "a", "port": 80}, {"name": "b", "port": 81}))
    patch = {"spec": {"ports": [{"port": 81, "name": "b", "targetPort": 9000}]}}
    ports = (await api.patch(api.core("services", "s"), patch, STRATEGIC)).ok()["spec"]["ports"]
    assert {one["port"]: one["targetPort"] for one in ports} == {80: 80, 81: 9000}


async def test_conditions_of_a_status_are_merged_by_type(api: Api) -> None:
    await made(api, "pods", gated_pod("p"))
    path = api.core("pods", "p", "status")
    for kind, word in (("example.com/A", "True"), ("example.com/B", "True"), ("example.com/A", "False")):
        (await api.patch(path, {"status": {"conditions": [{"type": kind, "status": word}]}}, STRATEGIC)).ok(200)
    conditions = (await api.get(api.core("pods", "p"))).ok()["status"]["conditions"]
    mine = {one["type"]: one["status"] for one in conditions if one["type"].startswith("example.com/")}
    assert mine == {"example.com/A": "False", "example.com/B": "True"}


async def test_owners_are_merged_by_uid(api: Api) -> None:
    owner = await made(api, "configmaps", config_map("owner"))
    await made(api, "configmaps", config_map("c"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    path = api.core("configmaps", "c")
    (await api.patch(path, {"metadata": {"ownerReferences": [reference]}}, STRATEGIC)).ok()
    change = {"uid": reference["uid"], "blockOwnerDeletion": True}
    patched = (await api.patch(path, {"metadata": {"ownerReferences": [change]}}, STRATEGIC)).ok()
    assert patched["metadata"]["ownerReferences"] == [{**reference, "blockOwnerDeletion": True}]
    removal = {"metadata": {"ownerReferences": [{"uid": reference["uid"], "$patch": "delete"}]}}
    assert "ownerReferences" not in (await api.patch(path, removal, STRATEGIC)).ok()["metadata"]


async def test_an_item_without_its_key_is_refused(api: Api) -> None:
    await made(api, "deployments", deployment("d", container("a")))
    body = {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}}
    answer = await api.patch(api.group("apps/v1", "deployments", "d"), body, STRATEGIC)
    assert "does not contain declared merge key: name" in answer.refused(500)


async def test_an_unknown_directive_is_refused(api: Api) -> None:
    await made(api, "configmaps", config_map("c", {"a": "1"}))
    answer = await api.patch(api.core("configmaps", "c"), {"data": {"$patch": "shuffle"}}, STRATEGIC)
    assert "nknown patch type" in answer.refused(500)


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ({"spec": {"replicas": "many"}}, "unrecognized type: int32"),
        ({"metadata": {"labels": {"a": 1}}}, "cannot convert int64 to string"),
        ({"spec": {"template": {"spec": {"containers": {"a": "b"}}}}}, "cannot restore slice from map"),
    ],
)
async def test_a_value_of_another_type_is_the_fault_of_the_patch(api: Api, patch: Obj, says: str) -> None:
    before = await made(api, "deployments", deployment("d"))
    path = api.group("apps/v1", "deployments", "d")
    message = (await api.patch(path, patch, STRATEGIC)).refused(422, "Invalid")
    assert message.startswith(' "" is invalid: patch: Invalid value: "map[')
    assert message.endswith(says)
    assert (await api.get(path)).ok()["spec"] == before["spec"]


@pytest.mark.parametrize("body", [b"[1]", b'"text"'])
async def test_a_patch_that_is_no_object_is_malformed(api: Api, body: bytes) -> None:
    await made(api, "configmaps", config_map("c"))
    (await api.patch(api.core("configmaps", "c"), body, STRATEGIC)).refused(400, "BadRequest")


async def test_unknown_fields_are_told_or_refused(api: Api) -> None:
    await made(api, "deployments", deployment("d"))
    path = api.group("apps/v1", "deployments", "d")
    told = await api.patch(path, {"spec": {"replicaz": 1, "minReadySeconds": 3}}, STRATEGIC)
    assert told.ok()["spec"]["minReadySeconds"] == 3
    assert "replicaz" not in told.ok()["spec"]
    assert any('unknown field \\"spec.replicaz\\"' in one for one in told.warnings), told.warnings
    strict = await api.patch(path, {"spec": {"replicaz": 1}}, STRATEGIC, fieldValidation="Strict")
    assert 'strict decoding error: unknown field "spec.replicaz"' in strict.refused(422, "Invalid")
