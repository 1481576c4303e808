"""What goes over the wire and how answers come back, against a server that says what the test wants."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from aiohttp import web

from build.told_server import POD, Answer, Server, status
from shoal.client.http.access import Access
from shoal.client.http.api import KubeApi
from shoal.client.http.settings import KubeSettings
from shoal.client.kind import NODES, PODS
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import BadRequestError, BusyError, ForbiddenError, LeaseEndedError, UnauthorizedError
from shoal.units.errors import UserError


async def test_who_asks_is_said_with_every_request(server: Server, api: KubeApi) -> None:
    server.script = [POD]
    await api.get(PODS, "a", "p")
    headers = server.seen[0].headers
    assert headers["Authorization"] == "Bearer t0"
    assert headers["Impersonate-User"] == "you"
    assert headers["User-Agent"].startswith("shoal/")
    assert server.seen[0].path == "/api/v1/namespaces/a/pods/p"


async def test_writes_are_signed_and_of_the_right_type(server: Server, api: KubeApi) -> None:
    server.script = [POD]
    await api.create(PODS, {"metadata": {"namespace": "a"}})
    await api.update(PODS, {"metadata": {"name": "p", "namespace": "a"}}, "status")
    await api.patch(NODES, "", "n", Patch("apply", {"metadata": {"name": "n"}}, force=True))
    await api.patch(NODES, "", "n", Patch("json", []), "status")
    await api.delete(PODS, "a", "p", Deletion(grace_s=0, policy="Orphan", uid="u", version=5))
    shown = [(one.method, one.path_qs, one.headers["Content-Type"]) for one in server.seen]
    assert shown == [
        ("POST", "/api/v1/namespaces/a/pods?fieldManager=me", "application/json"),
        ("PUT", "/api/v1/namespaces/a/pods/p/status?fieldManager=me", "application/json"),
        ("PATCH", "/api/v1/nodes/n?fieldManager=me&force=true", "application/apply-patch+yaml"),
        ("PATCH", "/api/v1/nodes/n/status?fieldManager=me", "application/json-patch+json"),
        ("DELETE", "/api/v1/namespaces/a/pods/p", "application/json"),
    ]
    assert server.bodies[0] == {"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": "a"}}
    assert server.bodies[2]["kind"] == "Node"
    assert server.bodies[4] == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Orphan",
        "preconditions": {"uid": "u", "resourceVersion": "5"},
    }


@pytest.mark.parametrize("wanted_s", [0.0, 0.05])
async def test_a_server_that_never_answers_is_named_with_the_time_that_was_waited(
    server: Server, wanted_s: float
) -> None:
    """The time that the user asked for replaces that of the client."""
    ended = asyncio.Event()

    async def never(_: web.BaseRequest) -> web.StreamResponse:
        await ended.wait()
        return web.Response()

    server.script = [never]
    settings = KubeSettings(timeout_s=3600 if wanted_s else 0.05)
    client = KubeApi(Access(server.url, "here", timeout_s=wanted_s), random.Random(1), settings)
    with pytest.raises(BusyError, match=rf"the API server at {server.url} does not answer: no answer within 0\.05 s"):
        await client.get(PODS, "a", "p")
    ended.set()
    await client.close()


@pytest.mark.parametrize("is_proxied", [False, True])
async def test_a_write_that_waits_for_a_connection_is_not_sent_once_its_process_leads_no_more(
    server: Server, is_proxied: bool
) -> None:
    asked, goes_on = asyncio.Event(), asyncio.Event()

    async def late(_: web.BaseRequest) -> web.StreamResponse:
        asked.set()
        await goes_on.wait()
        return web.json_response(POD)

    server.script = [late, POD]
    leads = True
    access = Access(server.url, "here", proxy=server.url if is_proxied else "")
    client = KubeApi(access, random.Random(1), KubeSettings(connections=1, timeout_s=5), lambda: leads)
    first = asyncio.ensure_future(client.create(PODS, {"metadata": {"namespace": "a"}}))
    await asked.wait()
    waiting = asyncio.ensure_future(client.update(PODS, {"metadata": {"name": "p", "namespace": "a"}}, "status"))
    await asyncio.sleep(0)
    leads = False
    goes_on.set()
    assert (await first).name == "p", "it was sent while its process led"
    with pytest.raises(LeaseEndedError, match="another may lead"):
        await waiting
    assert (await client.get(PODS, "a", "p")).name == "p", "reading is always allowed"
    assert [one.method for one in server.seen] == ["POST", "GET"]
    await client.close()


async def test_a_write_that_waits_for_its_turn_is_not_sent_once_its_process_leads_no_more(server: Server) -> None:
    server.script = [POD]
    leads = True
    settings = KubeSettings(requests_per_second=20, burst=1, timeout_s=5)
    client = KubeApi(Access(server.url, "here"), random.Random(1), settings, lambda: leads)
    await client.create(PODS, {"metadata": {"namespace": "a"}})
    waiting = asyncio.ensure_future(client.delete(PODS, "a", "p"))
    await asyncio.sleep(0)
    leads = False
    with pytest.raises(LeaseEndedError):
        await waiting
    assert [one.method for one in server.seen] == ["POST"]
    await client.close()


REFUSALS: list[tuple[str, Answer, type[Exception], str]] = [
    ("forbidden", (403, status(403, "Forbidden")), ForbiddenError, "because"),
    ("nobody", (401, status(401, "Unauthorized")), UnauthorizedError, "because"),
    ("too many", (429, status(429, "TooManyRequests"), {"Retry-After": "7"}), BusyError, "because"),
    ("a fault", (500, status(500, "InternalError")), BusyError, "because"),
    ("a proxy's words", (502, "<html>no\nserver</html>"), BusyError, "answered 502: <html>no server</html>"),
    ("a proxy's refusal", (403, "go away"), ForbiddenError, "answered 403: go away"),
    ("a place elsewhere", (302, "", {"Location": "/login"}), BadRequestError, "answered 302: Found"),
    ("a login page", (200, "<html>"), BusyError, "cannot be understood"),
]


@pytest.mark.parametrize(("answer", "kind", "words"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
async def test_what_is_refused_says_whose_turn_it_is(
    server: Server, api: KubeApi, answer: Answer, kind: type[Exception], words: str
) -> None:
    server.script = [answer]
    with pytest.raises(kind) as refused:
        await api.get(PODS, "a", "p")
    assert words in str(refused.value)


async def test_a_server_that_says_when_to_come_back_is_heard(server: Server, api: KubeApi) -> None:
    server.script = [(429, status(429, "TooManyRequests"), {"Retry-After": "7"})]
    with pytest.raises(BusyError) as refused:
        await api.create(PODS, {"metadata": {"namespace": "a"}})
    assert refused.value.delay_s == 7


async def test_no_answer_is_busy(server: Server, api: KubeApi) -> None:
    async def cut(request: web.BaseRequest) -> Answer:
        assert request.transport is not None
        request.transport.abort()
        return {}

    server.script = [cut]
    with pytest.raises(BusyError, match="does not answer: "):
        await api.create(PODS, {"metadata": {"namespace": "a"}})


async def test_tls_asked_of_a_server_without_it_is_the_users_turn(server: Server) -> None:
    api = KubeApi(Access(server.url.replace("http:", "https:"), "here", is_insecure=True), random.Random(1))
    with pytest.raises(UserError, match="does not speak TLS; does it begin with http://"):
        await api.get(PODS, "a", "p")
    await api.close()


async def test_a_renewed_token_costs_none_of_the_requests_under_way(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    all_asked = asyncio.Event()

    async def answer(request: web.BaseRequest) -> Answer:
        if len(server.seen) == 12:
            # All of them have shown the old one by now.
            file.write_text("new")
            all_asked.set()
        await all_asked.wait()
        is_new = request.headers["Authorization"] == "Bearer new"
        return (201, POD) if is_new else (401, status(401, "Unauthorized"))

    server.script = [answer]
    api = KubeApi(Access(server.url, "here", token_file=file), random.Random(1), KubeSettings(timeout_s=5))
    try:
        await asyncio.gather(*(api.create(PODS, {"metadata": {"namespace": "a"}}) for _ in range(12)))
    finally:
        await api.close()
    assert len(server.seen) == 24
