"""A server of webhooks on this machine: answers as it is told and keeps what it was asked."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from shoal.client.certificates import new_authority, new_server

Obj = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Answering = Callable[[Obj], Obj]
"""From a review's request to its response; the uid is added."""


def allowed(_: Obj) -> Obj:
    return {"allowed": True}


def denied(message: str = "", **result: Any) -> Answering:
    said = {**({"message": message} if message else {}), **result}
    return lambda _: {"allowed": False, **({"status": said} if said else {})}


def patched(*operations: Obj) -> Answering:
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


class HookServer:
    """`answers` says by path what is answered; a response (`web.Response`) goes out as it is."""

    def __init__(self, port: int, bundle: str) -> None:
        self.port = port
        self.bundle = bundle
        """The authority of its certificate, as a caBundle."""
        self.answers: dict[str, Callable[[Obj], Any]] = {}
        self.asked: list[tuple[str, Obj]] = []
        self.headers: list[Any] = []

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def requests(self, path: str) -> list[Obj]:
        return [review["request"] for asked, review in self.asked if asked == path]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        review = await request.json() if request.body_exists else {}
        self.asked.append((request.path, review))
        self.headers.append(request.headers)
        answer = self.answers.get(request.path)
        if answer is None:
            return web.Response(status=404, text="nothing here")
        found = answer(review.get("request") or {})
        if isinstance(found, web.StreamResponse):
            return found
        kinds = {"kind": review["kind"], "apiVersion": review["apiVersion"]}
        return web.json_response({**kinds, "response": {"uid": review["request"]["uid"], **found}})


@asynccontextmanager
async def hook_server(
    *names: str,
    routes: Mapping[str, Handler] | None = None,
    posts: Mapping[str, Handler] | None = None,
    clients: str = "",
) -> AsyncIterator[HookServer]:
    """Listens until the end of the block; `names` are what its certificate is for, beside the address.

    With `clients`, an authority as PEM, it talks to nobody without a certificate of it.
    """
    now = datetime.now(UTC)  # noqa: TID251 - certificates want the date
    authority = new_authority(now)
    pair = new_server(authority, ["127.0.0.1", *names], now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pair.pem"
        file.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(file)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients)
    application = web.Application()
    server = HookServer(0, base64.b64encode(authority.certificate).decode())
    for path, handler in (routes or {}).items():
        application.router.add_get(path, handler)
    for path, handler in (posts or {}).items():
        application.router.add_post(path, handler)
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    server.port = runner.addresses[0][1]
    yield server
    await runner.cleanup()
