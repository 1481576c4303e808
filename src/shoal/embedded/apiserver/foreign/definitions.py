"""The definitions of foreign kinds, from the short tables beside this file: one table for each project.

They are ordinary CustomResourceDefinitions, labelled so that they differ from those that users install. An
installation of the project itself replaces them; existing definitions are not overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import msgspec

from shoal.embedded.apiserver.foreign.notation import field_name, is_required, schema
from shoal.embedded.apiserver.foreign.provided import LABEL
from shoal.embedded.apiserver.foreign.tables import ForeignKind, Table, VersionDifference, read_table
from shoal.units.errors import Where

Obj = dict[str, Any]
_APPROVED = "api-approved.kubernetes.io"


def tables() -> Iterator[tuple[str, Table]]:
    """Each with the name of its file, in the order of these."""
    for name in _names_of_files():
        yield name, _table(name)


def definitions() -> Iterator[Obj]:
    """All of them, made one by one: together they are large."""
    for name in _names_of_files():
        for encoded in _encoded_definitions(name):
            yield msgspec.json.decode(encoded)


def _folder() -> Traversable:
    return files("shoal.embedded.apiserver.foreign") / "kinds"


@cache
def _names_of_files() -> tuple[str, ...]:
    return tuple(sorted(one.name for one in _folder().iterdir() if one.name.endswith(".yaml")))


def _table(name: str) -> Table:
    return read_table(name, (_folder() / name).read_text(encoding="utf-8"))


@cache
def _encoded_definitions(name: str) -> tuple[bytes, ...]:
    """Those of a file. Encoded they are small enough to be kept, and quickly read where clusters come and go."""
    return tuple(msgspec.json.encode(one) for one in definitions_of(name, _table(name)))


def definitions_of(file: str, table: Table) -> Iterator[Obj]:
    for row in table.kinds:
        group = row.group or table.group
        where = Where(file, obj=row.kind)
        shapes = row.shapes()
        versions = [_version(row, shape, where, is_stored=shape is shapes[0]) for shape in shapes]
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"{row.plural}.{group}",
                "labels": {LABEL: table.project},
                **({"annotations": {_APPROVED: row.approved}} if row.approved else {}),
            },
            "spec": {"group": group, "scope": row.scope, "names": _names(row), "versions": versions},
        }


def storing_the_oldest(definition: Obj) -> Obj:
    """For clusters in which a release of the project may be installed that does not know the newest version."""
    versions = definition["spec"]["versions"]
    stored = [{**one, "storage": one is versions[-1]} for one in versions]
    return {**definition, "spec": {**definition["spec"], "versions": stored}}


def _names(row: ForeignKind) -> Obj:
    names: Obj = {"kind": row.kind, "plural": row.plural, "listKind": f"{row.kind}List"}
    names["singular"] = row.singular or row.kind.lower()
    if row.short:
        names["shortNames"] = list(row.short)
    if row.categories:
        names["categories"] = list(row.categories)
    return names


def _version(row: ForeignKind, shape: VersionDifference, where: Where, *, is_stored: bool) -> Obj:
    found: Obj = {
        "name": shape.name,
        "served": True,
        "storage": is_stored,
        "schema": {"openAPIV3Schema": _schema(row, shape, where)},
        "subresources": _subresources(row),
        "additionalPrinterColumns": _columns(row.columns if shape.columns is None else shape.columns, row.wide),
    }
    if shape.warns:
        found |= {"deprecated": True, "deprecationWarning": shape.warns}
    return {name: value for name, value in found.items() if value not in ({}, [])}


def _schema(row: ForeignKind, shape: VersionDifference, where: Where) -> Obj:
    spec, status = shape.spec or row.spec, shape.status or row.status
    fields: Mapping[str, Any] = {"spec!" if row.needs_spec else "spec": spec} if spec is not None else {}
    fields = {**fields, **row.top}
    if row.has_status:
        fields = {**fields, "status": status}
    found: Obj = {"type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}}
    found["properties"]["metadata"] = {"type": "object"}
    for name, written in fields.items():
        found["properties"][field_name(name)] = schema(written, where.below(field_name(name)))
    required = [field_name(name) for name in fields if is_required(name)]
    return found | ({"required": required} if required else {})


def _subresources(row: ForeignKind) -> Obj:
    found: Obj = {"status": {}} if row.has_status else {}
    if row.scale is not None:
        wanted, present, selector = row.scale
        found["scale"] = {
            "specReplicasPath": wanted,
            "statusReplicasPath": present,
            **({"labelSelectorPath": selector} if selector else {}),
        }
    return found


def _columns(columns: Sequence[tuple[str, str, str]], wide: Sequence[tuple[str, str, str]]) -> list[Obj]:
    shown = [{"name": name, "type": type_, "jsonPath": path} for name, type_, path in columns]
    more = [{"name": name, "type": type_, "jsonPath": path, "priority": 1} for name, type_, path in wide]
    age = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    return [*shown, age, *more] if shown or more else []
