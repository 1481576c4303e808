"""Reads the objects of a snapshot, with all their fields: what `kubectl get -o json` or `-o yaml` and `shoal snapshot`
write.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from shoal.api.yaml_text import read_yaml
from shoal.units.errors import UserError, Where

Obj = dict[str, Any]
_MOST_BYTES = 512 * 2**20


def read_objects(path: Path) -> list[Obj]:
    """The objects of a file, those of lists one by one. Raises UserError for anything that is not an object."""
    data = path.read_bytes()
    if len(data) > _MOST_BYTES:
        raise UserError(f"is larger than {_MOST_BYTES // 2**20} MiB", where=Where(str(path)))
    found = [each for number, value in _documents(data, str(path)) for each in _flat(value, Where(str(path), number))]
    if not found:
        raise UserError("has no objects", where=Where(str(path)), fix="write one with `shoal snapshot --file FILE`")
    return found


def _documents(data: bytes, file: str) -> Iterator[tuple[int, Any]]:
    if data.lstrip()[:1] == b"{":
        try:
            yield 1, msgspec.json.decode(data)
        except msgspec.DecodeError:
            pass
        else:
            return
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise UserError("is not UTF-8 text", where=Where(file)) from None
    yield from read_yaml(text, file)


def _flat(value: Any, where: Where) -> Iterator[Obj]:
    """An item of a typed list has no apiVersion and kind of its own."""
    if not isinstance(value, dict) or not value.get("kind") or not value.get("apiVersion"):
        raise UserError("expected an object with apiVersion and kind", where=where)
    items = value.get("items")
    if not str(value["kind"]).endswith("List") or not isinstance(items, list):
        yield value
        return
    inner = {"apiVersion": value["apiVersion"], "kind": str(value["kind"]).removesuffix("List")}
    for item in items:
        yield from _flat({**inner, **item} if isinstance(item, dict) else item, where)
