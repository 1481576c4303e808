"""A definition from its first conditions to its end: names that clash, schemas that change, objects that go with it."""

from build.cluster_api import Api
from build.contract_kinds import CRDS, Kind, defined, definition, fields, text, until_condition, until_gone, version
from build.contract_objects import eventually


async def test_a_new_definition_is_established_and_says_so(api: Api) -> None:
    async with defined(api) as kind:
        found = (await api.get(kind.definition)).ok()
        conditions = {one["type"]: one for one in found["status"]["conditions"]}
        assert conditions["NamesAccepted"]["status"] == "True"
        assert conditions["NamesAccepted"]["reason"] == "NoConflicts"
        assert conditions["NamesAccepted"]["message"] == "no conflicts found"
        assert conditions["Established"]["status"] == "True"
        assert conditions["Established"]["reason"] == "InitialNamesAccepted"
        assert conditions["Established"]["message"] == "the initial names have been accepted"
        assert found["status"]["storedVersions"] == ["v1"]
        assert found["status"]["acceptedNames"] == {
            "plural": "widgets",
            "singular": "widget",
            "kind": "Widget",
            "listKind": "WidgetList",
        }
        assert found["spec"]["conversion"] == {"strategy": "None"}


async def test_names_that_are_left_out_are_made_of_the_kind(api: Api) -> None:
    crd = definition()
    crd["spec"]["names"] = {"plural": "widgets", "kind": "Widget"}
    created = (await api.post(CRDS, crd)).ok(201)
    assert created["spec"]["names"] == {
        "plural": "widgets",
        "kind": "Widget",
        "singular": "widget",
        "listKind": "WidgetList",
    }
    (await api.delete(f"{CRDS}/{crd['metadata']['name']}")).ok()


async def test_a_kind_that_is_taken_in_the_group_is_not_served(api: Api) -> None:
    async with defined(api) as kind:
        second = definition(
            names={"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "GadgetList"}
        )
        second["spec"]["group"] = kind.group
        second["metadata"]["name"] = f"gadgets.{kind.group}"
        (await api.post(CRDS, second)).ok(201)
        condition = await until_condition(api, second["metadata"]["name"], "NamesAccepted", "False")
        assert condition["reason"] == "KindConflict"
        assert condition["message"] == '"Widget" is already in use'
        other = Kind(api, second)
        assert (await api.get(other.path())).has_no_page()
        (await api.delete(kind.definition)).ok()
        await until_condition(api, second["metadata"]["name"], "Established", "True")
        await eventually(lambda: api.get(other.path()), lambda answer: answer.code == 200)
        (await api.delete(other.definition)).ok()


async def test_what_identifies_the_kind_cannot_change(api: Api) -> None:
    async with defined(api) as kind:
        message = (await api.patch(kind.definition, {"spec": {"scope": "Cluster"}})).refused(422, "Invalid")
        assert 'spec.scope: Invalid value: "Cluster": field is immutable' in message
        message = (await api.patch(kind.definition, {"spec": {"names": {"kind": "Other"}}})).refused(422, "Invalid")
        assert 'spec.names.kind: Invalid value: "Other": field is immutable' in message


async def test_a_changed_schema_is_used_for_what_comes_after(api: Api) -> None:
    async with defined(api, version(spec=fields({"a": text()}))) as kind:
        before = (await api.get(kind.definition)).ok()
        await kind.made("w", {"a": "1"})
        after = await kind.redefine(version(spec=fields({"a": text(), "b": text()})))
        assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
        await eventually(
            lambda: api.post(kind.path(), kind.obj("probe", {"b": "2"}), dryRun="All"),
            lambda answer: answer.code == 201 and answer.body["spec"] == {"b": "2"},
        )
        (await api.patch(kind.path("w"), {"spec": {"b": "2"}})).ok()
        assert (await kind.get())["spec"] == {"a": "1", "b": "2"}


async def test_what_no_longer_fits_the_schema_can_still_be_read_and_deleted(api: Api) -> None:
    async with defined(api, version(spec=fields({"a": text()}))) as kind:
        await kind.made("w", {"a": "long"})
        await kind.redefine(version(spec=fields({"a": text(maxLength=2)})))
        await eventually(
            lambda: api.post(kind.path(), kind.obj("probe", {"a": "long"}), dryRun="All"),
            lambda answer: answer.code == 422,
        )
        assert (await kind.get())["spec"] == {"a": "long"}
        (await api.patch(kind.path("w"), {"metadata": {"labels": {"a": "b"}}})).ok()
        (await api.patch(kind.path("w"), {"spec": {"a": "other"}})).refused(422, "Invalid")
        (await api.delete(kind.path("w"))).ok()


async def test_deleting_a_definition_deletes_its_objects_first(api: Api) -> None:
    async with defined(api) as kind:
        await kind.made("w", {})
        since = (await api.get(kind.path())).ok()["metadata"]["resourceVersion"]
        async with api.watch(kind.path(), resourceVersion=since) as watch:
            (await api.delete(kind.definition)).ok()
            event = await watch.next_of("DELETED")
            assert event["object"]["metadata"]["name"] == "w"
        await until_gone(api, kind.definition)
        await eventually(lambda: api.get(kind.path()), lambda answer: answer.code == 404)
        (await api.post(CRDS, kind.crd)).ok(201)
        await eventually(lambda: api.get(kind.path()), lambda answer: answer.code == 200)
        assert (await api.get(kind.path())).ok()["items"] == []


async def test_watches_end_with_the_definition(api: Api) -> None:
    async with defined(api) as kind:
        since = (await api.get(kind.path())).ok()["metadata"]["resourceVersion"]
        async with api.watch(kind.path(), resourceVersion=since) as watch:
            (await api.delete(kind.definition)).ok()
            assert await watch.is_at_end()


async def test_a_definition_waits_for_objects_that_are_held(api: Api) -> None:
    async with defined(api) as kind:
        held = kind.obj("w", {})
        held["metadata"]["finalizers"] = ["example.com/hold"]
        (await api.post(kind.path(), held)).ok(201)
        deleted = (await api.delete(kind.definition)).ok()
        assert deleted["metadata"]["deletionTimestamp"]
        assert deleted["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        await eventually(
            lambda: api.get(kind.path("w")), lambda answer: "deletionTimestamp" in answer.body.get("metadata", {})
        )
        refused = await eventually(
            lambda: api.post(kind.path(), kind.obj("v", {}), dryRun="All"), lambda answer: answer.code != 201
        )
        message = refused.refused(403, "Forbidden")
        why = "create not allowed while custom resource definition is terminating"
        assert message == f'widgets.{kind.group} "v" is forbidden: {why}'
        (await api.get(kind.definition)).ok()
        (await api.patch(kind.path("w"), {"metadata": {"finalizers": None}})).ok()
        await until_gone(api, kind.definition)


async def test_deleting_the_definition_ends_the_discovery_of_its_group(api: Api) -> None:
    async with defined(api) as kind:
        await eventually(lambda: api.get(f"/apis/{kind.group}"), lambda answer: answer.code == 200)
        (await api.delete(kind.definition)).ok()
        await eventually(lambda: api.get(f"/apis/{kind.group}/v1"), lambda answer: answer.code == 404)
        await eventually(lambda: api.get(f"/apis/{kind.group}"), lambda answer: answer.code == 404)


async def test_definitions_are_applied_like_everything_else(api: Api) -> None:
    crd = definition(version(spec=fields({"a": text()})))
    path = f"{CRDS}/{crd['metadata']['name']}"
    first = (await api.apply(path, crd, "alice")).ok(201)
    await until_condition(api, crd["metadata"]["name"], "Established", "True")
    settled = (await api.get(path)).ok()
    again = (await api.apply(path, crd, "alice")).ok(200)
    assert again["metadata"]["uid"] == first["metadata"]["uid"]
    assert again["metadata"]["generation"] == settled["metadata"]["generation"] == 1
    (await api.delete(path)).ok()
