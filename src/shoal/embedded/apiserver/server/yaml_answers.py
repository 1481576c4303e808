"""Answers in YAML: lists item by item, so that others get their turn, and what is large in one piece beside the loop.

Dumping costs a hundred times what JSON does; ten thousand pods are some seconds. The text is the one that a single dump
would have made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from shoal.embedded.apiserver.large_work import LARGE_BYTES

Run = Callable[[Callable[[Any], Any], Any], Awaitable[Any]]
_LONG = ("items", "rows")
"""Fields that hold a list of whatever length."""


def as_yaml(data: bytes) -> bytes:
    """JSON as YAML, at once: for what is known to be small."""
    return _dumped(msgspec.json.decode(data))


async def as_yaml_slowly(data: bytes, run: Run) -> bytes:
    """The same for what may be large; `run` does work outside of the event loop."""
    obj: Any = await run(msgspec.json.decode, data) if len(data) > LARGE_BYTES else msgspec.json.decode(data)
    long = next((key for key in _LONG if isinstance(obj.get(key), list) and obj[key]), None)
    if long is None:
        return await run(_dumped, obj) if len(data) > LARGE_BYTES else _dumped(obj)
    parts: list[bytes] = []
    for key in sorted(obj):
        if key != long:
            parts.append(_dumped({key: obj[key]}))
            continue
        parts.append(f"{key}:\n".encode())
        # Large on the average: each may be as large as objects get.
        are_large = len(data) // len(obj[key]) > LARGE_BYTES
        for item in obj[key]:
            parts.append(await run(_dumped, [item]) if are_large else _dumped([item]))
            await asyncio.sleep(0)
    return b"".join(parts)


def _dumped(value: Any) -> bytes:
    # Imported here: few clients ask for YAML.
    from shoal.api.yaml_out import to_yaml

    return to_yaml(value, sort_keys=True).encode()
