"""Sends one request to one API server and returns the whole answer: status code, Warning headers and body."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yarl

from shoal.client.http.kubeconfig import read_kubeconfig
from shoal.client.http.tls import client_context

MEDIA = {
    "json": "application/json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "patch": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_TIMEOUT_S = 60.0


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    """With its query."""
    body: Any = None
    """A value that is sent as JSON, or text that is sent as it is."""
    media: str = ""
    """A key of MEDIA or a media type; empty for JSON where there is a body."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class Answer(msgspec.Struct, frozen=True):
    code: int
    warnings: list[str]
    body: Any
    """Decoded JSON, or text."""


class Server:
    """One API server, as the user of a kubeconfig."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    @classmethod
    @asynccontextmanager
    async def open(cls, kubeconfig: Path) -> AsyncIterator[Server]:
        access = read_kubeconfig([kubeconfig])
        headers = {"User-Agent": "differences/1"}
        if access.token:
            headers["Authorization"] = f"Bearer {access.token}"
        connector = aiohttp.TCPConnector(ssl=client_context(access))
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as session:
            yield cls(session, access.server)

    async def send(self, request: Request) -> Answer:
        data = request.body if request.body is None or isinstance(request.body, str) else json.dumps(request.body)
        headers = {"Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = MEDIA.get(request.media or "json", request.media)
        url = yarl.URL(self._url + request.path, encoded=True)
        asked = self._session.request(request.method, url, data=data, headers=headers | request.headers)
        async with asked as response:
            raw = (await response.read()).decode(errors="replace")
            return Answer(response.status, response.headers.getall("Warning", []), _decoded(raw))


async def send_both(left: Server, right: Server, request: Request) -> tuple[Answer, Answer]:
    first, second = await asyncio.gather(left.send(request), right.send(request))
    return first, second


def _decoded(raw: str) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw
