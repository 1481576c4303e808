"""Custom resources that a webhook converts: what it is asked, what is taken from its answer, how its failures show."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import pytest

from build.cluster_api import Api
from build.contract_kinds import Kind, defined, fields, text, version
from build.contract_objects import managers
from build.hook_server import HookServer, hook_server

pytestmark = pytest.mark.needs("reachable")

Obj = dict[str, Any]
OLD = version("v1", fields({"hostPort": text()}))
NEW = version("v2", fields({"host": text(), "port": text()}))


def convert(request: Obj) -> Obj:
    """v1 has `host:port` in one field, v2 in two."""
    return {
        "convertedObjects": [_converted(one, request["desiredAPIVersion"]) for one in request["objects"]],
        "result": {"status": "Success"},
    }


def _converted(obj: Obj, wanted: str) -> Obj:
    made = {**deepcopy(obj), "apiVersion": wanted}
    spec = made.get("spec", {})
    if wanted.endswith("/v2"):
        host, _, port = spec.pop("hostPort", "").partition(":")
        spec.update({"host": host, "port": port})
    else:
        spec["hostPort"] = f"{spec.pop('host', '')}:{spec.pop('port', '')}"
    return made


@asynccontextmanager
async def converted(api: Api) -> AsyncIterator[tuple[Kind, HookServer]]:
    async with hook_server() as hook:
        hook.answers["/convert"] = convert
        webhook = {
            "clientConfig": {"url": f"{hook.url}/convert", "caBundle": hook.bundle},
            "conversionReviewVersions": ["v1"],
        }
        conversion = {"strategy": "Webhook", "webhook": webhook}
        async with defined(api, OLD, NEW, conversion=conversion) as kind:
            yield kind, hook


async def test_an_object_is_converted_when_it_is_read_in_another_version(api: Api) -> None:
    async with converted(api) as (kind, hook):
        first = await kind.made("w", {"hostPort": "a:1"})
        second = await kind.get(version="v2")
        assert second["apiVersion"] == f"{kind.group}/v2"
        assert second["spec"] == {"host": "a", "port": "1"}
        for field in ("uid", "resourceVersion", "generation", "creationTimestamp"):
            assert second["metadata"][field] == first["metadata"][field]
        request = hook.requests("/convert")[-1]
        assert request["desiredAPIVersion"] == f"{kind.group}/v2"
        assert [one["metadata"]["name"] for one in request["objects"]] == ["w"]
        assert request["uid"]


async def test_an_object_is_converted_when_it_is_written_in_another_version(api: Api) -> None:
    async with converted(api) as (kind, _):
        created = await kind.made("w", {"host": "a", "port": "1"}, version="v2")
        assert created["spec"] == {"host": "a", "port": "1"}
        assert (await kind.get(version="v1"))["spec"] == {"hostPort": "a:1"}
        patched = (await api.patch(kind.path("w", version="v2"), {"spec": {"port": "2"}})).ok()
        assert patched["spec"] == {"host": "a", "port": "2"}
        assert patched["metadata"]["generation"] == 2
        assert (await kind.get(version="v1"))["spec"] == {"hostPort": "a:2"}
        patched["spec"] = {"host": "b", "port": "3"}
        (await api.put(kind.path("w", version="v2"), patched)).ok(200)
        assert (await kind.get(version="v1"))["spec"] == {"hostPort": "b:3"}


async def test_lists_and_watches_are_converted(api: Api) -> None:
    async with converted(api) as (kind, _):
        await kind.made("a", {"hostPort": "a:1"})
        await kind.made("b", {"hostPort": "b:2"})
        listed = (await api.get(kind.path(version="v2"))).ok()
        assert [one["spec"]["host"] for one in listed["items"]] == ["a", "b"]
        since = listed["metadata"]["resourceVersion"]
        async with api.watch(kind.path(version="v2"), resourceVersion=since) as watch:
            await kind.made("c", {"hostPort": "c:3"})
            assert (await watch.next_of("ADDED"))["object"]["spec"] == {"host": "c", "port": "3"}
            (await api.delete(kind.path("c"))).ok()
            event = await watch.next_of("DELETED")
            assert event["object"]["spec"] == {"host": "c", "port": "3"}


async def test_what_is_asked_for_in_the_stored_version_is_not_converted(api: Api) -> None:
    async with converted(api) as (kind, hook):
        await kind.made("w", {"hostPort": "a:1"})
        hook.asked.clear()
        await kind.get(version="v1")
        # Controllers of the cluster may read it in the version that is preferred, which is the other one.
        wanted = [asked["request"]["desiredAPIVersion"] for _, asked in hook.asked]
        assert [version for version in wanted if version.endswith("/v1")] == []


async def test_fields_are_applied_in_any_version(api: Api) -> None:
    async with converted(api) as (kind, _):
        (await api.apply(kind.path("w"), kind.obj("w", {"hostPort": "a:1"}), "alice")).ok(201)
        body = kind.obj("w", {"host": "a", "port": "1"}, version="v2")
        after = (await api.apply(kind.path("w", version="v2"), body, "alice")).ok(200)
        assert after["spec"] == {"host": "a", "port": "1"}
        assert managers(after)["alice", "Apply"] == {"f:spec": {"f:host": {}, "f:port": {}}}


async def test_a_webhook_may_change_labels_but_not_identity(api: Api) -> None:
    async with converted(api) as (kind, hook):
        await kind.made("w", {"hostPort": "a:1"})

        def labelled(request: Obj) -> Obj:
            response = convert(request)
            for one in response["convertedObjects"]:
                one["metadata"]["labels"] = {"by": "webhook"}
            return response

        hook.answers["/convert"] = labelled
        assert (await kind.get(version="v2"))["metadata"]["labels"] == {"by": "webhook"}

        def renamed(request: Obj) -> Obj:
            response = convert(request)
            for one in response["convertedObjects"]:
                one["metadata"]["name"] = "other"
            return response

        hook.answers["/convert"] = renamed
        message = (await api.get(kind.path("w", version="v2"))).refused(500)
        assert "must have the same name: w != other" in message


async def test_a_webhook_that_fails_fails_the_request(api: Api) -> None:
    async with converted(api) as (kind, hook):
        await kind.made("w", {"hostPort": "a:1"})
        hook.answers["/convert"] = lambda _: {"result": {"status": "Failed", "message": "not today"}}
        message = (await api.get(kind.path("w", version="v2"))).refused(500)
        assert f"conversion webhook for {kind.group}/v1, Kind=Widget failed: not today" in message
        hook.answers["/convert"] = lambda _: {"result": {"status": "Success"}, "convertedObjects": []}
        message = (await api.get(kind.path("w", version="v2"))).refused(500)
        assert f"conversion webhook for {kind.group}/v1, Kind=Widget returned 0 objects, expected 1" in message
        del hook.answers["/convert"]
        (await api.get(kind.path("w", version="v2"))).refused(500)
        (await api.get(kind.path(version="v2"))).refused(500)
        (await kind.create("x", {"host": "a", "port": "1"}, version="v2")).refused(500)
        (await api.get(kind.path("x"))).refused(404, "NotFound")
        (await api.get(kind.path("w"))).ok()
