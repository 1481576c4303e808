"""Decodes objects for caches: complete, or without their managedFields, which are four tenths of a pod and which no
decision reads.

A cache needs only the metadata of an object. Only the metadata is decoded if the object has the usual format, otherwise
the whole object. The managedFields are cut out of the bytes before a page of a list is stored, so that memory never
holds both forms. An update without the field leaves it unchanged on the server.

Rejected: requesting less from the server. It offers whole objects or their metadata alone, and nothing between.
"""

from __future__ import annotations

import msgspec

from shoal.client.item import Item
from shoal.client.json_sections import beginning_of

_FIELD = b'"managedFields":'
_OPEN = _FIELD + b"["
_COMMA = ord(",")


class _SlimMeta(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = "0"
    managed_fields: msgspec.Raw = msgspec.Raw()


class _SlimObject(msgspec.Struct, gc=False):
    metadata: _SlimMeta
    kind: str = ""


_head = msgspec.json.Decoder(_SlimObject)
_meta = msgspec.json.Decoder(_SlimMeta)


def whole_item_of(data: bytes, lacking: bytes = b"") -> Item:
    """`lacking`: inserted at the beginning of an object without a kind."""
    meta, is_typed = _seen(data)
    return _item(meta, data if is_typed or not lacking else b"".join((b"{", lacking, data[1:])))


def slim_item_of(data: bytes, lacking: bytes = b"") -> Item:
    """As `whole_item_of`, without managedFields."""
    meta, is_typed = _seen(data)
    begin = b"{" + lacking if lacking and not is_typed else b"{"
    if len(meta.managed_fields):
        at, end = _place(data, bytes(meta.managed_fields))
        return _item(meta, b"".join((begin, data[1:at], data[end:])))
    return _item(meta, data if begin == b"{" else begin + data[1:])


def _item(meta: _SlimMeta, data: bytes) -> Item:
    return Item(meta.namespace, meta.name, meta.uid, int(meta.resource_version or 0), data)


def _seen(data: bytes) -> tuple[_SlimMeta, bool]:
    """The metadata, and whether the object has a kind. If the kind comes after the other fields, it is added a second
    time, with the same value.
    """
    found = beginning_of(data)
    if found is not None:
        try:
            return _meta.decode(data[found.start : found.end]), found.is_typed
        except msgspec.DecodeError:
            pass
    head = _head.decode(data)
    return head.metadata, bool(head.kind)


def _place(data: bytes, value: bytes) -> tuple[int, int]:
    """Start and end of the field in the bytes, with one of the commas beside it."""
    at = data.find(_OPEN)
    while at >= 0 and not data.startswith(value, at + len(_FIELD)):
        at = data.find(_OPEN, at + 1)
    if at < 0:
        return 1, 1
    end = at + len(_FIELD) + len(value)
    if data[at - 1] == _COMMA:
        at -= 1
    elif data[end] == _COMMA:
        end += 1
    return at, end
