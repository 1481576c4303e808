"""Objects without their managedFields: of a pod four tenths, which nobody reads who decides about it.

They are cut out of the bytes, which costs a search and a copy, and happens before a page of a list becomes a cache: no
moment has both. Bytes that look otherwise than servers write them stay whole. Updates that lack the field leave it as
the server has it.

Rejected: asking the server for less. It knows whole objects and their metadata alone, nothing between.
"""

from __future__ import annotations

import msgspec

from shoal.store.live.item import Item

_FIELD = b'"managedFields":'
_OPEN = _FIELD + b"["
_COMMA = ord(",")


class _Meta(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = "0"
    managed_fields: msgspec.Raw = msgspec.Raw()


class _Head(msgspec.Struct, gc=False):
    metadata: _Meta


_head = msgspec.json.Decoder(_Head)


def slim_item_of(data: bytes) -> Item:
    """As `item_of`, from less."""
    meta = _head.decode(data).metadata
    if len(meta.managed_fields):
        data = _without(data, bytes(meta.managed_fields))
    return Item(meta.namespace, meta.name, meta.uid, int(meta.resource_version or 0), data)


def _without(data: bytes, value: bytes) -> bytes:
    at = data.find(_OPEN)
    while at >= 0 and not data.startswith(value, at + len(_FIELD)):
        at = data.find(_OPEN, at + 1)
    if at < 0:
        return data
    end = at + len(_FIELD) + len(value)
    if data[at - 1] == _COMMA:
        at -= 1
    elif data[end] == _COMMA:
        end += 1
    return data[:at] + data[end:]
