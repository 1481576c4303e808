"""Custom objects under write: versions, generations, the status apart, deletion, and every way to patch them."""

from build.cluster_api import JSON_PATCH, STRATEGIC, Api
from build.contract_kinds import defined, fields, items, text, until_gone, version, whole
from build.contract_objects import managers

SPEC = fields({"a": text(), "n": whole(), "deep": fields({"x": text(), "y": text()})})
WITH_STATUS = version(
    root=fields({"spec": SPEC, "status": fields({"ready": whole(), "phase": text()})}), subresources={"status": {}}
)
KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}


async def test_an_update_must_say_which_version_it_changes(api: Api) -> None:
    async with defined(api, version(spec=SPEC)) as kind:
        first = await kind.made("w", {"a": "1"})
        bare = kind.obj("w", {"a": "2"})
        message = (await api.put(kind.path("w"), bare)).refused(422, "Invalid")
        assert "metadata.resourceVersion: Invalid value: 0" in message
        assert "must be specified for an update" in message
        second = (await api.put(kind.path("w"), {**first, "spec": {"a": "2"}})).ok(200)
        assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
        message = (await api.put(kind.path("w"), {**first, "spec": {"a": "3"}})).refused(409, "Conflict")
        assert message == (
            f'Operation cannot be fulfilled on widgets.{kind.group} "w": the object has been modified; '
            "please apply your changes to the latest version and try again"
        )


async def test_the_generation_counts_changes_outside_of_metadata_and_status(api: Api) -> None:
    async with defined(api, WITH_STATUS) as kind:
        assert (await kind.made("w", {"a": "1"}))["metadata"]["generation"] == 1
        path = kind.path("w")
        after = (await api.patch(path, {"metadata": {"labels": {"a": "b"}}})).ok()
        assert after["metadata"]["generation"] == 1
        after = (await api.patch(f"{path}/status", {"status": {"ready": 1}})).ok()
        assert after["metadata"]["generation"] == 1
        after = (await api.patch(path, {"spec": {"a": "2"}})).ok()
        assert after["metadata"]["generation"] == 2
        after = (await api.patch(path, {"spec": {"a": "2"}})).ok()
        assert after["metadata"]["generation"] == 2


async def test_without_the_subresource_the_status_counts_as_any_other_field(api: Api) -> None:
    async with defined(api) as kind:
        await kind.made("w", {"a": "1"}, status={"x": 1})
        after = (await api.patch(kind.path("w"), {"status": {"x": 2}})).ok()
        assert after["status"] == {"x": 2}
        assert after["metadata"]["generation"] == 2
        (await api.patch(kind.path("w", "status"), {"status": {"x": 3}})).refused(404, "NotFound")


async def test_spec_and_status_have_doors_of_their_own(api: Api) -> None:
    async with defined(api, WITH_STATUS) as kind:
        created = await kind.made("w", {"a": "1"}, status={"ready": 7})
        assert "status" not in created
        path = kind.path("w")
        changed = {"metadata": {"labels": {"l": "1"}}, "spec": {"a": "9"}, "status": {"ready": 2}}
        after = (await api.patch(f"{path}/status", changed)).ok()
        assert after["status"] == {"ready": 2}
        assert after["spec"] == {"a": "1"}
        assert "labels" not in after["metadata"]
        after = (await api.patch(path, {"spec": {"n": 1}, "status": {"ready": 99}})).ok()
        assert after["status"] == {"ready": 2}
        assert after["spec"] == {"a": "1", "n": 1}
        got = (await api.get(f"{path}/status")).ok()
        assert got == after
        put = (await api.put(f"{path}/status", {**got, "spec": {}, "status": {"phase": "Done"}})).ok(200)
        assert put["status"] == {"phase": "Done"}
        assert put["spec"] == {"a": "1", "n": 1}


async def test_every_patch_but_the_strategic_one_is_taken(api: Api) -> None:
    async with defined(api, version(spec=SPEC)) as kind:
        await kind.made("w", {"a": "1", "deep": {"x": "1"}})
        path = kind.path("w")
        after = (await api.patch(path, {"spec": {"deep": {"y": "2"}, "a": None}})).ok()
        assert after["spec"] == {"deep": {"x": "1", "y": "2"}}
        operations = [{"op": "add", "path": "/spec/n", "value": 3}, {"op": "remove", "path": "/spec/deep"}]
        assert (await api.patch(path, operations, JSON_PATCH)).ok()["spec"] == {"n": 3}
        message = (await api.patch(path, {"spec": {}}, STRATEGIC)).refused(415, "UnsupportedMediaType")
        assert message.startswith(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        )


async def test_a_patch_is_held_to_the_schema(api: Api) -> None:
    async with defined(api, version(spec=SPEC)) as kind:
        before = await kind.made("w", {"a": "1"})
        told = await api.patch(kind.path("w"), {"spec": {"unknown": 1}})
        assert told.ok() == before
        assert any('unknown field \\"spec.unknown\\"' in one for one in told.warnings)
        message = (await api.patch(kind.path("w"), {"spec": {"n": "text"}})).refused(422, "Invalid")
        assert 'spec.n in body must be of type integer: "string"' in message
        strict = await api.patch(kind.path("w"), {"spec": {"unknown": 1}}, fieldValidation="Strict")
        assert 'strict decoding error: unknown field "spec.unknown"' in strict.refused(422, "Invalid")


async def test_applied_fields_are_owned_one_by_one(api: Api) -> None:
    async with defined(api, version(spec=SPEC)) as kind:
        path = kind.path("w")
        (await api.apply(path, kind.obj("w", {"a": "1", "deep": {"x": "1"}}), "alice")).ok(201)
        after = (await api.apply(path, kind.obj("w", {"n": 1, "deep": {"y": "2"}}), "bob")).ok(200)
        assert after["spec"] == {"a": "1", "n": 1, "deep": {"x": "1", "y": "2"}}
        assert managers(after)["bob", "Apply"] == {"f:spec": {"f:deep": {"f:y": {}}, "f:n": {}}}
        message = (await api.apply(path, kind.obj("w", {"a": "2"}), "bob")).refused(409, "Conflict")
        assert message == 'Apply failed with 1 conflict: conflict with "alice": .spec.a'
        after = (await api.apply(path, kind.obj("w", {"a": "1"}), "alice")).ok(200)
        assert after["spec"] == {"a": "1", "n": 1, "deep": {"y": "2"}}


async def test_lists_of_the_schema_are_merged_as_it_says(api: Api) -> None:
    entry = fields({"name": text(), "v": whole()}, required=["name"])
    spec = fields(
        {
            "keyed": items(entry, **KEYED),
            "set": items(text(), **{"x-kubernetes-list-type": "set"}),
            "plain": items(text()),
            "whole": fields({"x": text(), "y": text()}, **{"x-kubernetes-map-type": "atomic"}),
        }
    )
    async with defined(api, version(spec=spec)) as kind:
        path = kind.path("w")
        mine = {"keyed": [{"name": "a", "v": 1}], "set": ["a"], "plain": ["a"], "whole": {"x": "1"}}
        (await api.apply(path, kind.obj("w", mine), "alice")).ok(201)
        after = (await api.apply(path, kind.obj("w", {"keyed": [{"name": "b", "v": 2}], "set": ["b"]}), "bob")).ok()
        assert sorted(one["name"] for one in after["spec"]["keyed"]) == ["a", "b"]
        assert sorted(after["spec"]["set"]) == ["a", "b"]
        owned = managers(after)["alice", "Apply"]["f:spec"]
        assert owned == {
            "f:keyed": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:v": {}}},
            "f:plain": {},
            "f:set": {'v:"a"': {}},
            "f:whole": {},
        }
        answer = await api.apply(path, kind.obj("w", {"plain": ["b"], "whole": {"y": "1"}}), "bob")
        assert {one["field"] for one in answer.body["details"]["causes"]} == {".spec.plain", ".spec.whole"}
        answer.refused(409, "Conflict")
        message = (await api.apply(path, kind.obj("w", {"keyed": [{"name": "a", "v": 3}]}), "bob")).refused(409)
        assert message == 'Apply failed with 1 conflict: conflict with "alice": .spec.keyed[name="a"].v'
        after = (await api.apply(path, kind.obj("w", {"keyed": [], "set": []}), "alice")).ok()
        assert [one["name"] for one in after["spec"]["keyed"]] == ["b"]
        assert after["spec"]["set"] == ["b"]
        assert "plain" not in after["spec"]


async def test_what_is_applied_is_pruned_and_its_unknown_fields_are_told(api: Api) -> None:
    async with defined(api, version(spec=SPEC)) as kind:
        answer = await api.apply(kind.path("w"), kind.obj("w", {"a": "1", "unknown": 1}), "alice")
        assert ".spec.unknown: field not declared in schema" in answer.refused(500)


async def test_the_status_is_applied_through_its_own_door(api: Api) -> None:
    async with defined(api, WITH_STATUS) as kind:
        await kind.made("w", {"a": "1"})
        body = kind.obj("w", status={"ready": 3})
        after = (await api.apply(kind.path("w", "status"), body, "controller")).ok(200)
        assert after["status"] == {"ready": 3}
        assert managers(after)["controller", "Apply/status"] == {"f:status": {"f:ready": {}}}


async def test_owners_of_another_version_are_kept(api: Api) -> None:
    async with defined(api, version("v1", SPEC), version("v2", SPEC)) as kind:
        (await api.apply(kind.path("w"), kind.obj("w", {"a": "1", "n": 1}), "alice")).ok(201)
        second = kind.obj("w", {"a": "1"}, version="v2")
        after = (await api.apply(kind.path("w", version="v2"), second, "alice")).ok(200)
        assert after["spec"] == {"a": "1"}
        (entry,) = after["metadata"]["managedFields"]
        assert entry["apiVersion"] == f"{kind.group}/v2"
        message = (await api.apply(kind.path("w"), kind.obj("w", {"a": "2"}), "bob")).refused(409, "Conflict")
        assert message == 'Apply failed with 1 conflict: conflict with "alice": .spec.a'


async def test_finalizers_hold_an_object_until_they_are_gone(api: Api) -> None:
    async with defined(api, WITH_STATUS) as kind:
        held = kind.obj("w", {"a": "1"})
        held["metadata"]["finalizers"] = ["example.com/hold"]
        (await api.post(kind.path(), held)).ok(201)
        deleted = (await api.delete(kind.path("w"))).ok(200)
        assert deleted["metadata"]["deletionTimestamp"]
        assert deleted["metadata"]["deletionGracePeriodSeconds"] == 0
        assert deleted["metadata"]["generation"] == 2
        patch = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
        message = (await api.patch(kind.path("w"), patch)).refused(422, "Invalid")
        assert (
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted" in message
        )
        (await api.patch(kind.path("w"), {"metadata": {"finalizers": []}})).ok(200)
        await until_gone(api, kind.path("w"))


async def test_a_deletion_answers_with_what_was_deleted(api: Api) -> None:
    async with defined(api) as kind:
        created = await kind.made("w", {})
        answer = (await api.delete(kind.path("w"))).ok(200)
        assert answer["kind"] == "Status"
        assert answer["status"] == "Success"
        assert answer["details"] == {
            "name": "w",
            "group": kind.group,
            "kind": "widgets",
            "uid": created["metadata"]["uid"],
        }
        message = (await api.delete(kind.path("w"))).refused(404, "NotFound")
        assert message == f'widgets.{kind.group} "w" not found'


async def test_many_are_deleted_by_a_selector(api: Api) -> None:
    async with defined(api) as kind:
        for name, color in (("a", "red"), ("b", "red"), ("c", "blue")):
            obj = kind.obj(name, {})
            obj["metadata"]["labels"] = {"color": color}
            (await api.post(kind.path(), obj)).ok(201)
        (await api.delete(kind.path(), labelSelector="color=red")).ok(200)
        left = (await api.get(kind.path())).ok()["items"]
        assert [one["metadata"]["name"] for one in left] == ["c"]
