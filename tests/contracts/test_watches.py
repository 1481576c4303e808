"""Watches: what is told, in which order, to whom, and how a watch ends."""

from __future__ import annotations

import pytest

from build.api_objects import make_configmap, make_secret, secret
from build.cluster_api import Api, Obj

END = "k8s.io/initial-events-end"


def brief(event: Obj) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"]["name"]


async def now(api: Api, plural: str = "secrets") -> str:
    version: str = (await api.get(api.core(plural))).ok()["metadata"]["resourceVersion"]
    return version


async def test_a_watch_tells_what_comes_changes_and_goes_in_order(api: Api) -> None:
    async with api.watch(api.core("secrets"), resourceVersion=await now(api)) as watch:
        made = await make_secret(api, "a")
        changed = (await api.patch(api.core("secrets", "a"), {"metadata": {"labels": {"l": "1"}}})).ok()
        (await api.delete(api.core("secrets", "a"))).ok()
        events = await watch.take(3)
    assert [brief(event) for event in events] == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert events[0]["object"] == made
    assert events[1]["object"] == changed
    last = events[2]["object"]
    assert last["metadata"]["labels"] == {"l": "1"}
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


async def test_watched_objects_say_what_they_are(api: Api) -> None:
    async with api.watch(api.core("secrets"), resourceVersion=await now(api)) as watch:
        await make_secret(api, "a")
        found = (await watch.next())["object"]
    assert (found["kind"], found["apiVersion"]) == ("Secret", "v1")


async def test_a_watch_after_a_list_misses_nothing_and_repeats_nothing(api: Api) -> None:
    await make_secret(api, "before")
    listed = (await api.get(api.core("secrets"))).ok()
    await make_secret(api, "between")
    async with api.watch(api.core("secrets"), resourceVersion=listed["metadata"]["resourceVersion"]) as watch:
        await make_secret(api, "after")
        assert [brief(event) for event in await watch.take(2)] == [("ADDED", "between"), ("ADDED", "after")]


async def test_a_watch_from_an_object_starts_after_it(api: Api) -> None:
    first = await make_secret(api, "a")
    await make_secret(api, "b")
    async with api.watch(api.core("secrets"), resourceVersion=first["metadata"]["resourceVersion"]) as watch:
        assert brief(await watch.next()) == ("ADDED", "b")


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}])
async def test_a_watch_without_a_version_starts_with_what_is_there(api: Api, query: Obj) -> None:
    await make_secret(api, "a")
    await make_secret(api, "b")
    (await api.get(api.core("secrets"))).ok()
    async with api.watch(api.core("secrets"), **query) as watch:
        assert sorted(brief(event) for event in await watch.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
        await make_secret(api, "c")
        assert brief(await watch.next_of("ADDED")) == ("ADDED", "c")


async def test_objects_that_enter_and_leave_a_selection_of_labels_come_and_go(api: Api) -> None:
    async with api.watch(api.core("secrets"), resourceVersion=await now(api), labelSelector="in=1") as watch:
        await make_secret(api, "a")
        path = api.core("secrets", "a")
        (await api.patch(path, {"metadata": {"labels": {"in": "1"}}})).ok()
        (await api.patch(path, {"metadata": {"labels": {"more": "1"}}})).ok()
        left = (await api.patch(path, {"metadata": {"labels": {"in": "2"}}})).ok()
        (await api.patch(path, {"metadata": {"labels": {"in": "1"}}})).ok()
        (await api.delete(path)).ok()
        events = await watch.take(5)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    gone = events[2]["object"]["metadata"]
    assert gone["labels"] == {"in": "1", "more": "1"}, "the object is told as it last was in the selection"
    assert gone["resourceVersion"] == left["metadata"]["resourceVersion"], "at the version at which it left"


async def test_objects_that_leave_a_selection_of_fields_go(api: Api) -> None:
    path, since = api.core("pods"), await now(api, "pods")
    from build.api_objects import ABSENT, make_pod

    async with api.watch(path, resourceVersion=since, fieldSelector="spec.nodeName=") as watch:
        await make_pod(api, "p")
        target = {"apiVersion": "v1", "kind": "Node", "name": ABSENT}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": target}
        (await api.post(api.core("pods", "p", "binding"), binding)).ok(201)
        events = await watch.take(2)
    assert [brief(event) for event in events] == [("ADDED", "p"), ("DELETED", "p")]


async def test_a_watch_of_one_name_is_told_of_no_other(api: Api) -> None:
    since = await now(api)
    async with api.watch(api.core("secrets"), resourceVersion=since, fieldSelector="metadata.name=b") as watch:
        await make_secret(api, "a")
        await make_secret(api, "b")
        (await api.delete(api.core("secrets", "b"))).ok()
        assert [brief(event) for event in await watch.take(2)] == [("ADDED", "b"), ("DELETED", "b")]


async def test_a_watch_of_one_namespace_is_told_of_no_other(api: Api) -> None:
    since = (await api.get("/api/v1/secrets")).ok()["metadata"]["resourceVersion"]
    elsewhere = "/api/v1/namespaces/default/secrets"
    async with api.watch(api.core("secrets"), resourceVersion=since) as watch:
        (await api.post(elsewhere, secret(api.namespace))).ok(201)
        (await api.delete(f"{elsewhere}/{api.namespace}")).ok()
        await make_secret(api, "mine")
        assert brief(await watch.next()) == ("ADDED", "mine")


@pytest.mark.parametrize("form", ["/api/v1/watch/namespaces/{}/secrets", "/api/v1/watch/namespaces/{}/secrets/a"])
async def test_the_old_paths_of_watches_are_served(api: Api, form: str) -> None:
    since = await now(api)
    async with api.watch(form.format(api.namespace), resourceVersion=since) as watch:
        await make_secret(api, "a")
        assert brief(await watch.next()) == ("ADDED", "a")


async def test_a_watch_ends_when_its_time_is_up(api: Api) -> None:
    async with api.watch(api.core("secrets"), resourceVersion=await now(api), timeoutSeconds=1) as watch:
        assert await watch.is_at_end()


async def test_initial_events_end_with_a_bookmark_that_says_so(api: Api) -> None:
    await make_secret(api, "a")
    made = await make_secret(api, "b")
    query: Obj = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(api.core("secrets"), **query) as watch:
        first = [await watch.next() for _ in range(3)]
        await make_secret(api, "c")
        after = await watch.next_of("ADDED")
    assert sorted(brief(event) for event in first[:2]) == [("ADDED", "a"), ("ADDED", "b")]
    bookmark = first[2]
    assert bookmark["type"] == "BOOKMARK"
    assert (bookmark["object"]["kind"], bookmark["object"]["apiVersion"]) == ("Secret", "v1")
    metadata = bookmark["object"]["metadata"]
    assert metadata["annotations"] == {END: "true"}
    assert int(metadata["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])
    assert brief(after) == ("ADDED", "c")


async def test_without_initial_events_a_watch_starts_now(api: Api) -> None:
    await make_secret(api, "a")
    since = await now(api)
    query: Obj = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(api.core("secrets"), resourceVersion=since, **query) as watch:
        await make_secret(api, "b")
        assert brief(await watch.next_of("ADDED")) == ("ADDED", "b")


async def test_initial_events_without_bookmarks_have_no_end_mark(api: Api) -> None:
    await make_secret(api, "a")
    query: Obj = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    async with api.watch(api.core("secrets"), **query) as watch:
        assert brief(await watch.next()) == ("ADDED", "a")
        await make_secret(api, "b")
        assert brief(await watch.next()) == ("ADDED", "b")


async def test_bookmarks_hold_a_version_and_nothing_else(api: Api) -> None:
    since = await now(api)
    query: Obj = {"allowWatchBookmarks": "true", "timeoutSeconds": 3}
    async with api.watch(api.core("secrets"), resourceVersion=since, **query) as watch:
        made = await make_secret(api, "a")
        assert brief(await watch.next_of("ADDED")) == ("ADDED", "a")
        while True:
            try:
                event = await watch.next()
            except AssertionError:
                break  # No server promises a bookmark.
            assert event["type"] == "BOOKMARK"
            metadata = event["object"]["metadata"]
            assert int(metadata["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])
            assert "name" not in metadata


async def test_a_version_that_is_forgotten_is_told_in_the_stream(api: Api) -> None:
    await make_secret(api, "a")
    async with api.watch(api.core("secrets"), resourceVersion=1, timeoutSeconds=2) as watch:
        event = await watch.next()
        if event["type"] != "ERROR":
            pytest.skip("this server remembers its first revision")
        assert await watch.is_at_end()
    found = event["object"]
    assert (found["kind"], found["code"], found["reason"]) == ("Status", 410, "Expired")
    assert found["message"].startswith("too old resource version: 1 (")


async def test_a_watch_from_the_future_waits_for_it(api: Api) -> None:
    since = int(await now(api))
    async with api.watch(api.core("secrets"), resourceVersion=since + 10**9, timeoutSeconds=1) as watch:
        await make_secret(api, "a")
        assert await watch.is_at_end()


async def test_a_watch_from_what_is_no_version_is_refused(api: Api) -> None:
    answer = await api.get(api.core("secrets"), watch="true", resourceVersion="never", timeoutSeconds=1)
    assert 400 <= answer.code <= 500
    assert "Invalid value" in answer.body["message"]


async def test_a_watch_of_a_resource_that_is_not_served_is_not_found(api: Api) -> None:
    assert (await api.get(api.core("gizmos"), watch="true")).code == 404


async def test_a_get_of_a_name_is_no_watch(api: Api) -> None:
    made = await make_configmap(api, "b")
    assert (await api.get(api.core("configmaps", "b"), watch="true")).ok(200) == made
    message = (await api.get(api.core("configmaps", "none"), watch="true")).refused(404, "NotFound")
    assert message == 'configmaps "none" not found'
