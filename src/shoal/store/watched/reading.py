"""Decodes objects of a cache to the typed, validated values that manifests are read into.

The server has checked most of it already. Objects that the server accepts and that no decision can use (mostly custom
resources with loose schemas) raise `UserError`, as they do in manifests.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import field

from shoal.api.decode import Document, Unknown, convert
from shoal.api.kind import Kind as TypedKind
from shoal.api.kinds import find_kind
from shoal.api.meta import ObjectMeta
from shoal.api.wire import ApiStruct, dec_hook
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.units.errors import UserError, Where


class _ObjectWithMeta(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


V = TypeVar("V", bound=ApiStruct)


def place_of(kind: Kind, item: Item) -> Where:
    name = f"{item.namespace}/{item.name}" if item.namespace else item.name
    return Where(obj=f"{kind.name} {name}")


def document_of(kind: Kind, item: Item) -> Document:
    """The object as a document of a manifest."""
    typed = find_kind(kind.api_version, kind.name)
    where = place_of(kind, item)
    if typed is None:
        return Document(_unknown(kind, item, where), where)
    value = _decoded(typed, item, where)
    typed.check(value, where)
    return Document(value, where)


def value_of(kind: Kind, item: Item, wanted: type[V]) -> V:
    document = document_of(kind, item)
    if not isinstance(document.value, wanted):
        raise UserError(f"{kind.api_version} is a version that is not read", where=document.where)
    return document.value


def _unknown(kind: Kind, item: Item, where: Where) -> Unknown:
    raw = item.obj()
    return Unknown(kind.api_version, kind.name, convert(raw, _ObjectWithMeta, where).metadata, raw)


def _decoded(typed: TypedKind, item: Item, where: Where) -> ApiStruct:
    if typed.reads is None:
        try:
            value: ApiStruct = _decoder(typed.type).decode(item.data)
        except (msgspec.ValidationError, RecursionError):
            pass
        else:
            return value
    try:
        plain: Any = msgspec.json.decode(item.data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserError("cannot be decoded", where=where) from error
    if typed.reads is not None:
        plain = typed.reads(plain)
    return convert(plain, typed.type, where)


@cache
def _decoder(wanted: type[ApiStruct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(wanted, dec_hook=dec_hook)
