"""Installs the CustomResourceDefinitions of other projects in an embedded cluster, if it has no others.

An existing definition is not changed, unless Shoal created it, no other client has written its spec since, and the
tables have changed. Rejected: comparing the specs. The server fills in what the tables leave out, and a definition that
a user applied over ours keeps our label.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from shoal.client.kind import DEFINITIONS
from shoal.client.port import Api
from shoal.client.refusals import AlreadyExistsError, RefusedError
from shoal.client.served import answering
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.apiserver.foreign.provided import SHAPE, is_untouched

if TYPE_CHECKING:
    from shoal.client.item import Item, Obj

_log = logging.getLogger("shoal")
_AT_ONCE = 4
_ATTEMPTS, _PAUSE_S = 100, 0.02


async def provide_foreign(api: Api) -> None:
    """All definitions are served when this returns: controllers that start next read the served kinds once, and not
    again for half a minute."""
    present = {item.name: item for item in (await api.list(DEFINITIONS)).items}
    wanted, made = definitions(), set[tuple[str, str]]()
    await asyncio.gather(*(_worker(api, wanted, present, made) for _ in range(_AT_ONCE)))
    for _ in range(_ATTEMPTS):
        if made <= {(one.kind.group, one.kind.plural) for one in await answering(api)}:
            return
        await asyncio.sleep(_PAUSE_S)


async def _worker(api: Api, wanted: Iterator[Obj], present: dict[str, Item], made: set[tuple[str, str]]) -> None:
    for definition in wanted:
        shape = hashlib.blake2b(msgspec.json.encode(definition), digest_size=8).hexdigest()
        definition["metadata"].setdefault("annotations", {})[SHAPE] = shape
        name = definition["metadata"]["name"]
        try:
            await _put(api, definition, present.get(name), shape)
        except RefusedError as error:
            _log.warning("the definition of %s could not be provided: %s", name, error)
            continue
        if name not in present:
            made.add((definition["spec"]["group"], definition["spec"]["names"]["plural"]))
        await asyncio.sleep(0)


async def _put(api: Api, definition: Obj, before: Item | None, shape: str) -> None:
    if before is None:
        try:
            await api.create(DEFINITIONS, definition)
        except AlreadyExistsError:
            return
        return
    obj = before.obj()
    annotations = obj["metadata"].get("annotations") or {}
    if annotations.get(SHAPE, shape) != shape and is_untouched(obj):
        obj["spec"] = definition["spec"]
        obj["metadata"]["labels"] |= definition["metadata"]["labels"]
        obj["metadata"]["annotations"] |= definition["metadata"]["annotations"]
        await api.update(DEFINITIONS, obj)
