"""Who owns what after creates, updates and patches: metadata.managedFields without server-side apply."""

import asyncio
from datetime import datetime, timedelta

from build.cluster_api import STRATEGIC, Api
from build.contract_objects import config_map, deployment, gated_pod, made, managers


async def test_a_create_owns_all_it_sets(api: Api) -> None:
    created = await made(api, "configmaps", config_map("c", {"a": "1"}, labels={"x": "y"}), fieldManager="alice")
    (entry,) = created["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("alice", "Update", "v1")
    assert entry["fieldsV1"] == {
        "f:data": {".": {}, "f:a": {}},
        "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
    }
    # A kube-apiserver reads the clock twice, and both times are whole seconds.
    owned, was_created = (
        datetime.fromisoformat(at) for at in (entry["time"], created["metadata"]["creationTimestamp"])
    )
    assert abs(was_created - owned) <= timedelta(seconds=1)


async def test_without_a_name_the_program_is_the_manager(api: Api) -> None:
    created = (
        await api.ask(
            "POST",
            api.core("configmaps"),
            config_map("c", {"a": "1"}),
            headers={"User-Agent": "mytool/v1.2 (linux/amd64) abc"},
        )
    ).ok(201)
    assert set(managers(created)) == {("mytool", "Update")}


async def test_defaults_of_a_create_are_owned_by_its_creator(api: Api) -> None:
    created = await made(api, "deployments", deployment("d"), fieldManager="alice")
    owned = managers(created)["alice", "Update"]["f:spec"]
    assert {"f:replicas", "f:revisionHistoryLimit", "f:strategy", "f:progressDeadlineSeconds"} <= set(owned)
    assert owned["f:template"]["f:spec"]["f:containers"]['k:{"name":"main"}']["f:imagePullPolicy"] == {}


async def test_an_update_owns_what_it_changes_and_the_rest_stays(api: Api) -> None:
    created = await made(api, "configmaps", config_map("c", {"a": "1", "b": "1"}), fieldManager="alice")
    created["data"] = {"a": "1", "b": "2", "c": "3"}
    after = (await api.put(api.core("configmaps", "c"), created, fieldManager="bob")).ok(200)
    assert managers(after) == {
        ("alice", "Update"): {"f:data": {".": {}, "f:a": {}}},
        ("bob", "Update"): {"f:data": {"f:b": {}, "f:c": {}}},
    }


async def test_what_is_removed_is_owned_by_nobody(api: Api) -> None:
    await made(api, "configmaps", config_map("c", {"a": "1", "b": "1"}), fieldManager="alice")
    after = (await api.patch(api.core("configmaps", "c"), {"data": {"a": None}}, fieldManager="bob")).ok(200)
    assert managers(after) == {("alice", "Update"): {"f:data": {".": {}, "f:b": {}}}}


async def test_a_manager_that_owns_nothing_is_forgotten(api: Api) -> None:
    await made(api, "configmaps", config_map("c", {"a": "1"}), fieldManager="alice")
    path = api.core("configmaps", "c")
    after = (await api.patch(path, {"metadata": {"labels": {"a": "1"}}}, fieldManager="bob")).ok(200)
    assert set(managers(after)) == {("alice", "Update"), ("bob", "Update")}
    after = (await api.patch(path, {"metadata": {"labels": None}}, fieldManager="carol")).ok(200)
    assert set(managers(after)) == {("alice", "Update")}


async def test_a_write_that_changes_nothing_changes_no_owner(api: Api) -> None:
    created = await made(api, "configmaps", config_map("c", {"a": "1"}), fieldManager="alice")
    path = api.core("configmaps", "c")
    assert (await api.patch(path, {"data": {"a": "1"}}, fieldManager="bob")).ok() == created
    assert (await api.put(path, created, fieldManager="bob")).ok() == created


async def test_every_kind_of_patch_owns_alike(api: Api) -> None:
    await made(api, "configmaps", config_map("c", {"a": "1"}), fieldManager="alice")
    path = api.core("configmaps", "c")
    (await api.patch(path, {"data": {"m": "1"}}, fieldManager="merge")).ok()
    (await api.patch(path, {"data": {"s": "1"}}, STRATEGIC, fieldManager="strategic")).ok()
    operations = [{"op": "add", "path": "/data/j", "value": "1"}]
    after = (await api.patch(path, operations, "application/json-patch+json", fieldManager="json")).ok()
    owned = managers(after)
    for manager, key in (("merge", "m"), ("strategic", "s"), ("json", "j")):
        assert owned[manager, "Update"] == {"f:data": {f"f:{key}": {}}}


async def test_writes_through_the_status_are_marked(api: Api) -> None:
    await made(api, "pods", gated_pod("p"), fieldManager="alice")
    patch = {"status": {"conditions": [{"type": "example.com/A", "status": "True"}]}}
    after = (await api.patch(api.core("pods", "p", "status"), patch, STRATEGIC, fieldManager="kubelet-like")).ok()
    owned = managers(after)["kubelet-like", "Update/status"]["f:status"]["f:conditions"]
    # Times that are not said are null, and so they are owned.
    times: dict[str, object] = {"f:lastProbeTime": {}, "f:lastTransitionTime": {}}
    assert owned['k:{"type":"example.com/A"}'] == {".": {}, "f:status": {}, "f:type": {}, **times}
    (found,) = (one for one in after["status"]["conditions"] if one["type"] == "example.com/A")
    assert found == {"type": "example.com/A", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}


async def test_what_only_the_server_sets_is_owned_by_nobody(api: Api) -> None:
    created = await made(api, "configmaps", config_map("c", {"a": "1"}, annotations={"x": "y"}), fieldManager="alice")
    assert managers(created)["alice", "Update"]["f:metadata"] == {"f:annotations": {".": {}, "f:x": {}}}


async def test_the_owners_can_be_forgotten_on_purpose(api: Api) -> None:
    await made(api, "configmaps", config_map("c", {"a": "1"}), fieldManager="alice")
    path = api.core("configmaps", "c")
    after = (await api.patch(path, {"metadata": {"managedFields": [{}]}})).ok()
    assert "managedFields" not in after["metadata"]
    after = (await api.patch(path, {"data": {"b": "2"}}, fieldManager="bob")).ok()
    assert "managedFields" not in after["metadata"]
    after = (await api.apply(path, config_map("c", {"c": "3"}), "carol")).ok(200)
    assert managers(after) == {
        ("carol", "Apply"): {"f:data": {"f:c": {}}},
        ("before-first-apply", "Update"): {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
    }


async def test_an_update_that_leaves_the_owners_out_keeps_them(api: Api) -> None:
    created = await made(api, "configmaps", config_map("c", {"a": "1"}), fieldManager="alice")
    del created["metadata"]["managedFields"]
    created["data"]["b"] = "2"
    after = (await api.put(api.core("configmaps", "c"), created, fieldManager="bob")).ok()
    assert set(managers(after)) == {("alice", "Update"), ("bob", "Update")}


async def test_owners_can_be_edited(api: Api) -> None:
    created = await made(api, "configmaps", config_map("c", {"a": "1"}), fieldManager="alice")
    created["metadata"]["managedFields"][0]["manager"] = "renamed"
    after = (await api.put(api.core("configmaps", "c"), created, fieldManager="bob")).ok()
    assert set(managers(after)) == {("renamed", "Update")}


async def test_the_status_door_does_not_edit_owners(api: Api) -> None:
    await made(api, "pods", gated_pod("p"), fieldManager="alice")
    patch = {"metadata": {"managedFields": [{}]}, "status": {"message": "hello"}}
    after = (await api.patch(api.core("pods", "p", "status"), patch, fieldManager="bob")).ok()
    assert ("alice", "Update") in managers(after)


async def test_many_managers_are_put_together(api: Api) -> None:
    await made(api, "configmaps", config_map("c", {"first": "1"}), fieldManager="first")
    path = api.core("configmaps", "c")
    await asyncio.gather(
        *(api.patch(path, {"data": {f"k{number}": "v"}}, fieldManager=f"m{number}") for number in range(4))
    )
    for number in range(4, 14):
        (await api.patch(path, {"data": {f"k{number}": "v"}}, fieldManager=f"m{number}")).ok()
    after = (await api.get(path)).ok()
    updates = managers(after)
    assert len(updates) == 10
    assert ("ancient-changes", "Update") in updates
    owned = set().union(*(fields["f:data"].keys() for fields in updates.values()))
    assert owned >= {f"f:k{number}" for number in range(14)}


async def test_applies_stand_before_updates(api: Api) -> None:
    path = api.core("configmaps", "c")
    await made(api, "configmaps", config_map("c", {"a": "1"}), fieldManager="alice")
    after = (await api.apply(path, config_map("c", {"z": "1"}), "zoe")).ok(200)
    assert [one["operation"] for one in after["metadata"]["managedFields"]] == ["Apply", "Update"]
