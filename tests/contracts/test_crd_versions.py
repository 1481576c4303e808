"""Several versions of one custom resource, when converting means just another name."""

from functools import partial

from build.cluster_api import Api
from build.contract_kinds import defined, fields, text, version
from build.contract_objects import eventually

OLD = version("v1", fields({"a": text(), "old": text()}))
NEW = version("v2", fields({"a": text(), "new": text(default="n")}))


async def test_an_object_is_the_same_in_every_version_but_for_its_name(api: Api) -> None:
    async with defined(api, OLD, version("v2", fields({"a": text(), "old": text()}))) as kind:
        first = await kind.made("w", {"a": "1"})
        second = await kind.get(version="v2")
        assert first["apiVersion"] == f"{kind.group}/v1"
        assert second["apiVersion"] == f"{kind.group}/v2"
        assert second["spec"] == first["spec"]
        for field in ("uid", "resourceVersion", "generation"):
            assert first["metadata"][field] == second["metadata"][field]


async def test_each_version_shows_its_own_fields(api: Api) -> None:
    async with defined(api, OLD, NEW) as kind:
        await kind.made("w", {"a": "1", "old": "o"})
        assert (await kind.get(version="v1"))["spec"] == {"a": "1", "old": "o"}
        assert (await kind.get(version="v2"))["spec"] == {"a": "1"}


async def test_lists_and_watches_speak_the_version_they_are_asked_in(api: Api) -> None:
    async with defined(api, OLD, NEW) as kind:
        await kind.made("w", {"a": "1"})
        listed = (await api.get(kind.path(version="v2"))).ok()
        assert listed["apiVersion"] == f"{kind.group}/v2"
        assert listed["kind"] == "WidgetList"
        assert [one["apiVersion"] for one in listed["items"]] == [f"{kind.group}/v2"]
        since = listed["metadata"]["resourceVersion"]
        async with api.watch(kind.path(version="v2"), resourceVersion=since) as watch:
            await kind.made("x", {"a": "2"})
            event = await watch.next_of("ADDED")
            assert event["object"]["apiVersion"] == f"{kind.group}/v2"
            assert event["object"]["spec"] == {"a": "2"}
            (await api.delete(kind.path("x"))).ok()
            assert (await watch.next_of("DELETED"))["object"]["apiVersion"] == f"{kind.group}/v2"


async def test_a_write_in_one_version_is_seen_in_the_other(api: Api) -> None:
    async with defined(api, OLD, NEW) as kind:
        await kind.made("w", {"a": "1"}, version="v2")
        (await api.patch(kind.path("w", version="v1"), {"spec": {"a": "2"}})).ok()
        assert (await kind.get(version="v2"))["spec"]["a"] == "2"
        assert (await kind.get(version="v1"))["metadata"]["generation"] == 2


async def test_a_body_must_be_of_the_version_of_the_path(api: Api) -> None:
    async with defined(api, OLD, NEW) as kind:
        message = (await api.post(kind.path(version="v2"), kind.obj("w", {}, version="v1"))).refused(400, "BadRequest")
        assert message == (
            f"the API version in the data ({kind.group}/v1) does not match the expected API version ({kind.group}/v2)"
        )


async def test_a_version_that_is_not_served_is_not_there_but_may_be_stored(api: Api) -> None:
    async with defined(api, {**OLD, "served": False}, NEW) as kind:
        assert (await api.get(kind.path(version="v1"))).has_no_page()
        assert (await kind.made("w", {"a": "1"}, version="v2"))["spec"] == {"a": "1"}


async def test_a_deprecated_version_warns(api: Api) -> None:
    warned = {**NEW, "deprecated": True, "deprecationWarning": "v2 is going away"}
    plain = {**version("v3", fields({"a": text()})), "deprecated": True}
    async with defined(api, OLD, warned, plain) as kind:
        assert not (await api.get(kind.path())).warnings
        assert (await api.get(kind.path(version="v2"))).warnings == ['299 - "v2 is going away"']
        (said,) = (await api.get(kind.path(version="v3"))).warnings
        assert f"{kind.group}/v3 Widget is deprecated" in said


async def test_the_stored_version_may_move_and_old_objects_stay_readable(api: Api) -> None:
    async with defined(api, OLD, version("v2", fields({"a": text(), "old": text()}))) as kind:
        await kind.made("w", {"a": "1", "old": "o"})
        changed = await kind.redefine(
            {**OLD, "storage": False}, {**version("v2", fields({"a": text(), "old": text()})), "storage": True}
        )
        assert changed["status"]["storedVersions"] == ["v1", "v2"]
        for name in ("v1", "v2"):
            found = await eventually(partial(api.get, kind.path("w", version=name)), lambda one: one.code == 200)
            assert found.body["spec"] == {"a": "1", "old": "o"}
        (await api.patch(kind.path("w", version="v1"), {"spec": {"a": "2"}})).ok()
        assert (await kind.get(version="v2"))["spec"] == {"a": "2", "old": "o"}


async def test_a_stored_version_cannot_be_dropped_until_it_is_taken_from_the_status(api: Api) -> None:
    async with defined(api, OLD, NEW) as kind:
        await kind.redefine({**OLD, "storage": False}, {**NEW, "storage": True})
        answer = await api.patch(kind.definition, {"spec": {"versions": [{**NEW, "storage": True}]}})
        assert 'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions' in answer.refused(
            422, "Invalid"
        )
        (await api.patch(f"{kind.definition}/status", {"status": {"storedVersions": ["v2"]}})).ok()
        after = (await api.patch(kind.definition, {"spec": {"versions": [{**NEW, "storage": True}]}})).ok()
        assert after["status"]["storedVersions"] == ["v2"]
        await eventually(lambda: api.get(kind.path(version="v1")), lambda answer: answer.code == 404)
