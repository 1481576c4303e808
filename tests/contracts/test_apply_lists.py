"""Server-side apply on lists and maps: keyed, sets, and those that are owned as a whole."""

from typing import Any

from build.cluster_api import Api
from build.contract_objects import config_map, container, deployment, gated_pod, made, managers, service

Obj = dict[str, Any]


def part(name: str, **spec: Any) -> Obj:
    """A configuration of deployment `d` that says only this of the pod template's spec."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"template": {"spec": spec}},
    }


async def _spec(api: Api, config: Obj, manager: str, **query: Any) -> Obj:
    path = api.group("apps/v1", "deployments", "d")
    found: Obj = (await api.apply(path, config, manager, **query)).ok()["spec"]["template"]["spec"]
    return found


async def test_items_of_keyed_lists_have_owners_of_their_own(api: Api) -> None:
    await _spec(api, deployment("d", container("a")), "alice")
    spec = await _spec(api, part("d", containers=[container("b")]), "bob")
    assert {one["name"] for one in spec["containers"]} == {"a", "b"}
    whole = (await api.get(api.group("apps/v1", "deployments", "d"))).ok()
    owned = managers(whole)["bob", "Apply"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert owned == {'k:{"name":"b"}': {".": {}, "f:image": {}, "f:name": {}}}
    spec = await _spec(api, part("d", containers=[]), "bob")
    assert [one["name"] for one in spec["containers"]] == ["a"]


async def test_fields_of_one_item_may_have_several_owners(api: Api) -> None:
    await _spec(api, deployment("d", container("a", env=[{"name": "A", "value": "1"}])), "alice")
    env = [{"name": "B", "value": "2"}]
    spec = await _spec(api, part("d", containers=[{"name": "a", "env": env, "imagePullPolicy": "Never"}]), "bob")
    (one,) = spec["containers"]
    assert {item["name"] for item in one["env"]} == {"A", "B"}
    assert (one["image"], one["imagePullPolicy"]) == ("registry.example/a:1", "Never")
    spec = await _spec(api, deployment("d", container("a")), "alice")
    assert spec["containers"][0]["env"] == env


async def test_an_item_stays_while_another_owns_something_in_it(api: Api) -> None:
    containers = [container("a"), container("b")]
    await _spec(api, deployment("d", *containers), "alice")
    await _spec(api, part("d", containers=[container("b")]), "bob")
    spec = await _spec(api, deployment("d", container("a")), "alice")
    assert [one["name"] for one in spec["containers"]] == ["a", "b"]


async def test_keys_of_several_fields_tell_items_apart_and_take_defaults(api: Api) -> None:
    ports = [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]
    created = (await api.apply(api.core("pods", "p"), gated_pod("p", container("a", ports=ports)), "alice")).ok(201)
    held = managers(created)["alice", "Apply"]["f:spec"]["f:containers"]['k:{"name":"a"}']["f:ports"]
    assert set(held) == {'k:{"containerPort":53,"protocol":"TCP"}', 'k:{"containerPort":53,"protocol":"UDP"}'}
    assert created["spec"]["containers"][0]["ports"] == [
        {"containerPort": 53, "protocol": "TCP"},
        {"containerPort": 53, "protocol": "UDP"},
    ]


async def test_ports_of_services_are_keyed_by_port_and_protocol(api: Api) -> None:
    path = api.core("services", "s")
    (await api.apply(path, service("s", {"name": "a", "port": 80}), "alice")).ok(201)
    more = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    spec = {"ports": [{"name": "b", "port": 81, "protocol": "TCP"}]}
    found = (await api.apply(path, {**more, "spec": spec}, "bob")).ok(200)
    assert {one["port"] for one in found["spec"]["ports"]} == {80, 81}


async def test_an_atomic_list_is_owned_as_a_whole(api: Api) -> None:
    mine = [{"key": "a", "operator": "Exists"}]
    await _spec(api, deployment("d", template={"tolerations": mine}), "alice")
    answer = await api.apply(
        api.group("apps/v1", "deployments", "d"),
        part("d", tolerations=[*mine, {"key": "b", "operator": "Exists"}]),
        "bob",
    )
    message = answer.refused(409, "Conflict")
    assert message == 'Apply failed with 1 conflict: conflict with "alice": .spec.template.spec.tolerations'
    spec = await _spec(api, part("d", tolerations=mine), "bob")
    assert spec["tolerations"] == mine
    spec = await _spec(api, deployment("d"), "alice")
    assert spec["tolerations"] == mine


async def test_an_atomic_map_is_owned_as_a_whole(api: Api) -> None:
    await _spec(api, deployment("d", template={"nodeSelector": {"a": "1"}}), "alice")
    answer = await api.apply(api.group("apps/v1", "deployments", "d"), part("d", nodeSelector={"b": "1"}), "bob")
    assert ".spec.template.spec.nodeSelector" in answer.refused(409, "Conflict")
    spec = await _spec(api, part("d", nodeSelector={"b": "1"}), "bob", force=True)
    assert spec["nodeSelector"] == {"b": "1"}


async def test_a_set_has_an_owner_for_each_value(api: Api) -> None:
    path = api.core("configmaps", "c")
    (await api.apply(path, config_map("c", finalizers=["example.com/a", "example.com/s"]), "alice")).ok(201)
    after = (await api.apply(path, config_map("c", finalizers=["example.com/b", "example.com/s"]), "bob")).ok(200)
    assert sorted(after["metadata"]["finalizers"]) == ["example.com/a", "example.com/b", "example.com/s"]
    assert managers(after)["bob", "Apply"] == {
        "f:metadata": {"f:finalizers": {'v:"example.com/b"': {}, 'v:"example.com/s"': {}}}
    }
    after = (await api.apply(path, config_map("c"), "alice")).ok(200)
    assert sorted(after["metadata"]["finalizers"]) == ["example.com/b", "example.com/s"]
    assert "finalizers" not in (await api.apply(path, config_map("c"), "bob")).ok()["metadata"]


async def test_keys_of_a_granular_map_have_owners_of_their_own(api: Api) -> None:
    path = api.core("configmaps", "c")
    (await api.apply(path, config_map("c", labels={"a": "1"}), "alice")).ok(201)
    after = (await api.apply(path, config_map("c", labels={"b": "1"}), "bob")).ok(200)
    assert after["metadata"]["labels"] == {"a": "1", "b": "1"}
    message = (await api.apply(path, config_map("c", labels={"a": "2"}), "bob")).refused(409, "Conflict")
    assert message == 'Apply failed with 1 conflict: conflict with "alice": .metadata.labels.a'


async def test_owner_references_are_keyed_by_uid(api: Api) -> None:
    owners = [await made(api, "configmaps", config_map(name)) for name in ("o1", "o2")]
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": one["metadata"]["name"], "uid": one["metadata"]["uid"]}
        for one in owners
    ]
    path = api.core("configmaps", "c")
    (await api.apply(path, config_map("c", ownerReferences=[references[0]]), "alice")).ok(201)
    after = (await api.apply(path, config_map("c", ownerReferences=[references[1]]), "bob")).ok(200)
    assert {one["name"] for one in after["metadata"]["ownerReferences"]} == {"o1", "o2"}
    after = (await api.apply(path, config_map("c"), "alice")).ok(200)
    assert after["metadata"]["ownerReferences"] == [references[1]]
