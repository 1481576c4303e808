"""Parses the YAML tables of foreign kinds: one row for each kind.

Versions mostly have the same fields, also where the project that owns them renamed some: without conversion between
versions, a field that only one of them has would be lost to readers of the other. Where even that does not work, a
version has a shape of its own.
"""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from shoal.units.errors import UserError, Where

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class VersionDifference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version that differs from the others of its kind: by the columns given here."""

    name: str
    spec: Any = None
    status: Any = None
    columns: tuple[tuple[str, str, str], ...] | None = None
    warns: str = ""
    """Deprecated, with this warning to clients."""


class ForeignKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of a table."""

    kind: str
    plural: str
    versions: tuple[str | VersionDifference, ...]
    """The first is stored."""
    group: str = ""
    """Where it is not the table's."""
    singular: str = ""
    scope: str = "Namespaced"
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[tuple[str, str, str], ...] = ()
    """Name, type and JSON path."""
    wide: tuple[tuple[str, str, str], ...] = ()
    """Columns that are only shown when all are asked for."""
    scale: tuple[str, str, str] | None = None
    """Paths of the wanted number, the number there is, and the selector (or nothing)."""
    has_status: bool = True
    """Whether it is written through a door of its own."""
    needs_spec: bool = False
    spec: Any = "object"
    """None where the kind has none."""
    status: Any = "object"
    top: dict[str, Any] = {}
    """Fields beside spec and status."""
    approved: str = ""
    """In a group of Kubernetes itself: what the owners name as the permission."""

    def shapes(self) -> tuple[VersionDifference, ...]:
        return tuple(VersionDifference(one) if isinstance(one, str) else one for one in self.versions)


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    project: str
    group: str
    kinds: tuple[ForeignKind, ...]
    shapes: Any = None
    """Anchors for YAML aliases."""


def read_table(name: str, text: str) -> Table:
    try:
        return msgspec.convert(yaml.load(text, Loader=_LOADER), Table)  # noqa: S506 - both are safe loaders
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise UserError(str(error), where=Where(name)) from None
