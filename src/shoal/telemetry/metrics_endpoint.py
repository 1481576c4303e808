"""The HTTP endpoint for metrics and health; it listens on loopback unless configured otherwise.

It is answered by the process's one event loop, which has other things to do: requests are small and few at a time, a
body is never read, slow connections are closed, and an error is one line in the answer and a traceback in the log.

Rejected: TLS and tokens of its own. The metrics are not secret inside a cluster, and a proxy that asks for tokens goes
beside it where it is; the loopback address is what keeps others out until then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from shoal.client.connection_timeouts import TimedServer, Timeouts
from shoal.prometheus.exposition import PLAIN, form_for, text_of
from shoal.units.errors import UserError

if TYPE_CHECKING:
    from shoal.prometheus.registry import Registry
    from shoal.telemetry.health import HealthChecks

_log = logging.getLogger("shoal.telemetry")
_MOST_AT_ONCE = 8
_HASTE = Timeouts()
_KEPT_OPEN_S = 75.0
_LONGEST_LINE = 4096
_LONGEST_HEADER = 8192
_COMPRESSED_BYTES = 4096
_METRICS = "/metrics"
_SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, no-store"}


class MetricsEndpointSettings(msgspec.Struct, frozen=True):
    host: str = "127.0.0.1"
    port: int = 8080
    """0 takes any free one."""


class MetricsEndpoint:
    """`start` it, and `close` it; in between `address` says where it is."""

    def __init__(
        self,
        registry: Registry,
        health: HealthChecks,
        settings: MetricsEndpointSettings,
        haste: Timeouts = _HASTE,
        documents: Mapping[str, Callable[[], bytes]] | None = None,
        texts: Mapping[str, Callable[[], str]] | None = None,
    ) -> None:
        """`documents`: further paths, each with what makes its JSON; `texts`: with what makes further metrics."""
        self._texts = {} if texts is None else texts
        self._haste = haste
        self._documents = {} if documents is None else documents
        self._registry = registry
        self._health = health
        self._settings = settings
        self._runner: web.ServerRunner | None = None
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)
        self.address = ""

    async def start(self) -> None:
        """Raises UserError where the address cannot be had."""
        settings = self._settings
        server = TimedServer(
            self._answer,
            self._haste,
            access_log=None,
            keepalive_timeout=_KEPT_OPEN_S,
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_HEADER,
            lingering_time=0.0,
        )
        runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, settings.host, settings.port).start()
        except OSError as error:
            await runner.cleanup()
            what = f"metrics cannot be served at {settings.host}:{settings.port}: {error.strerror or error}"
            raise UserError(what, fix="choose another address with --metrics-address HOST:PORT, or none") from None
        self._runner = runner
        host, port = runner.addresses[0][:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method not in {"GET", "HEAD"}:
            return _words(405, "only GET is answered here\n", {"Allow": "GET, HEAD"})
        if self._turns.locked():
            return _words(503, "too many ask at once\n", {"Retry-After": "1"})
        async with self._turns:
            try:
                if request.path in self._documents:
                    return self._document(request.path)
                if request.path in self._texts:
                    return _metrics(self._texts[request.path]().encode(errors="replace"), PLAIN)
                return self._figures(request) if request.path == _METRICS else self._other(request)
            except Exception:  # noqa: BLE001 - the request needs an answer, without details
                _log.exception("%s could not be answered", request.path)
                return _words(500, "this could not be answered; the log says why\n")

    def _figures(self, request: web.BaseRequest) -> web.Response:
        form = form_for(request.headers.get("Accept", ""))
        return _metrics(text_of(self._registry.read(), form), form)

    def _document(self, path: str) -> web.Response:
        body = self._documents[path]()
        response = web.Response(body=body, content_type="application/json", headers=_SAFE)
        if len(body) > _COMPRESSED_BYTES:
            response.enable_compression()
        return response

    def _other(self, request: web.BaseRequest) -> web.Response:
        query = request.query
        found = self._health.answer(request.path, is_verbose="verbose" in query, left_out=query.getall("exclude", []))
        if found is None:
            paths = ", ".join((_METRICS, *self._texts, *self._documents, "/healthz", "/livez"))
            return _words(404, f"here are {paths} and /readyz\n")
        return _words(found.code, found.text)


def _metrics(body: bytes, form: str) -> web.Response:
    response = web.Response(body=body, headers={"Content-Type": form})
    if len(body) > _COMPRESSED_BYTES:
        response.enable_compression()
    return response


def _words(code: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    safe = {**_SAFE, **(headers or {})}
    return web.Response(status=code, text=text, content_type="text/plain", headers=safe)
