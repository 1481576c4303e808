"""A plain client of the Kubernetes API for tests: says just what goes over the wire and shows just what comes back.

Full clients hide what is tested here: content types, query parameters, raw watch lines, refusals.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from yarl import URL

Obj = dict[str, Any]
PATIENCE_S = 60.0
"""How long a test waits for what must come, on a machine with much else to do. Waiting ends with the event."""

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
_OUTCOME = 3
"""The channel on which a stream says how it ended."""


class Answer:
    """What came back: the code, the headers and the body, decoded if it is JSON."""

    def __init__(self, code: int, headers: Mapping[str, str], warnings: list[str], raw: bytes) -> None:
        self.code = code
        self.headers = headers
        self.warnings = warnings
        self.raw = raw

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    def ok(self, code: int | None = None) -> Obj:
        """The object of an answer that must not be a refusal."""
        assert self.code < 300 if code is None else self.code == code, f"{self.code}: {self.raw[:2000].decode()}"
        found: Obj = self.body
        return found

    def refused(self, code: int, reason: str = "") -> str:
        """The message of an answer that must be a refusal of this kind."""
        assert self.code == code, f"{self.code}: {self.raw[:2000].decode()}"
        status = self.body
        assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", code)
        if reason:
            assert status.get("reason") == reason, status
        message: str = status.get("message", "")
        return message

    def has_no_page(self) -> bool:
        """Whether no part of the server has the path. Kubernetes then answers no Status."""
        return (self.code, self.raw) == (404, b"404 page not found\n")


class WatchLines:
    """The events of an open watch, one at a time."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> Obj:
        async with asyncio.timeout(PATIENCE_S):
            line = await self._response.content.readline()
        assert line, "the watch ended"
        event: Obj = json.loads(line)
        return event

    async def next_of(self, *kinds: str) -> Obj:
        """The next event of these types; others (bookmarks) are passed over."""
        while True:
            event = await self.next()
            if event["type"] in kinds:
                return event

    async def take(self, number: int) -> list[Obj]:
        return [await self.next_of("ADDED", "MODIFIED", "DELETED") for _ in range(number)]

    async def is_at_end(self) -> bool:
        async with asyncio.timeout(PATIENCE_S):
            return not await self._response.content.readline()


class Api:
    """One user's view of one cluster; `namespace` is the test's own."""

    def __init__(self, session: aiohttp.ClientSession, url: str, namespace: str) -> None:
        self._session = session
        self._url = url
        self.namespace = namespace

    @classmethod
    @asynccontextmanager
    async def open(cls, kubeconfig: Path, *, token: str | None = None, anonymous: bool = False) -> AsyncIterator[Api]:
        """As the kubeconfig's user; with a token as its bearer; or as nobody."""
        url, tls, headers = credentials(kubeconfig, with_user=token is None and not anonymous)
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        headers["User-Agent"] = "shoal-test/1"
        # Watches hold their connections, so that connections must not be counted.
        connector = aiohttp.TCPConnector(ssl=tls, limit=0)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=PATIENCE_S)
        async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as session:
            yield cls(session, url, f"t-{uuid.uuid4().hex[:10]}")

    # -- the namespace of a test ---------------------------------------------------------------------------------------

    async def make_namespace(self, labels: Mapping[str, str] | None = None) -> None:
        metadata = {"name": self.namespace, "labels": dict(labels or {})}
        (await self.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).ok(201)

    async def remove_namespace(self) -> None:
        await self.delete(f"/api/v1/namespaces/{self.namespace}")

    def core(self, plural: str, *rest: str) -> str:
        """The path of a core resource in the test's namespace: `api.core("pods", "p", "status")`."""
        return "/".join((f"/api/v1/namespaces/{self.namespace}/{plural}", *rest))

    def group(self, group_version: str, plural: str, *rest: str) -> str:
        """`api.group("apps/v1", "deployments", "web")`."""
        return "/".join((f"/apis/{group_version}/namespaces/{self.namespace}/{plural}", *rest))

    # -- requests ------------------------------------------------------------------------------------------------------

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str = "application/json",
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Answer:
        """`body` is an object, or bytes that are sent as they are; `query` has the parameters under their own names."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {
            "Accept": "application/json",
            **({"Content-Type": media} if data is not None else {}),
            **(headers or {}),
        }
        asked = self._session.request(method, self._url + path, data=data, headers=sent, params=_texts(query))
        async with asyncio.timeout(PATIENCE_S):
            async with asked as response:
                raw = await response.read()
                return Answer(response.status, response.headers, response.headers.getall("Warning", []), raw)

    async def get(self, path: str, **query: Any) -> Answer:
        return await self.ask("GET", path, **query)

    async def post(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.ask("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.ask("PUT", path, body, **query)

    async def patch(self, path: str, body: Any, media: str = MERGE, **query: Any) -> Answer:
        return await self.ask("PATCH", path, body, media=media, **query)

    async def apply(self, path: str, body: Any, manager: str, **query: Any) -> Answer:
        return await self.ask("PATCH", path, body, media=APPLY, fieldManager=manager, **query)

    async def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return await self.ask("DELETE", path, body, **query)

    @asynccontextmanager
    async def watch(
        self, path: str, *, headers: Mapping[str, str] | None = None, **query: Any
    ) -> AsyncIterator[WatchLines]:
        sent = {"Accept": "application/json", **(headers or {})}
        params = {"watch": "true", **_texts(query)}
        async with self._session.get(self._url + path, headers=sent, params=params, read_bufsize=1 << 22) as response:
            assert response.status == 200, f"{response.status}: {await response.text()}"
            yield WatchLines(response)

    @asynccontextmanager
    async def lines(self, path: str, **query: Any) -> AsyncIterator[aiohttp.StreamReader]:
        """Text that goes on coming, such as a log that is followed."""
        async with self._session.get(self._url + path, params=_texts(query)) as response:
            assert response.status == 200, f"{response.status}: {await response.text()}"
            yield response.content

    async def run(self, path: str, *command: str, container: str = "") -> tuple[str, Obj]:
        """What a command in a pod says, by `exec` over WebSocket, and its outcome as a Status."""
        query = [*(("command", word) for word in command), ("stdout", "true"), ("stderr", "true")]
        query += [("container", container)] if container else []
        url, said, outcome = URL(self._url + path).with_query(query), b"", Obj()
        async with self._session.ws_connect(url, protocols=("v5.channel.k8s.io",)) as socket:
            async for frame in socket:
                if frame.data[0] == _OUTCOME:
                    outcome = json.loads(frame.data[1:])
                else:
                    said += frame.data[1:]
        return said.decode(), outcome


def _texts(query: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}


def credentials(kubeconfig: Path, *, with_user: bool) -> tuple[str, ssl.SSLContext, dict[str, str]]:
    """URL, TLS context and headers. Tests by the hundred ask with one kubeconfig; each reading costs 3 ms."""
    url, tls, headers = _credentials(kubeconfig, kubeconfig.read_text(), with_user)
    return url, tls, dict(headers)


@cache
def _credentials(kubeconfig: Path, text: str, with_user: bool) -> tuple[str, ssl.SSLContext, dict[str, str]]:
    config = yaml.safe_load(text)
    context = _named(config, "contexts", config["current-context"])["context"]
    cluster = _named(config, "clusters", context["cluster"])["cluster"]
    user = _named(config, "users", context["user"])["user"]
    authority = _content(cluster, "certificate-authority", kubeconfig)
    tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
    headers: dict[str, str] = {}
    if with_user and "token" in user:
        headers["Authorization"] = f"Bearer {user['token']}"
    elif with_user:
        with tempfile.TemporaryDirectory() as folder:
            pair = Path(folder) / "pair.pem"
            certificate, key = (
                _content(user, "client-certificate", kubeconfig),
                _content(user, "client-key", kubeconfig),
            )
            pair.write_bytes(certificate + b"\n" + key)
            tls.load_cert_chain(pair)
    return cluster["server"].rstrip("/"), tls, headers


def _named(config: Obj, plural: str, name: str) -> Obj:
    found: Obj = next(one for one in config[plural] if one["name"] == name)
    return found


def _content(holder: Obj, key: str, kubeconfig: Path) -> bytes:
    if f"{key}-data" in holder:
        return base64.b64decode(holder[f"{key}-data"])
    return (kubeconfig.parent / holder[key]).read_bytes() if key in holder else b""
