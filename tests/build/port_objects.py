"""Small objects, and what a watch says of them, for tests of the port to an API server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from shoal.client.item import Obj, WatchEvent
from shoal.client.kind import Kind
from shoal.client.port import EVERYTHING, Api, Select


def config(home: str, name: str, **data: str) -> Obj:
    return {"metadata": {"name": name, "namespace": home, "labels": {"app": name}}, "data": data}


def pod(home: str, name: str, **metadata: Any) -> Obj:
    return {
        "metadata": {"name": name, "namespace": home, **metadata},
        # Nobody schedules it: the test says where it goes.
        "spec": {"schedulerName": "nobody-schedules-this", "containers": [{"name": "c", "image": "x"}]},
    }


async def heard(
    api: Api, kind: Kind, since: int, home: str, number: int, select: Select = EVERYTHING
) -> list[WatchEvent]:
    """The first changes of a watch, bookmarks left out."""
    found: list[WatchEvent] = []
    async with asyncio.timeout(60), aclosing(api.watch(kind, since, home, select)) as batches:
        async for batch in batches:
            found += [change for change in batch if change.kind != "BOOKMARK"]
            if len(found) >= number:
                break
    return found


def told(changes: list[WatchEvent]) -> list[tuple[str, str]]:
    return [(change.kind, change.item.name if change.item else "") for change in changes]
