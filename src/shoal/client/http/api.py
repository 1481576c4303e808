"""Implements the client protocols (`client/port.py`, `client/scaling.py`) over HTTP: for any Kubernetes API server, the
embedded one included.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping

import msgspec

from shoal.client.http.access import Access
from shoal.client.http.connection import Connection
from shoal.client.http.connection_pool import always
from shoal.client.http.discovery import DiscoveryClient
from shoal.client.http.pages import Lines, changes_of, items_of, left_of, object_of, opened
from shoal.client.http.settings import KubeSettings
from shoal.client.http.slim import slim_item_of, whole_item_of
from shoal.client.item import Item, Listed, Obj, shortened
from shoal.client.kind import Kind
from shoal.client.port import EVERYTHING, GENTLY, Batches, Deletion, Patch, Select, ServedKind
from shoal.client.refusals import BusyError, ExpiredError
from shoal.client.scaling import SCALE

_MEDIA = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_FULL, _TRIES_WHEN_FULL = 429, 9


class KubeApi:
    """The requests of one user to one server; must be closed with `close`. `draw` chooses the duration of each watch.
    `may_write` is called right before each write is sent; if it returns False, LeaseEndedError is raised.
    """

    def __init__(
        self,
        access: Access,
        draw: random.Random,
        settings: KubeSettings | None = None,
        may_write: Callable[[], bool] = always,
    ) -> None:
        self._settings = settings or KubeSettings()
        self._draw = draw
        self._connection = Connection(access, self._settings, may_write)
        self._discovery = DiscoveryClient(self._connection)
        self._take = whole_item_of if self._settings.keeps_managed_fields else slim_item_of
        self._signed = {"fieldManager": self._settings.manager}
        if self._settings.is_dry_run:
            self._signed["dryRun"] = "All"

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        return object_of(await self._connection.ask("GET", kind.path(namespace, name)), self._take)

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        try:
            return await self._pages(kind, namespace, {**_query(select), "limit": str(self._settings.page)})
        except ExpiredError:
            # The continue token expired before the last page was read: a single answer has none.
            return await self._pages(kind, namespace, _query(select))

    async def _pages(self, kind: Kind, namespace: str, query: dict[str, str]) -> Listed:
        """The server prepares the next page while one is decoded."""
        items: list[Item] = []
        kept = self._settings.kept.get(kind)
        asking = asyncio.ensure_future(self._page(kind.path(namespace), query))
        try:
            while True:
                page = opened(await asking)
                if page.go_on:
                    asking = asyncio.ensure_future(self._page(kind.path(namespace), {**query, "continue": page.go_on}))
                found = await items_of(kind, page, self._take)
                items += found if kept is None else [shortened(one, kept) for one in found]
                if not page.go_on:
                    return Listed(items, page.version)
        finally:
            asking.cancel()

    async def _page(self, path: str, query: dict[str, str]) -> bytes:
        """The pages that were already read must not be lost when the server is overloaded for a moment."""
        for _ in range(_TRIES_WHEN_FULL):
            try:
                return await self._connection.ask("GET", path, query)
            except BusyError as error:
                if error.code != _FULL:
                    raise
        return await self._connection.ask("GET", path, query)

    async def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        lasts_s = self._draw.randint(*self._settings.watch_s)
        query = _query(select) | {
            "watch": "true",
            "resourceVersion": str(since),
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(lasts_s),
        }
        lines = Lines()
        async with self._connection.stream(kind.path(namespace), query, lasts_s) as pieces:
            async for piece in pieces:
                changes, broken = changes_of(lines.take(piece), self._take)
                if changes:
                    yield changes
                if broken is not None:
                    raise broken

    async def create(self, kind: Kind, obj: Obj) -> Item:
        path = kind.path(obj.get("metadata", {}).get("namespace", ""))
        return object_of(await self._connection.ask("POST", path, self._signed, _typed(kind, obj)), self._take)

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        path = kind.path(obj["metadata"].get("namespace", ""), obj["metadata"]["name"], subresource)
        return object_of(await self._connection.ask("PUT", path, self._signed, _typed(kind, obj)), self._take)

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        body, query = patch.body, self._signed
        if patch.how == "apply":
            body = _typed(kind, dict(body))
            query = {**query, "force": "true"} if patch.force else query
        path = kind.path(namespace, name, subresource)
        return object_of(await self._connection.ask("PATCH", path, query, body, media=_MEDIA[patch.how]), self._take)

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        options = {**how.to_api(), "dryRun": ["All"]} if self._settings.is_dry_run else how.to_api()
        body = await self._connection.ask("DELETE", kind.path(namespace, name), body=options)
        return left_of(body, self._take, at_once=how.grace_s == 0)

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        metadata = {**(obj.get("metadata") or {}), "name": name} | ({"namespace": namespace} if namespace else {})
        body = await self._connection.ask(
            "POST", kind.path(namespace, name, subresource), self._signed, {**obj, "metadata": metadata}
        )
        return _answer_of(body)

    async def scale(self, kind: Kind, namespace: str, name: str) -> Obj:
        return await self.ask(kind.path(namespace, name, SCALE), {})

    async def rescale(self, kind: Kind, scale: Obj) -> None:
        meta = scale["metadata"]
        path = kind.path(meta.get("namespace", ""), meta["name"], SCALE)
        await self._connection.ask("PUT", path, self._signed, scale)

    async def ask(self, path: str, query: Mapping[str, str]) -> Obj:
        return _answer_of(await self._connection.ask("GET", path, dict(query)))

    async def served(self) -> tuple[ServedKind, ...]:
        return await self._discovery.served()

    def look_again(self) -> None:
        """Check for renewed credentials before the next request."""
        self._connection.look_again()

    async def close(self) -> None:
        await self._connection.close()


def _answer_of(body: bytes) -> Obj:
    try:
        answer: Obj = msgspec.json.decode(body, type=dict)
    except msgspec.MsgspecError as error:
        raise BusyError(f"an answer of the server cannot be understood: {error}", code=502) from None
    return answer


def _typed(kind: Kind, obj: Obj) -> Obj:
    return {**obj, "kind": obj.get("kind") or kind.name, "apiVersion": obj.get("apiVersion") or kind.api_version}


def _query(select: Select) -> dict[str, str]:
    query = {"labelSelector": select.labels, "fieldSelector": select.fields}
    return {name: text for name, text in query.items() if text}
