"""A control plane in the process of the test, without a socket: whole requests, whole answers, and its log lines."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from aiohttp import web
from aiohttp.http_parser import RawRequestMessage
from aiohttp.http_writer import HttpVersion11
from aiohttp.streams import StreamReader
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from shoal.embedded.apiserver.server.control_plane import ControlPlane, open_plane
from shoal.embedded.apiserver.server.receiving import LARGEST_BODY
from shoal.embedded.apiserver.settings import AuthorizationMode, Settings
from shoal.embedded.apiserver.storage.memory import MemoryStorage
from shoal.embedded.apiserver.storage.port import Storage

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Reply:
    def __init__(self, code: int, raw: bytes) -> None:
        self.code = code
        self.raw = raw

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    def is_sound(self) -> bool:
        """Done, or refused in Kubernetes' form; 500 only where Kubernetes gives it too, then without this reason."""
        if self.code < 400 or self.has_no_page():
            return True
        return bool(self.body["kind"] == "Status" and self.body["code"] == self.code and not self.is_a_bug())

    def has_no_page(self) -> bool:
        """Whether no part of the server has the path. Kubernetes then answers no Status."""
        return (self.code, self.raw) == (404, b"404 page not found\n")

    def is_a_bug(self) -> bool:
        return self.code == 500 and "has the story" in self.body["message"]


class Told(logging.Handler):
    """What the server logs; a traceback there is a bug whatever the client was told."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        fault = record.exc_info[1] if record.exc_info else None
        self.lines.append(f"{record.getMessage()} {fault!r}")


class _Connection:
    """As much of a connection as a request asks for."""

    transport = None
    ssl_context = None
    peername = None
    sockname = None
    _reading_paused = False

    def pause_reading(self) -> None: ...

    def resume_reading(self, **_: bool) -> None: ...


class InProcess:
    def __init__(self, plane: ControlPlane, told: Told) -> None:
        self.plane = plane
        self.told = told

    async def ask(
        self, method: str, path: str, body: Any = b"", media: str = JSON, headers: Mapping[str, str] | None = None
    ) -> Reply:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        loop = asyncio.get_running_loop()
        token = self.plane.authority.admin_token
        sent = {"Authorization": f"Bearer {token}", "Content-Type": media, "User-Agent": "test/1", **(headers or {})}
        if raw:
            sent["Content-Length"] = str(len(raw))
        shown = CIMultiDictProxy(CIMultiDict(sent))
        message = RawRequestMessage(
            method, path, HttpVersion11, shown, (), False, None, False, False, URL(path, encoded=True)
        )
        connection = cast(Any, _Connection())
        payload = StreamReader(connection, 2**16, loop=loop)
        payload.feed_data(raw)
        payload.feed_eof()
        nobody = cast(Any, None)
        request = web.BaseRequest(message, payload, connection, nobody, nobody, loop, client_max_size=LARGEST_BODY + 1)
        response = await self.plane.request_handler.handle(request)
        assert isinstance(response, web.Response)
        return Reply(response.status, bytes(cast(bytes, response.body or b"")))


@asynccontextmanager
async def in_process(
    folder: Path,
    storage: Storage | None = None,
    *,
    authorization: AuthorizationMode = "always-allow",
    accepts_machines: bool = False,
) -> AsyncIterator[InProcess]:
    """`accepts_machines`: its keys are in the folder, and machines may join."""
    told = Told()
    asyncio.get_running_loop().set_exception_handler(lambda _, what: told.lines.append(str(what)))
    logging.getLogger().addHandler(told)
    state = folder if accepts_machines else None
    settings = Settings(state, folder / "kubeconfig", is_host_chosen=accepts_machines, authorization=authorization)
    plane = await open_plane(settings, ("127.0.0.1", 1), storage or MemoryStorage())
    try:
        yield InProcess(plane, told)
    finally:
        await plane.close()
        logging.getLogger().removeHandler(told)
