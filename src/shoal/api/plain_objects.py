"""Reads the objects of files as they are written, without their types, and says what else the files contain.

For rules that check fields which the typed objects do not have. A file that is not YAML, and a document that is no
object, do not prevent the reading of the others.

Rejected: `read_manifests`. It converts objects to types, and the first invalid object ends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shoal.api.files import ENDINGS, read_each
from shoal.api.yaml_text import read_yaml
from shoal.units.errors import UserError, Where

Obj = dict[str, Any]
PROMQL = ".promql"
"""The ending of files with one expression; it becomes a document with the field `expr`."""

COUNTERS = ".csv"
"""The ending of lists of dcgm-exporter's counters; one becomes a document with this field."""

PROGRAMS = ("dockerfile", "containerfile", ".py")
"""The endings of files that are no objects, in lower case."""


@dataclass(frozen=True, slots=True)
class PlainObject:
    where: Where
    """File and document."""
    obj: Obj
    path: str = ""
    """Where the object is in the document: `items[3]` in a list."""


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
    programs: list[str] = field(default_factory=list)
    """Dockerfiles and scripts, by the names of their files."""
    data: dict[str, bytes] = field(default_factory=dict)
    """What the files contain, by their names."""

    def renamed(self, names: Mapping[str, str]) -> PlainObjects:
        """The same with other names of files."""

        def where(old: Where) -> Where:
            return Where(names.get(old.file, old.file), old.document, old.obj, old.path, old.row)

        return PlainObjects(
            [PlainObject(where(each.where), each.obj, each.path) for each in self.objects],
            [NoObject(where(each.where), each.value) for each in self.others],
            [error.at(where(error.where)) for error in self.errors],
            [names.get(name, name) for name in self.programs],
            {names.get(name, name): data for name, data in self.data.items()},
        )


def read_plain_objects(paths: Sequence[str], endings: Sequence[str] = ENDINGS) -> PlainObjects:
    """All documents of all files, in their order. `endings`: of the files that are read in folders."""
    read = PlainObjects()
    for name, data in read_each(paths, endings=endings):
        if isinstance(data, UserError):
            read.errors.append(data)
            continue
        add_file(read, name, data)
    return read


def add_file(read: PlainObjects, name: str, data: bytes) -> None:
    """Add the documents of a file with this content."""
    read.data[name] = data
    if name.lower().endswith(PROGRAMS):
        read.programs.append(name)
        return
    try:
        for number, value in _documents(data, name):
            _add(read, Where(file=name, document=number), value)
    except UserError as error:
        read.errors.append(error)


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
    if name.endswith(PROMQL):
        yield 1, {"expr": text}
        return
    if name.endswith(COUNTERS):
        yield 1, {COUNTERS: text}
        return
    yield from read_yaml(text, name)


def _add(read: PlainObjects, where: Where, value: Any, path: str = "") -> None:
    if not isinstance(value, dict) or not _is_text(value.get("apiVersion")) or not _is_text(value.get("kind")):
        read.others.append(NoObject(where, value))
        return
    items = value.get("items")
    if not value["kind"].endswith("List") or not isinstance(items, list):
        read.objects.append(PlainObject(where, value, path))
        return
    # The objects of a typed list, such as PodList, may lack what the list says.
    default = (
        {} if value["kind"] == "List" else {"apiVersion": value["apiVersion"], "kind": value["kind"][: -len("List")]}
    )
    for at, item in enumerate(items):
        here = f"{path}.items[{at}]" if path else f"items[{at}]"
        _add(read, where, {**default, **item} if isinstance(item, dict) else item, here)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
