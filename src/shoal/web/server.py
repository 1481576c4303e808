"""Serves the pages over HTTP, and sends changes to open pages as server-sent events.

Guarantees: nothing in the cluster can be changed here: GET and HEAD are answered, and POST only to sign in. No page
loads anything from another server, and no inline script or style runs. Without tokens only requests that name a
loopback host are answered, so a page of another site cannot read the cluster through a name that it resolves to
127.0.0.1. An error is one line in the answer and a traceback in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, parse_qsl, urlsplit

import msgspec
from aiohttp import web

from shoal.client.clock import Clock
from shoal.client.connection_timeouts import TimedServer, Timeouts
from shoal.client.refusals import UnauthorizedError
from shoal.units.errors import ShoalError, UserError, Where, excerpt, one_line
from shoal.web.live import LiveStream, SentPage
from shoal.web.markup import Markup, element, joined
from shoal.web.page import Frame, WebPage, document
from shoal.web.sign_in import Sessions
from shoal.web.site import Site
from shoal.web.tables import csv_of

Network = IPv4Network | IPv6Network
_log = logging.getLogger("shoal.web")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_STATIC = {"shoal.css": "text/css", "shoal.js": "text/javascript", "shoal.svg": "image/svg+xml"}
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_COOKIE, _BEARER = "shoal-session", "bearer "
_COMPRESSED_BYTES = 2_048
_MOST_STREAMS, _MOST_STREAMS_OF_ONE, _STREAM_S = 48, 8, 0.5
_SILENCE_S = 15.0
"""Until a comment is sent, by which both sides see that the connection lives."""
_SIGNED_OUT = b"event: signed-out\ndata: {}\n\n"
_LONGEST_TOKEN = 16_384
_MOST_FIELDS = 16
_PARTS = frozenset({"csv", "why"})
"""Fields of an address that are answered with a part of the page."""
_SIGN_IN = "/sign-in"


class WebSettings(msgspec.Struct, frozen=True):
    host: str = "127.0.0.1"
    port: int = 8090
    """0 takes any free one."""
    title: str = "Shoal"
    certificate: ssl.SSLContext | None = None
    trusted_proxies: Sequence[Network] = ()
    """Whose `X-Forwarded-Proto` is believed."""
    listening: socket.socket | None = None
    """Listens already, instead of at host and port."""


def trusted_proxies(addresses: Sequence[str], where: Where) -> list[Network]:
    """Raises UserError for a text that is neither an address nor a network."""
    found = []
    for address in addresses:
        try:
            found.append(ip_network(address.strip(), strict=False))
        except ValueError:
            fix = "write it as in 10.0.0.5 or 10.0.0.0/8"
            raise UserError(f"{excerpt(address)} is neither an address nor a network", where=where, fix=fix) from None
    return found


class Followed(msgspec.Struct, frozen=True):
    """The page that a browser shows."""

    path: str
    query: Mapping[str, str]
    digest: str


class _MalformedError(Exception):
    """An address in a request is none."""


class WebServer:
    """`start` it, and `close` it; in between `url` is where it answers."""

    def __init__(self, site: Site, settings: WebSettings, clock: Clock) -> None:
        self._site, self._settings, self._clock = site, settings, clock
        self._sessions = Sessions(clock)
        self._frame = Frame(settings.title, can_sign_out=site.needs_token)
        self._runner: web.ServerRunner | None = None
        self._streams_of: Counter[str] = Counter()
        """Open ones, by token."""
        self._ending = asyncio.Event()
        self.url = ""

    async def start(self) -> None:
        """Raises UserError where the address cannot be had."""
        settings = self._settings
        # A browser that leaves ends what is computed for it.
        options = {"access_log": None, "lingering_time": 0.0}
        server = TimedServer(self._answer, Timeouts(most=128), ends_with_client=True, **options)
        runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await _site(runner, settings).start()
        except OSError as error:
            await runner.cleanup()
            what = f"pages cannot be served at {settings.host}:{settings.port}: {error.strerror or error}"
            raise UserError(what, fix="choose another port, or 0 for any free one") from None
        self._runner = runner
        host, port = runner.addresses[0][:2]
        scheme = "http" if settings.certificate is None else "https"
        self.url = f"{scheme}://[{host}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"

    async def close(self) -> None:
        self._ending.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._found(request)
        except UnauthorizedError:
            return self._signed_out(request)
        except _MalformedError:
            return _plain(400, "an address in this request is malformed\n")
        except ShoalError as error:
            return self._message(request, 502, "The cluster gives no answer", one_line(str(error)))
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:  # noqa: BLE001 - the request needs an answer, without details
            _log.exception("%r could not be answered", request.path)
            return self._message(request, 500, "Error", "This page could not be made; the log says why.")

    async def _found(self, request: web.BaseRequest) -> web.StreamResponse:
        if not self._site.needs_token and _host_name(request) not in _LOOPBACK:
            return _plain(421, "this server answers to 127.0.0.1 and localhost only\n")
        path = request.path
        if request.method == "POST" and path == _SIGN_IN and self._site.needs_token:
            return await self._sign_in(request)
        if request.method not in ("GET", "HEAD"):
            return _plain(405, "only GET is answered here\n", {"Allow": "GET, HEAD"})
        if path.startswith("/static/"):
            return _static(path.removeprefix("/static/"))
        if path == "/healthz":
            return _plain(200, "ok\n")
        token = self._token(request)
        if self._site.needs_token and (not token or path == _SIGN_IN):
            return self._signed_out(request) if path != _SIGN_IN else self._form(200, "")
        if path == "/sign-out":
            return self._sign_out(request)
        await self._site.check(token)
        return await self._content(request, token)

    async def _content(self, request: web.BaseRequest, token: str) -> web.StreamResponse:
        path, query = request.path, request.query
        if path == "/live":
            return await self._stream(request, token)
        if path.startswith("/hover/"):
            found = await self._site.hover(path.removeprefix("/hover/"), token)
            return _html(200 if found is not None else 404, found or "")
        if "why" in query:
            try:
                return _html(200, await self._site.explanation(path, query, token))
            except UnauthorizedError:
                raise
            except ShoalError as error:
                return _html(200, element("p", one_line(str(error)), class_="fault"))
        page = await self._site.page(path, query, token)
        if "csv" in query:
            return _csv(page, query["csv"])
        return _html(page.status, document(page, self._frame), request)

    # -- streams ---------------------------------------------------------------------------------------------

    async def _stream(self, request: web.BaseRequest, token: str) -> web.StreamResponse:
        is_too_much = self._site.needs_token and self._streams_of[token] >= _MOST_STREAMS_OF_ONE
        if is_too_much or self._streams_of.total() >= _MOST_STREAMS:
            return _plain(503, "too many pages are open\n", {"Retry-After": "15"})
        shown = _split(request.query.get("page", "/"))
        query = _fields(shown.query)
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        self._streams_of[token] += 1
        try:
            await response.prepare(request)
            followed = Followed(shown.path, query, request.query.get("digest", ""))
            stream = LiveStream(request, response)
            await self._send(stream, followed, token, lambda: self._token(request) == token)
        except ConnectionError:
            pass
        except Exception:  # noqa: BLE001 - the answer has begun, and the browser asks again
            _log.exception("changes of %r could not be sent", shown.path)
        finally:
            self._streams_of[token] -= 1
            if not self._streams_of[token]:
                del self._streams_of[token]
        return response

    async def _send(self, stream: LiveStream, followed: Followed, token: str, is_signed_in: Callable[[], bool]) -> None:
        sent, has, version, silent_s = SentPage(), followed.digest, None, 0.0
        while not self._ending.is_set():
            if not is_signed_in():
                await stream.write(_SIGNED_OUT)
                return
            present = self._site.version()
            if present != version:
                version = present
                try:
                    page = await self._site.page(followed.path, followed.query, token)
                except UnauthorizedError:
                    await stream.write(_SIGNED_OUT)
                    return
                except ShoalError as error:
                    data = msgspec.json.encode({"fault": one_line(str(error))}).decode()
                    await stream.write(f"event: fault\ndata: {data}\n\n".encode())
                    version = None
                else:
                    message, has = sent.message(page, has), ""
                    if message:
                        await stream.write(b"data: " + message + b"\n\n")
                        silent_s = 0.0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STREAM_S):
                    await self._ending.wait()
            silent_s += _STREAM_S
            if silent_s >= _SILENCE_S:
                await stream.write(b": \n\n")
                silent_s = 0.0

    # -- signing in ------------------------------------------------------------------------------------------

    def _token(self, request: web.BaseRequest) -> str:
        """A front proxy sends the viewer's token in the header; a browser sends the number of its session."""
        header = request.headers.get("Authorization", "")
        if header[: len(_BEARER)].casefold() == _BEARER:
            token = header[len(_BEARER) :].strip()
            return token if _is_token(token) else ""
        return self._sessions.token(request.cookies.get(_COOKIE, ""))

    async def _sign_in(self, request: web.BaseRequest) -> web.StreamResponse:
        origin = request.headers.get("Origin", "")
        if origin and _split(origin).netloc != request.host:
            return _plain(403, "the form of another site cannot sign in here\n")
        token = str((await request.post()).get("token", "")).strip()
        if not _is_token(token):
            return self._form(401, "This is no token.")
        try:
            await self._site.check(token)
        except UnauthorizedError:
            return self._form(401, "The cluster rejects this token.")
        response = web.Response(status=303, headers={**_HEADERS, "Location": "/"})
        self._set_cookie(request, response, self._sessions.begin(token))
        return response

    def _sign_out(self, request: web.BaseRequest) -> web.Response:
        self._sessions.end(request.cookies.get(_COOKIE, ""))
        response = web.Response(status=303, headers={**_HEADERS, "Location": _SIGN_IN})
        self._set_cookie(request, response, "")
        return response

    def _set_cookie(self, request: web.BaseRequest, response: web.Response, number: str) -> None:
        is_secure = self._settings.certificate is not None or self._is_https_in_front(request)
        response.set_cookie(_COOKIE, number, path="/", httponly=True, samesite="Strict", secure=is_secure)

    def _is_https_in_front(self, request: web.BaseRequest) -> bool:
        """Whether a trusted proxy says that the browser speaks HTTPS with it."""
        try:
            peer = ip_address(request.remote or "")
        except ValueError:
            return False
        if not any(peer in network for network in self._settings.trusted_proxies):
            return False
        # The proxy that is nearest to the browser wrote the first.
        return request.headers.get("X-Forwarded-Proto", "").partition(",")[0].strip().casefold() == "https"

    def _signed_out(self, request: web.BaseRequest) -> web.Response:
        if "text/html" in request.headers.get("Accept", "") and request.method == "GET":
            return web.Response(status=303, headers={**_HEADERS, "Location": _SIGN_IN})
        what = "a token of an account of the cluster is needed, as Authorization: Bearer TOKEN\n"
        return _plain(401, what, {"WWW-Authenticate": "Bearer"})

    def _form(self, status: int, fault: str) -> web.Response:
        label = element("label", "Token", for_="token")
        field = element("input", id="token", name="token", type="password", required=True, autocomplete="off")
        form = element(
            "form", label, field, element("button", "Sign in", type="submit"), method="post", action=_SIGN_IN
        )
        words = "Sign in with a token of your account: kubectl create token NAME, or the token of your kubeconfig."
        note = element("p", fault, class_="fault", role="alert") if fault else None
        parts = {"sign-in": joined((element("h1", "Sign in"), element("p", words), note, form))}
        page = WebPage("Sign in", _SIGN_IN, parts, status=status)
        return _html(status, document(page, Frame(self._settings.title)))

    def _message(self, request: web.BaseRequest, status: int, title: str, words: str) -> web.Response:
        page = WebPage(title, request.path, {"message": joined((element("h1", title), element("p", words)))})
        return _html(status, document(page, self._frame))


def _site(runner: web.ServerRunner, settings: WebSettings) -> web.BaseSite:
    if settings.listening is not None:
        return web.SockSite(runner, settings.listening, ssl_context=settings.certificate)
    return web.TCPSite(runner, settings.host, settings.port, ssl_context=settings.certificate)


@cache
def _file(name: str) -> bytes:
    return (resources.files("shoal.web") / "static" / name).read_bytes()


def _static(name: str) -> web.Response:
    if name not in _STATIC:
        return _plain(404, "there is no such file\n")
    headers = {**_HEADERS, "Cache-Control": "no-cache"}
    return web.Response(body=_file(name), content_type=_STATIC[name], charset="utf-8", headers=headers)


def _html(status: int, text: str | Markup, request: web.BaseRequest | None = None) -> web.Response:
    body = text.encode()
    headers = dict(_HEADERS)
    if request is not None and len(body) > _COMPRESSED_BYTES and "gzip" in request.headers.get("Accept-Encoding", ""):
        # Level 1: a page of 1,000 nodes takes milliseconds.
        body, headers["Content-Encoding"] = gzip.compress(body, 1), "gzip"
    return web.Response(status=status, body=body, content_type="text/html", charset="utf-8", headers=headers)


def _csv(page: WebPage, key: str) -> web.Response:
    table = page.table(key)
    if table is None:
        return _plain(404, "this page has no such table\n")
    headers = {**_HEADERS, "Content-Disposition": f'attachment; filename="{table.key}.csv"'}
    return web.Response(text=csv_of(table), content_type="text/csv", charset="utf-8", headers=headers)


def _plain(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=text, content_type="text/plain", headers={**_HEADERS, **(headers or {})})


def _is_token(text: str) -> bool:
    """Whether it can be one: visible ASCII letters."""
    return 0 < len(text) <= _LONGEST_TOKEN and text.isascii() and text.isprintable() and " " not in text


def _host_name(request: web.BaseRequest) -> str:
    return _split(f"//{request.host}").hostname or ""


def _fields(query: str) -> dict[str, str]:
    try:
        found = parse_qsl(query, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise _MalformedError from None
    return {key: value for key, value in found if key not in _PARTS}


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        raise _MalformedError from None
