"""Checks whether another process simulates a node: two fleets for one node would run each of its pods twice.

A fleet annotates its nodes with the URL of its endpoint. If a process answers there, the fleet runs; a fleet that was
killed does not answer, and another may take over its nodes at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from shoal.api.partial import LabeledMeta, MetadataOf
from shoal.client.kind import NODES
from shoal.client.port import Api
from shoal.embedded.apiserver.dynamic.endpoints import ANNOTATION as ENDPOINT
from shoal.units.errors import UserError

_PATIENCE_S = 2.0


async def check_not_simulated(api: Api, names: Iterable[str]) -> None:
    """Raises UserError if another process simulates one of these nodes."""
    wanted = set(names)
    urls: dict[str, list[str]] = {}
    for item in (await api.list(NODES)).items:
        url = item.read(MetadataOf[LabeledMeta]).metadata.annotations.get(ENDPOINT, "") if item.name in wanted else ""
        if url:
            urls.setdefault(url, []).append(item.name)
    for url, nodes in urls.items():
        if await _answers(url):
            raise UserError(
                _in_use_text(nodes, url), fix="give the new ones other names: --nodes '2xp5.48xlarge[name=more]'"
            )


def _in_use_text(nodes: Sequence[str], url: str) -> str:
    others = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    return f"node {min(nodes)}{others} is already simulated by another process, at {url}"


async def _answers(url: str) -> bool:
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            _, writer = await asyncio.open_connection(parts.hostname or "", parts.port or 443)
    except (OSError, TimeoutError, ValueError):
        return False
    writer.close()
    return True
