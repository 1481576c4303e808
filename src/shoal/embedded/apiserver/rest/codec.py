"""Between what is stored and what a version of the API shows.

Objects are stored as JSON in one version, kind and apiVersion first. For that version reading is handing out bytes;
other versions are decoded and converted. Lists of built-in kinds show their items without kind and apiVersion, as
Kubernetes' typed lists do: the fixed beginning is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.crds.pruning import conform_custom
from shoal.embedded.apiserver.kinds.conversion import convert_builtin
from shoal.embedded.apiserver.large_work import LARGE_BYTES
from shoal.embedded.apiserver.resource import Obj, Resource
from shoal.embedded.apiserver.rest.stage import Stage, computed
from shoal.embedded.apiserver.state.record import Record
from shoal.embedded.apiserver.status import too_large
from shoal.units.errors import UserError

LARGEST_OBJECT = 3 * 1024 * 1024
"""Bytes of one stored object. etcd refuses requests of more than 2 MiB, in an encoding that is shorter than JSON."""
_DECODED_AT_ONCE = 1 << 18
"""Bytes that are decoded before others get their turn."""
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def is_stored_version(resource: Resource) -> bool:
    home = resource.home
    return resource.version == resource.storage_version and home == (resource.group, resource.plural)


def is_ready(stage: Stage, record: Record, resource: Resource) -> bool:
    """Whether the bytes of a record are what this version shows.

    Of a custom resource they are not if they were written before its definition last changed: then they may hold fields
    that are gone and lack defaults that are new. What was on its way at that time may be in another version even
    though it was stored later, so that the bytes are believed and not the revision alone.
    """
    if not is_stored_version(resource):
        return False
    if not resource.is_custom:
        return True
    return record.revision > stage.catalog.settled(resource.home) and record.data.startswith(prefix_of(resource))


async def shown(stage: Stage, record: Record, resource: Resource) -> Obj:
    """The object of a record in the version of a resource; the caller's own."""
    obj: Obj = _decode(record.data)
    if is_ready(stage, record, resource):
        return obj
    return (await _converted(stage, [obj], resource, resource.api_version))[0]


async def all_shown(stage: Stage, records: Sequence[Record], resource: Resource) -> list[Obj]:
    objs: list[Obj] = []
    size = 0
    for record in records:
        objs.append(_decode(record.data))
        size += len(record.data)
        if size > _DECODED_AT_ONCE:
            size = 0
            await asyncio.sleep(0)
    late = [index for index, record in enumerate(records) if not is_ready(stage, record, resource)]
    if not late:
        return objs
    for index, obj in zip(
        late, await _converted(stage, [objs[one] for one in late], resource, resource.api_version), strict=True
    ):
        objs[index] = obj
    return objs


async def line(stage: Stage, record: Record, resource: Resource) -> bytes:
    """The bytes of one object in the version of a resource."""
    if is_ready(stage, record, resource):
        return record.data
    return _encode(await shown(stage, record, resource))


async def to_stored(stage: Stage, obj: Obj, resource: Resource) -> Obj:
    """The object as it is kept: in the storage version, kind and apiVersion first."""
    if is_stored_version(resource):
        kept = obj
    else:
        stored = stage.catalog.stored(resource.home) or resource
        kept = (await _converted(stage, [obj], resource, stored.api_version))[0]
    return ordered(kept)


async def checked(stage: Stage, call: Call, obj: Obj) -> Obj:
    """`to_stored`, refused if it is too large to be stored."""
    kept = await to_stored(stage, obj, call.resource)
    if call.size >= LARGE_BYTES and len(await computed(stage, call, _encode, kept)) > LARGEST_OBJECT:
        raise too_large(LARGEST_OBJECT)
    return kept


def as_read_back(stage: Stage, obj: Obj, resource: Resource) -> Obj:
    """What was written, in the words in which it will be read: what the stored version has other words for is said in
    those, so that writing it again changes nothing. Only where the server converts by itself; the caller's own."""
    stored = stage.catalog.stored(resource.home)
    if resource.converter is None or stored is None or stored.api_version == resource.api_version:
        return obj
    try:
        return resource.converter(resource.converter(obj, stored.api_version), resource.api_version)
    except UserError:
        # It is about to be refused, in better words.
        return obj


def as_defined(stage: Stage, kept: Obj, resource: Resource) -> Obj:
    """What is about to be stored, by the definition as it is now: it may have changed since the request was read.

    In place, and without waiting for anybody, so that it holds at the commit. What is in another version than the new
    definition stores stays so: readers see that by its bytes.
    """
    if not resource.is_custom:
        return kept
    present = stage.catalog.stored(resource.home)
    if present is None or present.api_version != kept["apiVersion"] or _is_served(stage, resource):
        return kept
    conform_custom(kept, present.schema)
    present.strategy.default(kept)
    return kept


def _is_served(stage: Stage, resource: Resource) -> bool:
    return stage.catalog.find(resource.group, resource.version, resource.plural) is resource


def ordered(obj: Obj) -> Obj:
    front: dict[str, Any] = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": obj["metadata"]}
    return front | obj


def prefix_of(resource: Resource) -> bytes:
    """How the bytes of each stored object of a resource begin."""
    return f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()


def item_parts(data: bytes, prefix: bytes) -> tuple[bytes, bytes | memoryview]:
    """An object as an item of a typed list, in two parts so that nothing is copied."""
    return (b"{", memoryview(data)[len(prefix) :]) if data.startswith(prefix) else (b"", data)


async def _converted(stage: Stage, objs: list[Obj], resource: Resource, to: str) -> list[Obj]:
    if not resource.is_custom:
        return [convert_builtin(obj, to) for obj in objs]
    is_reading = to == resource.api_version
    if is_reading:
        for obj in objs:
            _default_as_stored(stage, obj, resource)
    converted = await stage.convert(objs, to, resource)
    if is_reading:
        for obj in converted:
            conform_custom(obj, resource.schema)
            if resource.converter is not None:
                # Of provided kinds: what a version fills in, it shows of objects of the other version too.
                resource.strategy.default(obj)
    return converted


def _default_as_stored(stage: Stage, obj: Obj, resource: Resource) -> None:
    """The version that the object is stored in drops what it does not know and fills in defaults; in place."""
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    written = stage.catalog.find(group, version, resource.plural)
    stored = stage.catalog.stored(resource.home)
    if stored is not None and stored.api_version == obj.get("apiVersion"):
        written = stored
    if written is not None:
        conform_custom(obj, written.schema)
        written.strategy.default(obj)
