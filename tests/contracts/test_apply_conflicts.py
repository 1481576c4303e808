"""Server-side apply among several: who conflicts with whom, what force takes, and what a conflict says."""

import json

from build.cluster_api import Api
from build.contract_objects import config_map, container, deployment, made, managers

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


async def test_another_value_of_an_applied_field_is_a_conflict(api: Api) -> None:
    path = api.core("configmaps", "c")
    before = (await api.apply(path, config_map("c", {"a": "1"}), "alice")).ok(201)
    answer = await api.apply(path, config_map("c", {"a": "2", "b": "1"}), "bob")
    message = answer.refused(409, "Conflict")
    assert message == 'Apply failed with 1 conflict: conflict with "alice": .data.a'
    assert answer.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "alice"', "field": ".data.a"}
    ]
    assert (await api.get(path)).ok() == before


async def test_a_field_that_was_updated_conflicts_and_says_in_which_version(api: Api) -> None:
    path = api.group("apps/v1", "deployments", "d")
    await made(api, "deployments", deployment("d"), fieldManager="kubectl-create")
    message = (await api.apply(path, deployment("d", minReadySeconds=3, replicas=2), "alice")).refused(409, "Conflict")
    assert message == 'Apply failed with 1 conflict: conflict with "kubectl-create" using apps/v1: .spec.replicas'


async def test_several_conflicts_are_listed_by_manager(api: Api) -> None:
    path = api.core("configmaps", "c")
    await made(api, "configmaps", config_map("c", {"a": "1", "b": "1"}), fieldManager="bob")
    (await api.apply(path, config_map("c", {"c": "1"}), "alice")).ok()
    answer = await api.apply(path, config_map("c", {"a": "2", "b": "2", "c": "2"}), "carol")
    message = answer.refused(409, "Conflict")
    assert message.startswith("Apply failed with 3 conflicts: conflicts with ")
    assert 'conflicts with "alice":\n- .data.c' in message
    assert 'conflicts with "bob" using v1:\n- .data.a\n- .data.b' in message
    assert {one["field"] for one in answer.body["details"]["causes"]} == {".data.a", ".data.b", ".data.c"}


async def test_force_takes_the_field_from_its_owners(api: Api) -> None:
    path = api.core("configmaps", "c")
    (await api.apply(path, config_map("c", {"a": "1", "b": "1"}), "alice")).ok(201)
    after = (await api.apply(path, config_map("c", {"a": "2"}), "bob", force=True)).ok(200)
    assert after["data"] == {"a": "2", "b": "1"}
    assert managers(after) == {
        ("alice", "Apply"): {"f:data": {"f:b": {}}},
        ("bob", "Apply"): {"f:data": {"f:a": {}}},
    }


async def test_an_update_takes_fields_without_asking(api: Api) -> None:
    path = api.core("configmaps", "c")
    (await api.apply(path, config_map("c", {"a": "1"}), "alice")).ok(201)
    after = (await api.patch(path, {"data": {"a": "2"}}, fieldManager="bob")).ok()
    assert managers(after) == {("bob", "Update"): {"f:data": {"f:a": {}}}}
    message = (await api.apply(path, config_map("c", {"a": "1"}), "alice")).refused(409, "Conflict")
    assert message == 'Apply failed with 1 conflict: conflict with "bob" using v1: .data.a'


async def test_a_conflict_goes_away_when_the_value_becomes_the_same(api: Api) -> None:
    path = api.core("configmaps", "c")
    (await api.apply(path, config_map("c", {"a": "1"}), "alice")).ok(201)
    (await api.apply(path, config_map("c", {"a": "2"}), "bob")).refused(409)
    after = (await api.apply(path, config_map("c", {"a": "1"}), "bob")).ok(200)
    assert set(managers(after)) == {("alice", "Apply"), ("bob", "Apply")}


async def test_one_owner_of_two_may_not_change_the_value(api: Api) -> None:
    path = api.core("configmaps", "c")
    for manager in ("alice", "bob"):
        (await api.apply(path, config_map("c", {"a": "1"}), manager)).ok()
    message = (await api.apply(path, config_map("c", {"a": "2"}), "bob")).refused(409, "Conflict")
    assert message == 'Apply failed with 1 conflict: conflict with "alice": .data.a'


async def test_the_same_name_is_two_managers_by_apply_and_by_update(api: Api) -> None:
    path = api.core("configmaps", "c")
    await made(api, "configmaps", config_map("c", {"a": "1"}), fieldManager="alice")
    message = (await api.apply(path, config_map("c", {"a": "2"}), "alice")).refused(409, "Conflict")
    assert 'conflict with "alice" using v1' in message
    after = managers((await api.apply(path, config_map("c", {"a": "2"}), "alice", force=True)).ok())
    assert after["alice", "Apply"] == {"f:data": {"f:a": {}}}
    assert after["alice", "Update"] == {"f:data": {}}


async def test_a_field_may_be_handed_over_by_leaving_it_out(api: Api) -> None:
    """The way to let an autoscaler have the replicas: it writes them, the manifest says them no more."""
    path = api.group("apps/v1", "deployments", "d")
    (await api.apply(path, deployment("d", replicas=0), "alice")).ok(201)
    (
        await api.patch(
            api.group("apps/v1", "deployments", "d", "scale"), {"spec": {"replicas": 2}}, fieldManager="hpa"
        )
    ).ok()
    (await api.apply(path, deployment("d", replicas=0), "alice")).refused(409, "Conflict")
    body = deployment("d")
    del body["spec"]["replicas"]
    after = (await api.apply(path, body, "alice")).ok(200)
    assert after["spec"]["replicas"] == 2
    assert ("hpa", "Update/scale") in managers(after)


async def test_kubectl_does_not_conflict_with_its_client_side_applies(api: Api) -> None:
    path = api.core("configmaps", "c")
    applied = json.dumps(config_map("c", {"a": "1"}))
    body = config_map("c", {"a": "1"}, annotations={LAST_APPLIED: applied})
    await made(api, "configmaps", body, fieldManager="kubectl-client-side-apply")
    changed = config_map("c", {"a": "2"})
    (await api.apply(path, changed, "someone")).refused(409, "Conflict")
    after = (await api.apply(path, changed, "kubectl")).ok(200)
    assert after["data"] == {"a": "2"}
    assert json.loads(after["metadata"]["annotations"][LAST_APPLIED])["data"] == {"a": "2"}


async def test_kubectl_conflicts_with_what_changed_since_its_client_side_apply(api: Api) -> None:
    path = api.core("configmaps", "c")
    applied = json.dumps(config_map("c", {"a": "1"}))
    body = config_map("c", {"a": "1"}, annotations={LAST_APPLIED: applied})
    await made(api, "configmaps", body, fieldManager="kubectl-client-side-apply")
    (await api.patch(path, {"data": {"a": "7"}}, fieldManager="bob")).ok()
    (await api.apply(path, config_map("c", {"a": "2"}), "kubectl")).refused(409, "Conflict")


async def test_a_conflict_inside_a_keyed_list_names_the_item(api: Api) -> None:
    path = api.group("apps/v1", "deployments", "d")
    (await api.apply(path, deployment("d", container("a")), "alice")).ok(201)
    other = {"name": "a", "image": "registry.example/other:2"}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": {"spec": {"containers": [other]}}},
    }
    message = (await api.apply(path, body, "bob")).refused(409, "Conflict")
    assert message == (
        'Apply failed with 1 conflict: conflict with "alice": .spec.template.spec.containers[name="a"].image'
    )


async def test_a_stale_resource_version_is_a_conflict_of_its_own(api: Api) -> None:
    path = api.core("configmaps", "c")
    first = (await api.apply(path, config_map("c", {"a": "1"}), "alice")).ok(201)
    (await api.apply(path, config_map("c", {"a": "2"}), "alice")).ok(200)
    stale = config_map("c", {"a": "3"}, resourceVersion=first["metadata"]["resourceVersion"])
    message = (await api.apply(path, stale, "alice", force=True)).refused(409, "Conflict")
    assert "the object has been modified" in message


async def test_a_uid_asks_for_just_that_object(api: Api) -> None:
    path = api.core("configmaps", "c")
    message = (await api.apply(path, config_map("c", uid="gone"), "alice")).refused(409, "Conflict")
    assert "uid mismatch: the provided object specified uid gone, and no existing object was found" in message
    (await api.get(path)).refused(404)
