"""Between what is stored and what a version of the API shows.

Objects are stored as JSON in one version, kind and apiVersion first. For that version reading is handing out bytes;
other versions are decoded and converted. Lists of built-in kinds show their items without kind and apiVersion, as
Kubernetes' typed lists do: the fixed beginning is cut off.

Conversion costs far more than decoding: unknown fields are dropped and defaults filled in, in both versions. So what is
large, one object or all objects of a list together, is converted in the worker thread, in batches of bounded size, so
that users take turns and the event loop goes on. A webhook is asked once for each batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

import msgspec

from shoal.embedded.apiserver.builtin_conversion import convert_builtin
from shoal.embedded.apiserver.calls import Call
from shoal.embedded.apiserver.crds.conversion import converted_here
from shoal.embedded.apiserver.crds.pruning import conform_custom
from shoal.embedded.apiserver.large_work import LARGE_BYTES
from shoal.embedded.apiserver.resource import Obj, Resource
from shoal.embedded.apiserver.rest.context import ServerContext, computed, turn_of
from shoal.embedded.apiserver.state.record import Record
from shoal.embedded.apiserver.status import too_large
from shoal.units.errors import UserError

P = ParamSpec("P")
R = TypeVar("R")
_Finished = TypeVar("_Finished")
LARGEST_OBJECT = 3 * 1024 * 1024
"""Bytes of one stored object. etcd refuses requests of more than 2 MiB, in an encoding that is shorter than JSON."""
_DECODED_AT_ONCE = 1 << 18
"""Bytes that are decoded before others get their turn, and of one batch that is converted."""
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def is_stored_version(resource: Resource) -> bool:
    home = resource.home
    return resource.version == resource.storage_version and home == (resource.group, resource.plural)


def is_ready(context: ServerContext, record: Record, resource: Resource) -> bool:
    """Whether the bytes of a record are what this version shows.

    Of a custom resource they are not if they were written before its definition last changed: then they may hold fields
    that are gone and lack defaults that are new. What was on its way at that time may be in another version even
    though it was stored later, so that the bytes are believed and not the revision alone.
    """
    if not is_stored_version(resource):
        return False
    if not resource.is_custom:
        return True
    return record.revision > context.catalog.settled(resource.home) and record.data.startswith(prefix_of(resource))


async def shown(context: ServerContext, call: Call, record: Record) -> Obj:
    """The object of a record in the version of the call's resource; the caller's own."""
    if is_ready(context, record, call.resource):
        obj: Obj = _decode(record.data)
        return obj
    return (await _all_converted(context, call, [record], _as_it_is))[0]


async def all_shown(context: ServerContext, call: Call, records: Sequence[Record]) -> list[Obj]:
    objs: list[Obj] = []
    late: list[int] = []
    size = 0
    for index, record in enumerate(records):
        if not is_ready(context, record, call.resource):
            late.append(index)
            objs.append({})
            continue
        objs.append(_decode(record.data))
        size += len(record.data)
        if size > _DECODED_AT_ONCE:
            size = 0
            await asyncio.sleep(0)
    converted = await _all_converted(context, call, [records[index] for index in late], _as_it_is)
    for index, obj in zip(late, converted, strict=True):
        objs[index] = obj
    return objs


async def line(context: ServerContext, call: Call, record: Record) -> bytes:
    """The bytes of one object in the version of the call's resource."""
    if is_ready(context, record, call.resource):
        return record.data
    return (await _all_converted(context, call, [record], _encode))[0]


async def lines(context: ServerContext, call: Call, records: Sequence[Record]) -> list[bytes]:
    """The bytes of each object in the version of the call's resource."""
    late = [index for index, record in enumerate(records) if not is_ready(context, record, call.resource)]
    found = [record.data for record in records]
    converted = await _all_converted(context, call, [records[index] for index in late], _encode)
    for index, data in zip(late, converted, strict=True):
        found[index] = data
    return found


async def to_stored(context: ServerContext, obj: Obj, resource: Resource) -> Obj:
    """The object as it is kept: in the storage version, kind and apiVersion first."""
    if is_stored_version(resource):
        kept = obj
    else:
        kept = await _in_stored_version(context, obj, resource)
    return ordered(kept)


async def checked(context: ServerContext, call: Call, obj: Obj) -> Obj:
    """`to_stored`, refused if it is too large to be stored."""
    if call.size >= LARGE_BYTES and converts_here(call.resource) and not is_stored_version(call.resource):
        stored = context.catalog.stored(call.resource.home) or call.resource
        kept = ordered((await computed(context, call, _converted_here, [obj], call.resource, stored.api_version))[0])
    else:
        kept = await to_stored(context, obj, call.resource)
    if call.size >= LARGE_BYTES and len(await computed(context, call, _encode, kept)) > LARGEST_OBJECT:
        raise too_large(LARGEST_OBJECT)
    return kept


def as_read_back(context: ServerContext, obj: Obj, resource: Resource) -> Obj:
    """What was written, in the words in which it will be read: fields that the stored version names differently are
    renamed, so that writing it again changes nothing. Only where the server converts by itself; the caller's own.
    """
    stored = context.catalog.stored(resource.home)
    if resource.converter is None or stored is None or stored.api_version == resource.api_version:
        return obj
    try:
        return resource.converter(resource.converter(obj, stored.api_version), resource.api_version)
    except UserError:
        # It is about to be refused, in better words.
        return obj


def as_defined(context: ServerContext, kept: Obj, resource: Resource) -> Obj:
    """What is about to be stored, by the definition as it is now: it may have changed since the request was read.

    In place, and without waiting, so that it holds at the commit. What is in another version than the new
    definition stores stays so: readers see that by its bytes.
    """
    if not resource.is_custom:
        return kept
    present = context.catalog.stored(resource.home)
    if present is None or present.api_version != kept["apiVersion"] or _is_served(context, resource):
        return kept
    conform_custom(kept, present.schema)
    present.strategy.default(kept)
    return kept


def _is_served(context: ServerContext, resource: Resource) -> bool:
    return context.catalog.find(resource.group, resource.version, resource.plural) is resource


def ordered(obj: Obj) -> Obj:
    front: dict[str, Any] = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": obj["metadata"]}
    return front | obj


def prefix_of(resource: Resource) -> bytes:
    """How the bytes of each stored object of a resource begin."""
    return f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()


def item_parts(data: bytes, prefix: bytes) -> tuple[bytes, bytes | memoryview]:
    """An object as an item of a typed list, in two parts so that nothing is copied."""
    return (b"{", memoryview(data)[len(prefix) :]) if data.startswith(prefix) else (b"", data)


def converts_here(resource: Resource) -> bool:
    """Whether objects are converted without asking a webhook."""
    return not resource.is_custom or resource.conversion_webhook is None


async def _in_stored_version(context: ServerContext, obj: Obj, resource: Resource) -> Obj:
    stored = context.catalog.stored(resource.home) or resource
    if converts_here(resource):
        return _converted_here([obj], resource, stored.api_version)[0]
    return (await context.convert([obj], stored.api_version, resource))[0]


def _converted_here(objs: list[Obj], resource: Resource, to: str) -> list[Obj]:
    if not resource.is_custom:
        return [convert_builtin(obj, to) for obj in objs]
    return [converted_here(obj, to, resource) for obj in objs]


async def _all_converted(
    context: ServerContext, call: Call, records: Sequence[Record], finish: Callable[[Obj], _Finished]
) -> list[_Finished]:
    """What `finish` makes of the objects, which are not stored in the version of the call's resource."""
    is_large = sum(len(record.data) for record in records) >= LARGE_BYTES
    if is_large and call.verb in ("get", "list"):
        context.large.check(call.actor.name)
    found: list[_Finished] = []
    for batch in _batches(records):
        found += await _batch_converted(context, call, batch, finish, is_large=is_large)
    return found


async def _batch_converted(
    context: ServerContext, call: Call, batch: Sequence[Record], finish: Callable[[Obj], _Finished], *, is_large: bool
) -> list[_Finished]:
    resource = call.resource

    async def compute(work: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
        return await context.large.run(turn_of(call), work, *args, **more) if is_large else work(*args, **more)

    def read() -> list[Obj]:
        objs: list[Obj] = [_decode(record.data) for record in batch]
        if resource.is_custom:
            for obj in objs:
                _default_as_stored(context, obj, resource)
        return objs

    def finished(objs: list[Obj]) -> list[_Finished]:
        if resource.is_custom:
            for obj in objs:
                conform_custom(obj, resource.schema)
                if resource.converter is not None:
                    # Of provided kinds: what a version fills in, it shows of objects of the other version too.
                    resource.strategy.default(obj)
        return [finish(obj) for obj in objs]

    if converts_here(resource):
        return await compute(lambda: finished(_converted_here(read(), resource, resource.api_version)))
    return await compute(finished, await context.convert(await compute(read), resource.api_version, resource))


def _batches(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    start, size = 0, 0
    for index, record in enumerate(records):
        if size > _DECODED_AT_ONCE:
            yield records[start:index]
            start, size = index, 0
        size += len(record.data)
    if records:
        yield records[start:]


def _as_it_is(obj: Obj) -> Obj:
    return obj


def _default_as_stored(context: ServerContext, obj: Obj, resource: Resource) -> None:
    """The version that the object is stored in drops what it does not know and fills in defaults; in place."""
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    written = context.catalog.find(group, version, resource.plural)
    stored = context.catalog.stored(resource.home)
    if stored is not None and stored.api_version == obj.get("apiVersion"):
        written = stored
    if written is not None:
        conform_custom(obj, written.schema)
        written.strategy.default(obj)
