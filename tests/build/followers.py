"""A client that lists, then watches, and keeps what it was told: as controllers do, and stricter than any of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import parse_qsl

from build.in_process import InProcess
from shoal.embedded.apiserver.calls import Actor, Call
from shoal.embedded.apiserver.rest.options import read_options
from shoal.embedded.apiserver.rest.watching import Stream

Obj = dict[str, Any]
_ADMIN = Actor("admin", ("system:masters", "system:authenticated"))


class Follower:
    """Of one plural in the namespace default, thinned by a query. Every line is held against the ones before it."""

    def __init__(self, api: InProcess, plural: str, query: str) -> None:
        self.api = api
        self.plural = plural
        self.query = query
        self.kept: dict[str, Obj] = {}
        self.seen = 0
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        listed = (await self.list())["metadata"]
        self.seen = int(listed["resourceVersion"])
        query = {**dict(parse_qsl(self.query)), "watch": "true", "resourceVersion": str(self.seen)}
        context = self.api.plane.context
        resource = context.catalog.find("", "v1", self.plural)
        assert resource is not None
        call = Call("watch", resource, _ADMIN, "default")
        stream = Stream(context, call, read_options(query), None, 60.0)
        self._task = asyncio.create_task(self._follow(stream))

    async def list(self) -> Obj:
        reply = await self.api.ask("GET", f"/api/v1/namespaces/default/{self.plural}?{self.query}")
        assert reply.code == 200
        found: Obj = reply.body
        if not self.seen:
            self.kept = {one["metadata"]["name"]: one for one in found["items"]}
        return found

    async def settled(self) -> tuple[dict[str, Obj], dict[str, Obj]]:
        """What was followed and what there is, once nothing is left to be told."""
        for _ in range(20):
            await asyncio.sleep(0)
        assert self._task is not None
        if self._task.done():
            self._task.result()
        self._task.cancel()
        there = {one["metadata"]["name"]: one for one in (await self.list())["items"]}
        return {name: _item(obj) for name, obj in self.kept.items()}, there

    async def _follow(self, stream: Stream) -> None:
        async for chunk in stream.lines():
            for line in chunk.splitlines():
                self._take(json.loads(line))

    def _take(self, event: Obj) -> None:
        obj, kind = event["object"], event["type"]
        name, revision = obj["metadata"]["name"], int(obj["metadata"]["resourceVersion"])
        assert revision > self.seen, f"{kind} {name} at {revision} after {self.seen}"
        self.seen = revision
        assert (name in self.kept) == (kind != "ADDED"), f"{kind} of {name}, kept: {sorted(self.kept)}"
        if kind == "DELETED":
            del self.kept[name]
        else:
            self.kept[name] = obj


def _item(obj: Obj) -> Obj:
    """As an object stands in a list of its kind."""
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
