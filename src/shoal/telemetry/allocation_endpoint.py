"""Serves costs over HTTP as OpenCost does: `/allocation`, `/allocation/compute`, and both below `/model`.

Guarantees: without viewers only requests that name a loopback host are answered, so that a page of another site cannot
read costs through a name that it resolves to 127.0.0.1. With viewers each request has a token, and of namespaces that
its owner may not see the answer has the sum and no name. One request is computed at a time, in a thread, and few wait.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from shoal.client.connection_timeouts import TimedServer, Timeouts
from shoal.client.refusals import UnauthorizedError
from shoal.cost.allocations import AllocationViewer
from shoal.units.errors import ShoalError, UserError, one_line
from shoal.units.listening import LOOPBACK_HOSTS

_log = logging.getLogger("shoal.cost")
_PATHS = frozenset(f"{root}{path}" for root in ("", "/model") for path in ("/allocation", "/allocation/compute"))
_BEARER = "bearer "
_LONGEST_TOKEN = 16_384
_MOST_WAITING = 8
_COMPRESSED_BYTES = 4096
_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


class ReadWindow(Protocol):
    """The records for a request; `answer` is called in a thread, as `Reader.read`."""

    def namespaces(self) -> set[str]: ...

    def answer(self, viewer: AllocationViewer | None) -> bytes: ...


class Reader(Protocol):
    def read(self, query: Mapping[str, str], now_ms: int) -> ReadWindow: ...


Viewing = Callable[[str, Collection[str]], Awaitable[AllocationViewer]]
"""What the owner of a token may see of these namespaces. Raises UnauthorizedError for a token that the cluster
rejects."""


class AllocationSettings(msgspec.Struct, frozen=True):
    host: str = "127.0.0.1"
    port: int = 9003
    """0 takes any free one."""
    certificate: ssl.SSLContext | None = None


class AllocationEndpoint:
    """`start` it, and `close` it; in between `url` is where it answers."""

    def __init__(
        self,
        reader: Reader,
        settings: AllocationSettings,
        seconds: Callable[[], float],
        viewing: Viewing | None = None,
    ) -> None:
        """`viewing`: None for an address of loopback, where every request sees all."""
        self._reader, self._settings, self._seconds, self._viewing = reader, settings, seconds, viewing
        self._runner: web.ServerRunner | None = None
        self._turn = asyncio.Lock()
        self._waiting = 0
        self.url = ""

    async def start(self) -> None:
        """Raises UserError where the address cannot be had."""
        settings = self._settings
        server = TimedServer(self._answer, Timeouts(), access_log=None, lingering_time=0.0)
        runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, settings.host, settings.port, ssl_context=settings.certificate).start()
        except OSError as error:
            await runner.cleanup()
            what = f"costs cannot be served at {settings.host}:{settings.port}: {error.strerror or error}"
            raise UserError(what, fix="choose another port, or 0 for any free one") from None
        self._runner = runner
        host, port = runner.addresses[0][:2]
        scheme = "http" if settings.certificate is None else "https"
        self.url = f"{scheme}://[{host}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method not in {"GET", "HEAD"}:
            return _refused(405, "only GET is answered here")
        if request.path == "/healthz":
            return web.Response(text="ok\n", headers=_HEADERS)
        if self._viewing is None and _host_name(request) not in LOOPBACK_HOSTS:
            return _refused(421, "this server answers to 127.0.0.1 and localhost only")
        if request.path not in _PATHS:
            return _refused(404, f"here are {', '.join(sorted(_PATHS))} and /healthz")
        token = _token(request)
        if self._viewing is not None and not token:
            return _refused(401, "send the token of your Kubernetes account: Authorization: Bearer TOKEN")
        if self._waiting >= _MOST_WAITING:
            return _refused(503, "too many ask at once")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._computed(request, token)
        except UnauthorizedError:
            return _refused(401, "the cluster rejects this token")
        except UserError as error:
            return _refused(400, one_line(str(error)))
        except ShoalError as error:
            return _refused(502, one_line(str(error)))
        except Exception:  # noqa: BLE001 - the request needs an answer, without details
            _log.exception("%r could not be answered", request.path)
            return _refused(500, "this could not be answered; the log says why")
        finally:
            self._waiting -= 1

    async def _computed(self, request: web.BaseRequest, token: str) -> web.StreamResponse:
        if self._viewing is not None:
            # Before anything is read: a token that the cluster rejects costs nothing.
            await self._viewing(token, ())
        found = await asyncio.to_thread(self._reader.read, dict(request.query), round(self._seconds() * 1000))
        viewer = None if self._viewing is None else await self._viewing(token, found.namespaces())
        body = await asyncio.to_thread(found.answer, viewer)
        response = web.Response(body=body, content_type="application/json", headers=_HEADERS)
        if len(body) > _COMPRESSED_BYTES:
            response.enable_compression()
        return response


def _token(request: web.BaseRequest) -> str:
    """Empty for a header that has none."""
    header = request.headers.get("Authorization", "")
    text = header[len(_BEARER) :].strip() if header.lower().startswith(_BEARER) else ""
    is_token = 0 < len(text) <= _LONGEST_TOKEN and text.isascii() and text.isprintable() and " " not in text
    return text if is_token else ""


def _host_name(request: web.BaseRequest) -> str:
    try:
        return urlsplit(f"//{request.host}").hostname or ""
    except ValueError:
        return ""


def _refused(code: int, message: str) -> web.Response:
    body = msgspec.json.encode({"code": code, "message": message})
    return web.Response(status=code, body=body, content_type="application/json", headers=_HEADERS)
