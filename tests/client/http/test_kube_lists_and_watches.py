"""Lists in pages and watches in pieces, from a server that says what the test wants."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web

from build.told_server import POD, Server, status
from shoal.client.http.access import Access
from shoal.client.http.api import KubeApi
from shoal.client.http.settings import KubeSettings
from shoal.client.kind import PODS
from shoal.client.port import Select
from shoal.client.refusals import BusyError, ExpiredError


def page(go_on: str, *names: str, version: int = 9) -> dict[str, Any]:
    items = [{"metadata": {"name": name, "uid": name, "resourceVersion": "1"}} for name in names]
    return {"kind": "PodList", "metadata": {"resourceVersion": str(version), "continue": go_on}, "items": items}


async def test_a_list_goes_on_until_its_last_page(server: Server, api: KubeApi) -> None:
    server.script = [page("one", "a"), page("two", "b"), page("", "c")]
    listed = await api.list(PODS, "", Select(labels="x=y", fields="spec.nodeName=n"))
    assert ([item.name for item in listed.items], listed.version) == (["a", "b", "c"], 9)
    assert [one.query.get("continue") for one in server.seen] == [None, "one", "two"]
    assert {(one.query["limit"], one.query["labelSelector"]) for one in server.seen} == {("500", "x=y")}


async def test_a_list_that_was_forgotten_between_pages_is_asked_for_in_one(server: Server, api: KubeApi) -> None:
    server.script = [page("one", "a"), (410, status(410, "Expired")), page("", "b", "c", version=12)]
    listed = await api.list(PODS)
    assert ([item.name for item in listed.items], listed.version) == (["b", "c"], 12)
    assert dict(server.seen[-1].query) == {}


def streamed(*pieces: bytes, then: Callable[[web.BaseRequest], None] | None = None) -> Callable[..., Any]:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if then is not None:
            then(request)
        return response

    return answer


def line(kind: str, version: int) -> bytes:
    obj = {**POD, "metadata": {**POD["metadata"], "resourceVersion": str(version)}}
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


async def watched(api: KubeApi) -> list[int]:
    found: list[int] = []
    async with asyncio.timeout(60), aclosing(api.watch(PODS, 4, "a")) as batches:
        async for batch in batches:
            found += [change.version for change in batch]
    return found


async def test_a_watch_ends_when_the_server_ends_it(server: Server, api: KubeApi) -> None:
    first, second = line("ADDED", 5), line("MODIFIED", 6)
    server.script = [streamed(first + second[:10], second[10:] + line("DELETED", 7))]
    assert await watched(api) == [5, 6, 7]
    query = dict(server.seen[0].query)
    assert 300 <= int(query.pop("timeoutSeconds")) <= 600
    assert query == {"watch": "true", "resourceVersion": "4", "allowWatchBookmarks": "true"}


async def test_watches_do_not_all_end_together(server: Server, api: KubeApi) -> None:
    server.script = [streamed()]
    for _ in range(10):
        await watched(api)
    assert len({one.query["timeoutSeconds"] for one in server.seen}) > 5


async def test_a_watch_from_a_forgotten_version_is_expired_however_that_is_said(server: Server, api: KubeApi) -> None:
    gone = status(410, "Expired")
    server.script = [(410, gone), streamed(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")]
    for _ in range(2):
        with pytest.raises(ExpiredError):
            await watched(api)


async def test_a_watch_whose_connection_breaks_is_busy(server: Server, api: KubeApi) -> None:
    def cut(request: web.BaseRequest) -> None:
        assert request.transport is not None
        request.transport.abort()

    server.script = [streamed(line("ADDED", 5), then=cut)]
    with pytest.raises(BusyError):
        await watched(api)


async def test_many_watches_leave_room_for_requests(server: Server) -> None:
    async def quiet(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(line("ADDED", 5))
        await asyncio.Event().wait()
        return response

    async def either(request: web.BaseRequest) -> Any:
        return await quiet(request) if "watch" in request.query else POD

    server.script = [either]
    api = KubeApi(Access(server.url, "here"), random.Random(1), KubeSettings(connections=1))
    batches = [api.watch(PODS, 4) for _ in range(20)]
    async with asyncio.timeout(60):
        for one in batches:
            await anext(one)
        assert (await api.get(PODS, "a", "p")).name == "p"
        for one in batches:
            await one.aclose()
    await api.close()
