"""Schemas of a Kubernetes release as they lie beside the code, and how they are read.

`data/kubernetes/<minor>.json.xz` holds the shapes of a release, `descriptions.json.xz` the words about each field of
all releases: most processes want the former within milliseconds and never the latter. Releases differ in few words, so
of older ones only the definitions whose words differ from those of the newest are stored. `tools/kubernetes_schemas.py`
writes both.

Rejected: shipping the published OpenAPI documents. They are six times as large, and they lack what Go adds to a field:
its type's name in errors, and whether it is left out or always written when it is empty.
"""

from __future__ import annotations

import lzma
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from shoal.units.errors import BugError, Where

MINORS = ("1.34", "1.35", "1.36")
NEWEST = MINORS[-1]

Zero = Literal["", "drop", "fill"]
"""What Go does with a field that is empty: nothing known or a pointer; left out; always written."""


class StoredField(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One value: a field, a list's item, a map's value. `ref` names a definition, else `type` says what it is."""

    type: str = ""
    ref: str = ""
    format: str = ""
    go: str = ""
    """Go's name of the type where `type` and `format` do not tell it (`v1.RestartPolicy`)."""
    items: StoredField | None = None
    values: StoredField | None = None
    list_type: str = ""
    map_keys: tuple[str, ...] = ()
    map_type: str = ""
    merge_key: str = ""
    patch_strategies: tuple[str, ...] = ()
    zero: Zero = ""


class StoredDefinition(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One Go struct. Without fields it is opaque, or one of the few types that `schema/kubernetes.py` knows by name."""

    fields: dict[str, StoredField] = {}
    required: tuple[str, ...] = ()
    map_type: str = ""
    is_struct: bool = True
    kinds: tuple[tuple[str, str, str], ...] = ()
    """Group, version and kind of objects of this type."""


class Described(msgspec.Struct, frozen=True):
    """The descriptions of a definition and of its fields."""

    text: str
    fields: dict[str, str]


def _read(name: str) -> bytes:
    path = files("shoal.data").joinpath("kubernetes", name)
    try:
        return lzma.decompress(path.read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise BugError(str(error), where=Where(file=f"data/kubernetes/{name}")) from error


@cache
def definitions(minor: str) -> dict[str, StoredDefinition]:
    return msgspec.json.decode(_read(f"{minor}.json.xz"), type=dict[str, StoredDefinition])


@cache
def descriptions(minor: str) -> dict[str, Described]:
    stored = msgspec.json.decode(_read("descriptions.json.xz"), type=dict[str, dict[str, Described]])
    newest, own = stored[NEWEST], stored[minor]
    return {name: own[name] if name in own else newest[name] for name in definitions(minor)}
