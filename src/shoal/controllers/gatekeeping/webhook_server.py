"""Answers reviews over HTTPS. New certificates apply to new connections, without a restart."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from shoal.controllers.gatekeeping.webhook_certs import WebhookCerts
from shoal.units.errors import TemporaryError

Obj = dict[str, Any]
Answer = Callable[[Obj], Obj]
_AGAIN_S = 10.0
_LONGEST = 16 * 1024 * 1024
"""The maximum size of a request: an object, its previous state, and the fields of the review."""


class WebhookServer:
    """`answers`: the handlers by path."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self._answers = answers
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self._runner: web.AppRunner | None = None
        self.port = 0

    def show(self, papers: WebhookCerts) -> None:
        # The library reads certificates from files only; this one is readable by its owner alone, and deleted at once.
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(papers.chain)
            file.flush()
            self._tls.load_cert_chain(file.name)

    async def start(self, host: str, port: int) -> None:
        """Call after the first certificates are set. Port 0 means any; `port` then has the chosen one."""
        application = web.Application(client_max_size=_LONGEST)
        for path in self._answers:
            application.router.add_post(path, self._handle)
        application.router.add_get("/healthz", _healthy)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=5.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port, ssl_context=self._tls).start()
        except OSError as error:
            await runner.cleanup()
            what = f"cannot listen on {host} port {port}: {error.strerror or error}"
            raise TemporaryError(what, _AGAIN_S) from error
        self._runner = runner
        self.port = runner.addresses[0][1]

    async def close(self) -> None:
        """Stop the server; it may be started again."""
        runner, self._runner, self.port = self._runner, None, 0
        if runner is not None:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        raw = await request.read()
        try:
            answer = self._answers[request.path](msgspec.json.decode(raw))
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
            return web.Response(status=400, text=f"not a review: {error}")
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok")
