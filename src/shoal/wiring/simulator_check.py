"""Checks whether another process simulates a node: two fleets for one node would run each of its pods twice.

A fleet says on its nodes where its doors are. Where something answers there, the node has its fleet; a fleet that was
killed answers no more, and another may take its nodes over at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from shoal.client.kind import NODES
from shoal.client.port import Api
from shoal.embedded.apiserver.dynamic.endpoints import ANNOTATION as ENDPOINT
from shoal.units.errors import UserError

_PATIENCE_S = 2.0


class _Metadata(msgspec.Struct):
    annotations: Mapping[str, str] = {}


class _Node(msgspec.Struct):
    metadata: _Metadata


async def check_untended(api: Api, names: Iterable[str]) -> None:
    """Raises UserError if another process simulates one of these nodes."""
    wanted = set(names)
    doors: dict[str, list[str]] = {}
    for item in (await api.list(NODES)).items:
        url = item.read(_Node).metadata.annotations.get(ENDPOINT, "") if item.name in wanted else ""
        if url:
            doors.setdefault(url, []).append(item.name)
    for url, nodes in doors.items():
        if await _answers(url):
            raise UserError(_words(nodes, url), fix="give the new ones other names: --nodes '2xp5.48xlarge[name=more]'")


def _words(nodes: Sequence[str], url: str) -> str:
    others = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    return f"node {min(nodes)}{others} is simulated by another process already, at {url}"


async def _answers(url: str) -> bool:
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            _, writer = await asyncio.open_connection(parts.hostname or "", parts.port or 443)
    except (OSError, TimeoutError, ValueError):
        return False
    writer.close()
    return True
