"""Writes a row of `shoal get` as a document: the head of its object, as kubectl writes it, and the fields of the row.

Guarantees: each document has `apiVersion`, `kind` and `metadata`. Paths of `--sort-by`, columns and templates may also
name fields of `spec` and `status` of the object. A field that rows do not have is an error with the fields that they
have: a misspelled name must not look like an empty value.

Rejected: `spec` and `status` in the documents that are printed. They are most of the text, and `kubectl get` prints
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from shoal.api.decode import Document, Unknown, meta_of
from shoal.api.kinds import kind_of_type
from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod
from shoal.units.errors import UserError, Where, excerpt

if TYPE_CHECKING:
    from shoal.cli.listed_types import ListedType

Objects = Mapping[str, Document]
"""The object of each row, by the name of the row. A row may have none: a pod that a job of a file would make."""
_PARTS = ("spec", "status")
_METADATA = tuple(ObjectMeta.__struct_encode_fields__)
_SHOWN_METADATA = ("name", "namespace", "labels", "creationTimestamp")
_NAMES = re.compile(r"[^.\[\]'\"]+")


def plain_metadata(found: Document) -> dict[str, Any]:
    """The metadata of an object in JSON types."""
    import msgspec

    from shoal.api.wire import to_json

    plain: dict[str, Any] = msgspec.json.decode(to_json(meta_of(found.value)))
    return plain


def document_of_row(of: ListedType, row: Any, found: Document | None = None) -> dict[str, Any]:
    """The head of the object of the row, with the fields of the row."""
    import msgspec

    namespace, slash, name = of.key(row).rpartition("/")
    api_version, kind = of.head if found is None else _head(found)
    metadata = {} if found is None else plain_metadata(found)
    metadata |= {"name": name} | ({"namespace": namespace} if slash else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **msgspec.to_builtins(row)}


def object_of_row(of: ListedType, row: Any, objects: Objects) -> Any:
    """For field selectors; of a row without an object one that has nothing but its name."""
    found = objects.get(of.key(row))
    if found is not None:
        return found.value
    namespace, _, name = of.key(row).rpartition("/")
    meta = ObjectMeta(name=name, namespace=namespace)
    return Pod(metadata=meta) if of.head[1] == "Pod" else Unknown(*of.head, meta, {})


def documents_of_rows(
    of: ListedType, rows: Sequence[Any], objects: Objects, paths: Sequence[str], option: str
) -> list[dict[str, Any]]:
    """For reading these paths of `option`. Raises UserError for a field that the documents do not have. What is below
    a field may be missing: a MIG profile."""
    found = [document_of_row(of, row, objects.get(of.key(row))) for row in rows]
    if any(part in path for path in paths for part in (*_PARTS, "..")):
        found = [_with_parts(each, objects.get(of.key(row))) for each, row in zip(found, rows, strict=True)]
    check_paths(paths, found, option)
    return found


def check_paths(paths: Sequence[str], documents: Sequence[Mapping[str, Any]], option: str) -> None:
    """Raises UserError for a field that no document has."""
    known = {name for each in documents for name in each}
    for path in paths if documents else ():
        if _is_unknown(_names(path), known) and ".." not in path:
            has_object = "apiVersion" in known
            shown = (f"metadata.{name}" for name in _SHOWN_METADATA)
            own = (name for name in documents[0] if name not in (_HEAD if has_object else _HEAD[2:]))
            more = "; paths may also begin with spec or status" if has_object else ""
            fix = f"each item has {', '.join([*shown, *own])}{more}"
            raise UserError(f"{excerpt(path)} is no field of the items", where=Where(path=option), fix=fix)


def sorted_by(path: str, of: ListedType, rows: Sequence[Any], objects: Objects) -> list[Any]:
    """The rows in the order of a field, which may be one of `spec` or `status` that at least one object has."""
    from shoal.api.jsonpath import find

    documents = documents_of_rows(of, rows, objects, [path], "--sort-by")
    if rows and {*_names(path)[:1]} & {*_PARTS} and not any(find(path, each) for each in documents):
        raise UserError(f"no item has {excerpt(path)}", where=Where(path="--sort-by"))
    return [rows[at] for at in order_of(path, documents)]


def order_of(path: str, documents: Sequence[Mapping[str, Any]]) -> list[int]:
    """The positions of the documents in the order of a field. Those without the field come first, as with kubectl.
    Numbers and quantities are compared as amounts, numbers in texts as numbers: x-9 comes before x-10."""
    from shoal.api.jsonpath import find

    values = [find(path, each)[:1] for each in documents]
    keys = _order_keys([value[0] if value else None for value in values])
    return sorted(range(len(documents)), key=keys.__getitem__)


_HEAD = ("apiVersion", "kind", "metadata", *_PARTS)


def _head(found: Document) -> tuple[str, str]:
    value = found.value
    if isinstance(value, Unknown):
        return value.api_version, value.kind
    kind = kind_of_type(type(value))
    return kind.api_versions[0], kind.name


def _with_parts(document: dict[str, Any], found: Document | None) -> dict[str, Any]:
    import msgspec

    from shoal.api.wire import to_json

    if found is None:
        return document
    value = found.value
    whole = value.raw if isinstance(value, Unknown) else msgspec.json.decode(to_json(value))
    return document | {name: whole[name] for name in _PARTS if name in whole}


def _is_unknown(names: Sequence[str], known: set[str]) -> bool:
    if not names:
        return False
    if names[0] == "metadata":
        return len(names) > 1 and names[1] not in _METADATA
    return names[0] not in known | {"items", "cluster", *_PARTS}


def _names(path: str) -> list[str]:
    """The names of the fields on a path of an item."""
    return _NAMES.findall(_without_filters(path).lstrip("$@").removeprefix(".items"))


def _without_filters(path: str) -> str:
    """The path without brackets, except those around a quoted name: `['metadata']`."""
    kept: list[str] = []
    depth = 0
    is_name = False
    for at, letter in enumerate(path):
        if letter == "[":
            depth += 1
            is_name = depth == 1 and path[at + 1 : at + 2] in ("'", '"')
        if not depth or is_name:
            kept.append(letter)
        if letter == "]" and depth:
            depth -= 1
    return "".join(kept)


def _order_keys(values: Sequence[Any]) -> list[tuple[Any, ...]]:
    texts = [value for value in values if isinstance(value, str)]
    amounts = {text: _nano(text) for text in texts}
    are_amounts = None not in amounts.values()

    def key(value: Any) -> tuple[Any, ...]:
        if value is None:
            return (0,)
        if isinstance(value, int | float):
            return 1, float(value) * _NANO
        if isinstance(value, str) and are_amounts:
            return 1, amounts[value]
        return 2, _natural(str(value))

    return [key(value) for value in values]


_NANO = 10**9


def _nano(text: str) -> int | None:
    from shoal.units.quantity import Quantity

    try:
        return Quantity.parse(text).nano
    except UserError:
        return None


def _natural(text: str) -> list[tuple[bool, int, str]]:
    parts = ((is_number, "".join(letters)) for is_number, letters in groupby(text, _is_digit))
    return [(not is_number, int(part) if is_number else 0, part) for is_number, part in parts]


def _is_digit(letter: str) -> bool:
    return letter.isascii() and letter.isdigit()
