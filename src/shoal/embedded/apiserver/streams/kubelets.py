"""Calls kubelets for the API server, with the client certificate that they expect, and returns their answers.

A kubelet's own certificate is not verified; Kubernetes does not verify it either unless a CA for kubelets is
configured. All simulated kubelets of a fleet listen at one address, so that requests name their node in a header, which
a real kubelet ignores. Errors have Kubernetes' messages, which differ between subresources.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from shoal.client.certificates import Pair
from shoal.embedded.apiserver.dynamic.bounded import TooLongError, read_bounded
from shoal.embedded.apiserver.dynamic.trust import new_blind_context
from shoal.embedded.apiserver.security.showing import show
from shoal.embedded.apiserver.status import ApiError, bad_request, internal
from shoal.embedded.apiserver.streams.channels import LARGEST_MESSAGE
from shoal.embedded.apiserver.streams.kubelet_address import Kubelet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CLIENT = "kube-apiserver-kubelet-client"
"""The user name of this server at kubelets; it has no rights on this server itself, since a Node may name any
port of this machine as its kubelet's, this server's too."""
NODE_HEADER = "Shoal-Node"
"""Which of the nodes behind one address is meant."""
_DIAL_S = 10.0
_LONGEST_REFUSAL = 50_000


class Kubelets:
    """Its connections are kept between requests, until `close`."""

    def __init__(self, shown: Pair) -> None:
        self._shown = shown
        self._tls: ssl.SSLContext | None = None
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def get(
        self, kubelet: Kubelet, path: str, query: Sequence[tuple[str, str]] | Mapping[str, str] = ()
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer of any code, to be read as it comes. Raises what `dial_words` can tell."""
        asked = self._open().get(
            url_of(kubelet, path, query),
            headers={NODE_HEADER: kubelet.node},
            ssl=self._context(),
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_DIAL_S),
        )
        async with asked as answer:
            yield answer

    async def converse(
        self, kubelet: Kubelet, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]
    ) -> aiohttp.ClientWebSocketResponse:
        """An open conversation. ApiError where the kubelet refuses or cannot be reached."""
        try:
            return await self._open().ws_connect(
                url_of(kubelet, path, query),
                protocols=protocols,
                headers={NODE_HEADER: kubelet.node},
                ssl=self._context(),
                max_msg_size=LARGEST_MESSAGE,
            )
        except aiohttp.WSServerHandshakeError:
            raise await self._why(kubelet, path, query) from None
        except (aiohttp.ClientError, OSError) as error:
            raise ApiError(500, "", f"error dialing backend: {dial_words(error, kubelet)}") from None

    async def _why(self, kubelet: Kubelet, path: str, query: Sequence[tuple[str, str]]) -> ApiError:
        """Asked without an upgrade the kubelet says what is wrong, which a failed handshake does not tell."""
        try:
            async with self.get(kubelet, path, query) as answer:
                return await refusal_in(answer, f"pods/{path.split('/')[1].lower()}", path)
        except (aiohttp.ClientError, OSError) as error:
            return ApiError(500, "", f"error dialing backend: {dial_words(error, kubelet)}")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            )
        return self._session

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = new_blind_context()
            show(self._tls, self._shown)
        return self._tls


def url_of(kubelet: Kubelet, path: str, query: Sequence[tuple[str, str]] | Mapping[str, str] = ()) -> URL:
    return URL(f"https://{kubelet.authority}").with_path(path).with_query(query)


async def refusal_in(answer: aiohttp.ClientResponse, resource: str, name: str) -> ApiError:
    """What a kubelet's refusal is to the client, as the API server retells it."""
    try:
        text = (await read_bounded(answer, _LONGEST_REFUSAL)).decode(errors="replace")
    except TooLongError:
        text = "unknown"
    if answer.status == 400:
        return bad_request(text)
    if answer.status == 404:
        words = f"the server could not find the requested resource ( {resource} {name})"
        cause = {"reason": "UnexpectedServerResponse", "message": text}
        return ApiError(404, "NotFound", words, details={"name": name, "kind": resource, "causes": [cause]})
    return internal(text if answer.status == 500 else f"the kubelet answered {answer.status}: {text}")


def dial_words(error: BaseException, kubelet: Kubelet) -> str:
    """Why a kubelet could not be asked, as Go says it."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"dial tcp {kubelet.authority}: i/o timeout"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return f"tls: {getattr(error.os_error, 'reason', None) or error.os_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        refused = isinstance(error.os_error, ConnectionRefusedError)
        why = "connection refused" if refused else str(error.os_error.strerror or error.os_error)
        return f"dial tcp {kubelet.authority}: connect: {why}"
    return "EOF"
