"""Reads from aggregated API servers for callers inside the process, in the name of their user."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import aiohttp
import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.aggregated.following import FollowedServices
from shoal.embedded.apiserver.aggregated.server import Servers
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.dynamic.bounded import TooLongError
from shoal.embedded.apiserver.dynamic.endpoints import UnresolvedError
from shoal.embedded.apiserver.dynamic.trust import BundleError
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.resource import Obj

_NO_ANSWER = (
    TimeoutError,
    aiohttp.ClientError,
    OSError,
    UnresolvedError,
    BundleError,
    TooLongError,
)


class AggregatedReader:
    def __init__(self, services: FollowedServices, servers: Servers) -> None:
        self._services = services
        self._servers = servers

    async def get(self, actor: Actor, asked: RequestInfo, query: Mapping[str, str]) -> Obj:
        """The caller has authorized the request. Raises ApiError."""
        found = self._services.server(asked.group, asked.version)
        if found is None:
            raise status.ApiError(
                404, "NotFound", f"the server could not find the requested resource ({_words(asked)})"
            )
        server, is_available = found
        unable = f"the server is currently unable to handle the request ({_words(asked)})"
        if not is_available:
            raise status.ApiError(503, "ServiceUnavailable", unable)
        path = f"{asked.path}?{urlencode(query)}" if query else asked.path
        try:
            code, raw = await self._servers.get(server, path, actor)
        except _NO_ANSWER:
            raise status.ApiError(503, "ServiceUnavailable", unable) from None
        try:
            answer: Obj = msgspec.json.decode(raw, type=dict)
        except msgspec.DecodeError as error:
            if code < 300:
                raise status.ApiError(502, "", f"the answer cannot be understood: {error} ({_words(asked)})") from None
            answer = {}
        if not 200 <= code < 300:
            words = answer.get("message") or f"the server responded with the status code {code} ({_words(asked)})"
            raise status.ApiError(code, str(answer.get("reason") or ""), str(words))
        return answer


def _words(asked: RequestInfo) -> str:
    return f"get {asked.resource}.{asked.group}"
