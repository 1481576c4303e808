"""Reads the objects of files as they are written, without their types, and says what else the files contain.

For rules that check fields which the typed objects do not have. A file that is not YAML, and a document that is no
object, do not prevent the reading of the others.

Rejected: `read_manifests`. It converts objects to types, and the first invalid object ends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shoal.api.files import read_each
from shoal.api.yaml_text import read_yaml
from shoal.units.errors import UserError, Where

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlainObject:
    where: Where
    """File and document."""
    obj: Obj


@dataclass(frozen=True, slots=True)
class NoObject:
    """A document without apiVersion and kind."""

    where: Where
    value: Any


@dataclass(frozen=True, slots=True)
class PlainObjects:
    objects: list[PlainObject] = field(default_factory=list)
    others: list[NoObject] = field(default_factory=list)
    errors: list[UserError] = field(default_factory=list)
    """Files that cannot be read."""


def read_plain_objects(paths: Sequence[str]) -> PlainObjects:
    """All documents of all files, in their order."""
    read = PlainObjects()
    for name, data in read_each(paths):
        if isinstance(data, UserError):
            read.errors.append(data)
            continue
        try:
            for number, value in _documents(data, name):
                _add(read, Where(file=name, document=number), value)
        except UserError as error:
            read.errors.append(error)
    return read


def _documents(data: bytes, name: str) -> Iterator[tuple[int, Any]]:
    if data.lstrip()[:1] == b"{":
        # JSON is YAML too, but decoding it as JSON is much faster.
        try:
            yield 1, msgspec.json.decode(data)
        except msgspec.DecodeError:
            pass
        except RecursionError as error:
            raise UserError("is nested too deeply", where=Where(file=name)) from error
        else:
            return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"line {line} is not UTF-8 text", where=Where(file=name)) from error
    yield from read_yaml(text, name)


def _add(read: PlainObjects, where: Where, value: Any) -> None:
    if not isinstance(value, dict) or not _is_text(value.get("apiVersion")) or not _is_text(value.get("kind")):
        read.others.append(NoObject(where, value))
        return
    items = value.get("items")
    if not value["kind"].endswith("List") or not isinstance(items, list):
        read.objects.append(PlainObject(where, value))
        return
    # The objects of a typed list, such as PodList, may lack what the list says.
    default = (
        {} if value["kind"] == "List" else {"apiVersion": value["apiVersion"], "kind": value["kind"][: -len("List")]}
    )
    for item in items:
        _add(read, where, {**default, **item} if isinstance(item, dict) else item)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
