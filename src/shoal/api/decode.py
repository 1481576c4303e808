"""Decodes bytes to typed, checked objects: JSON or YAML, one document or many, single objects or lists.

A file is read whole or refused whole, with the file, document, object and field of the first thing wrong. A caller that
passes `report` gets the errors of all objects instead, and all objects without an error. JSON goes straight into the
types, which is several times faster than any way through Python dictionaries; only a document that fails, contains
nulls or is of a version to be translated takes the slow way, which can say what is wrong. Kinds not in `kinds.py` come
back as `Unknown`, with their content, for callers to read or to name and skip.

Rejected: guessing the format from the file name. Standard input has none, and every JSON file kubectl
writes is one object in braces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from shoal.api.faults import type_words, user_error
from shoal.api.further_errors import further_errors
from shoal.api.kind import Kind
from shoal.api.kinds import find_kind
from shoal.api.meta import DEFAULT_NAMESPACE, ObjectMeta
from shoal.api.wire import ApiStruct, dec_hook
from shoal.api.yaml_text import read_yaml
from shoal.units.errors import UserError, Where

MAX_BYTES = 512 * 2**20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unknown:
    """An object of a kind this package does not model; `raw` is all of it."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    raw: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Document:
    """One object and where it came from, for later complaints about it."""

    value: ApiStruct | Unknown
    where: Where


Report = Callable[[UserError], None]
"""Gets each error of an input that is read on without the objects that are wrong."""


class _DocumentMeta(ApiStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    generate_name: str = ""


class _DocumentHead(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    metadata: _DocumentMeta = _DocumentMeta()
    items: msgspec.Raw = msgspec.Raw()


_HEAD = msgspec.json.Decoder(_DocumentHead)
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


def read(data: bytes | str, file: str = "", max_bytes: int = MAX_BYTES, report: Report | None = None) -> list[Document]:
    """All objects of one file, in order. With `report` the objects that are wrong are reported and left out."""
    if len(data) > max_bytes:
        raise UserError(f"is larger than {max_bytes // 2**20} MiB", where=Where(file=file))
    raw = data.encode() if isinstance(data, str) else data
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    _check_utf8(raw, file)
    return unique(_documents(raw, file, report), report)


def _documents(raw: bytes, file: str, report: Report | None) -> list[Document]:
    if raw.lstrip()[:1] != b"{":
        return _from_yaml(raw, file, report)
    try:
        return list(_sound(_from_json(raw, Where(file=file, document=1), report=report), report))
    except _NotJsonError as error:
        if file.endswith(".json"):
            raise error.told(raw, file) from error
        # Braces also open a flow map, or a stream of YAML documents that happens to start with one.
        try:
            plain = list(read_yaml(raw.decode(), file))
        except UserError:
            raise error.told(raw, file) from error
        return _from_parsed(plain, file, report)


def _from_yaml(raw: bytes, file: str, report: Report | None) -> list[Document]:
    # The syntax of the whole file comes first where its first error ends the reading.
    return _from_parsed(list(_sound(read_yaml(raw.decode(), file), report)), file, report)


def _from_parsed(parsed: Iterable[tuple[int, Any]], file: str, report: Report | None) -> list[Document]:
    return [
        document
        for number, value in parsed
        for document in _sound(_from_plain(value, Where(file=file, document=number), report=report), report)
    ]


def _sound(found: Iterator[T], report: Report | None) -> Iterator[T]:
    """What can be read up to the first error, which is reported if anything asks for reports."""
    try:
        yield from found
    except UserError as error:
        if report is None:
            raise
        report(error)


def meta_of(value: ApiStruct | Unknown) -> ObjectMeta:
    """What every object carries, of a kind that is modelled or not."""
    meta: ObjectMeta = value.metadata  # type: ignore[union-attr]  # every kind in `kinds.py` has it
    return meta


def name_of_kind(document: Document) -> str:
    """The kind of the object; of two groups' kinds of one name, the name of the type."""
    value = document.value
    return value.kind if isinstance(value, Unknown) else type(value).__name__


def unique(documents: Iterable[Document], report: Report | None = None) -> list[Document]:
    """Two objects of one kind and name would be one object in a cluster: which of the two is meant is unknown. With
    `report` the first of them is kept."""
    kept = []
    seen: dict[tuple[object, str], Where] = {}
    for document in documents:
        value = document.value
        # Several ecosystems have a kind of one name: each is a type of ours.
        group: object = value.api_version.partition("/")[0] if isinstance(value, Unknown) else type(value)
        meta = meta_of(value)
        first = seen.setdefault((group, document.where.obj), document.where)
        if first is document.where or not meta.name:
            kept.append(document)
            continue
        error = UserError("is given twice", where=document.where.below("metadata.name"), fix=f"first in {first}")
        if report is None:
            raise error
        report(error)
    return kept


def convert(value: Any, wanted: type[T], where: Where) -> T:
    """A plain value (nulls allowed) as the given type, or a UserError naming the field."""
    return _typed(_without_nulls(value), wanted, where)


def _typed(value: Any, wanted: type[T], where: Where) -> T:
    try:
        return msgspec.convert(value, wanted, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise user_error(error, value, wanted, where) from error


class _NotJsonError(Exception):
    def told(self, data: bytes, file: str) -> UserError:
        """msgspec counts bytes; people count lines."""
        text, _, position = str(self).partition(" (byte ")
        offset = int(position.rstrip(")")) if position else len(data)
        line = data.count(b"\n", 0, offset) + 1
        column = offset - data.rfind(b"\n", 0, offset)
        return UserError(f"line {line}, column {column}: {text}", where=Where(file=file))


def _from_json(
    raw: bytes | msgspec.Raw, where: Where, default: tuple[str, str] = ("", ""), report: Report | None = None
) -> Iterator[Document]:
    try:
        head = _HEAD.decode(raw)
    except msgspec.ValidationError:
        yield from _from_plain(_plain_json(raw, where), where, default, report)
        return
    except msgspec.DecodeError as error:
        raise _NotJsonError(str(error)) from error
    except RecursionError as error:
        raise UserError("is nested too deeply", where=where) from error
    api_version, name = head.api_version or default[0], head.kind or default[1]
    items = memoryview(head.items)
    if api_version and name.endswith("List") and bytes(items[:1]) == b"[":
        inner = (api_version, name.removesuffix("List"))
        for index, item in enumerate(_ITEMS.decode(items)):
            yield from _sound(_from_json(item, _item(where, index), inner, report), report)
        return
    kind = find_kind(api_version, name)
    if kind is not None and kind.reads is None:
        try:
            value = _decoder(kind.type).decode(raw)
        except (msgspec.ValidationError, RecursionError):
            pass
        else:
            yield _checked(value, kind, _label(where, name, head.metadata, kind))
            return
    yield from _from_plain(_plain_json(raw, where), where, default, report)


def _plain_json(raw: bytes | msgspec.Raw, where: Where) -> Any:
    try:
        return _without_nulls(msgspec.json.decode(raw))
    except msgspec.DecodeError as error:
        raise UserError(str(error).partition(" - at ")[0].lower(), where=where) from error


def _check_utf8(raw: bytes, file: str) -> None:
    if raw.isascii():
        return
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UserError(f"line {line} is not UTF-8 text", where=Where(file=file)) from error


def _from_plain(
    value: Any, where: Where, default: tuple[str, str] = ("", ""), report: Report | None = None
) -> Iterator[Document]:
    """The slow way, through dictionaries free of nulls: for YAML, and for saying what is wrong with JSON."""
    if not isinstance(value, dict):
        raise UserError(f"expected an object with apiVersion and kind, got {type_words(value)}", where=where)
    api_version, name = value.get("apiVersion") or default[0], value.get("kind") or default[1]
    for field_name, text in (("apiVersion", api_version), ("kind", name)):
        if not isinstance(text, str):
            raise UserError(f"expected text, got {type_words(text)}", where=where.below(field_name))
        if not text:
            raise UserError("is required", where=where.below(field_name))
    items = value.get("items", [] if name == "List" else None)
    if name == "List" and not isinstance(items, list):
        raise UserError(f"expected a list, got {type_words(items)}", where=where.below("items"))
    if isinstance(items, list) and name.endswith("List"):
        inner = (api_version, name.removesuffix("List"))
        for index, item in enumerate(items):
            yield from _sound(_from_plain(item, _item(where, index), inner, report), report)
        return
    kind = find_kind(api_version, name)
    where = _label(where, name, _head_meta(value), kind)
    if kind is None:
        meta = _typed(value.get("metadata", {}), ObjectMeta, where.below("metadata"))
        yield Document(Unknown(api_version, name, meta, value), where)
        return
    yield _checked(_typed_with_report(_translated(value, kind, where), kind.type, where, report), kind, where)


def _typed_with_report(value: Any, wanted: type[T], where: Where, report: Report | None) -> T:
    """Raises the last error, after the others were reported."""
    try:
        return _typed(value, wanted, where)
    except UserError as error:
        if report is None:
            raise
        *others, last = [error, *further_errors(value, error, where.path, lambda found: _typed(found, wanted, where))]
        for other in others:
            report(other)
        raise last from error


def _translated(value: dict[str, Any], kind: Kind, where: Where) -> dict[str, Any]:
    if kind.reads is None:
        return value
    try:
        return kind.reads(value)
    except UserError as error:
        raise error.at(where.below(error.where.path)) from error


def _checked(value: Any, kind: Kind, where: Where) -> Document:
    if kind.is_namespaced and not value.metadata.namespace:
        # No other code holds this value yet: it is completed, as the API server does, not changed.
        structs.force_setattr(value.metadata, "namespace", DEFAULT_NAMESPACE)
    kind.check(value, where)
    return Document(value, where)


def _item(where: Where, index: int) -> Where:
    """An item is known by its own name, and by its place in the list only until that is read."""
    return Where(file=where.file, document=where.document, path=f"items[{index}]")


def _label(where: Where, name: str, meta: _DocumentMeta, kind: Kind | None) -> Where:
    shown = meta.name or (meta.generate_name and meta.generate_name + "*")
    if not shown:
        return Where(file=where.file, document=where.document, obj=name, path=where.path)
    space = meta.namespace or (DEFAULT_NAMESPACE if kind is not None and kind.is_namespaced else "")
    return Where(
        file=where.file, document=where.document, obj=f"{name} {space}/{shown}" if space else f"{name} {shown}"
    )


def _head_meta(value: dict[str, Any]) -> _DocumentMeta:
    try:
        return msgspec.convert(value.get("metadata", {}), _DocumentMeta)
    except msgspec.ValidationError:
        return _DocumentMeta()


def _without_nulls(value: Any) -> Any:
    """Kubernetes reads an entry that is null as one that is absent."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


@cache
def _decoder(wanted: type[ApiStruct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(wanted, dec_hook=dec_hook)
