"""Two smaller forms of objects that clients ask for by their Accept header: tables, and metadata alone.

Tables are what `kubectl get` prints; a controller that needs no more than names and labels asks for
PartialObjectMetadata. Nothing is copied: the parts of objects that an answer shows are shared with it and only encoded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.status import ApiError, bad_request
from shoal.embedded.apiserver.tables.printer import Obj, Printer
from shoal.embedded.apiserver.tables.registry import printer_of

Include = Literal["Metadata", "Object", "None"]
_GROUP = "meta.k8s.io"


def include_of(asked: str) -> Include:
    """The query parameter `includeObject`; metadata where it is not given."""
    if asked in ("", "Metadata"):
        return "Metadata"
    if asked == "Object":
        return "Object"
    if asked == "None":
        return "None"
    raise _bad_include(asked)


def _bad_include(asked: str) -> ApiError:
    why = "must be 'Metadata', 'Object', 'None', or empty"
    return bad_request(f'Unable to convert to Table as requested: includeObject: Invalid value: "{asked}": {why}')


def table(
    resource: Resource,
    objects: Iterable[Obj],
    *,
    now_s: int,
    include: Include = "Metadata",
    list_meta: Obj | None = None,
    version: str = "v1",
    kind: str = "",
    has_heads: bool = True,
) -> Obj:
    """Objects as rows. `list_meta` is the list's metadata, or of a single object its resourceVersion.

    `kind` is that of the objects where it is not the resource's own; a single object says it itself.
    """
    objects = list(objects)
    printer = printer_of(resource, kind or _kind_of(objects))
    if printer.order is not None:
        objects.sort(key=printer.order)
    api_version = f"{_GROUP}/{version}"
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": list_meta or {},
        "columnDefinitions": _heads(printer) if has_heads else None,
        "rows": [_row(printer, one, now_s, include, api_version) for one in objects],
    }


def _kind_of(objects: list[Obj]) -> str:
    """A door below an object answers with one object, which may be of another kind (a scale)."""
    found: str = objects[0].get("kind", "") if len(objects) == 1 else ""
    return found


def _heads(printer: Printer) -> list[Obj]:
    found: list[Obj] = msgspec.to_builtins(printer.heads)
    return found


def _row(printer: Printer, obj: Obj, now_s: int, include: Include, api_version: str) -> Obj:
    row: Obj = {"cells": printer.cells(obj, now_s)}
    if printer.conditions is not None:
        conditions = printer.conditions(obj)
        if conditions:
            row["conditions"] = conditions
    if include == "Metadata":
        # A row is for looking at. Who owns which field is half of a pod's metadata, and is not printed.
        metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
        row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata}
    else:
        row["object"] = obj if include == "Object" else None
    return row


def partial(obj: Obj, version: str = "v1") -> Obj:
    """An object's metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": f"{_GROUP}/{version}", "metadata": obj["metadata"]}


def partial_list(objects: Iterable[Obj], list_meta: Obj | None = None, version: str = "v1") -> dict[str, Any]:
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"{_GROUP}/{version}",
        "metadata": list_meta or {},
        "items": [partial(one, version) for one in objects],
    }
