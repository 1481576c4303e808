"""The shapes of Kubernetes' own kinds in one release, built when they are first asked for.

A definition that many fields refer to becomes one node that all of them share, so recursive types cost nothing; a field
that says something of its own about merging gets a node of its own around the shared properties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Literal, cast

from shoal.data.kubernetes_schemas import MINORS, NEWEST, StoredDefinition, StoredField, Zero, definitions
from shoal.embedded.apiserver.schema.node import ListType, Schema, Type

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_TIMES = (f"{_META}.Time", f"{_META}.MicroTime")
_GO_SCALARS = {"string": "string", "boolean": "bool", "integer": "int64", "number": "float64"}
_GO_FORMATS = {"int32": "int32", "int64": "int64", "byte": "[]uint8"}

Walker = Callable[[Any], list[str] | None]


class GoSchema(Schema):
    """A shape with what only Go types have: which empty fields are left out and which are always written."""

    __slots__ = ("definition", "fill", "walker", "zeros")

    def __init__(self, kind: Type = "any", name: str = "") -> None:
        super().__init__(kind, name)
        self.definition = ""
        """The name among the published definitions, of a node that represents one."""
        self.zeros: dict[str, Zero] = {}
        """Per field; those not named are kept as they are sent."""
        self.walker: Walker | None = None
        """What `decode` made of this shape."""
        self.fill: Callable[[Any], None] | None = None
        """What `zeros` made of this shape."""


class Shapes:
    """The schemas of one minor version, such as `1.36`."""

    def __init__(self, version: str = NEWEST) -> None:
        self.version = version
        self._definitions = definitions(version)
        self._built: dict[str, GoSchema] = {}
        self._by_kind = {kind: name for name, one in self._definitions.items() for kind in one.kinds}

    @staticmethod
    def versions() -> tuple[str, ...]:
        return MINORS

    def kinds(self) -> Iterable[tuple[str, str, str]]:
        """Group, version and kind of every object there is, lists and options included."""
        return self._by_kind

    def find(self, group: str, version: str, kind: str) -> GoSchema | None:
        name = self._by_kind.get((group, version, kind))
        return self.definition(name) if name is not None else None

    def of(self, group: str, version: str, kind: str) -> GoSchema:
        found = self.find(group, version, kind)
        if found is None:
            raise KeyError(f"Kubernetes {self.version} has no {kind} in {group or 'core'}/{version}")
        return found

    def definition(self, name: str) -> GoSchema:
        """By the published name, `io.k8s.api.core.v1.PodSpec`."""
        built = self._built.get(name)
        if built is None:
            built = self._built[name] = self._opaque(name)
            if name not in (_QUANTITY, _INT_OR_STRING, *_TIMES):
                self._fill_in(built, self._definitions[name])
        return built

    def _opaque(self, name: str) -> GoSchema:
        package, _, bare = name.rpartition(".")
        node = GoSchema("any", f"{package.rpartition('.')[2]}.{bare}")
        node.definition = name
        if name == _QUANTITY:
            node.type, node.is_quantity = "string", True
        elif name == _INT_OR_STRING:
            node.is_int_or_string = True
        elif name in _TIMES:
            node.type, node.is_time, node.number_format = "string", True, "date-time"
        return node

    def _fill_in(self, node: GoSchema, stored: StoredDefinition) -> None:
        if not stored.is_struct:
            node.keeps_unknown = True
            return
        node.type = "object"
        node.required = stored.required
        node.map_type = _map_type(stored.map_type)
        # Before the fields: one of them may lead back here and take a copy.
        node.zeros.update({key: field.zero for key, field in stored.fields.items() if field.zero})
        for key, field in stored.fields.items():
            node.properties[key] = self._field(field)

    def _field(self, stored: StoredField) -> GoSchema:
        if not stored.ref:
            node = self._value(stored)
        else:
            node = self.definition(stored.ref)
            if not (stored.map_type or stored.merge_key or stored.patch_strategies):
                return node
            node = _copied(node)
        if stored.map_type:
            node.map_type = _map_type(stored.map_type)
        node.merge_key = stored.merge_key
        node.patch_strategies = frozenset(stored.patch_strategies)
        if node.type == "array":
            node.list_type, node.map_keys = _list_type(stored)
        return node

    def _value(self, stored: StoredField) -> GoSchema:
        if stored.ref:
            return self.definition(stored.ref)
        node = GoSchema(cast("Type", stored.type or "any"), stored.go)
        node.number_format = stored.format
        if stored.items is not None:
            node.items = self._value(stored.items)
            node.name = stored.go or f"[]{node.items.name}"
        elif stored.values is not None:
            node.values = self._value(stored.values)
            node.name = stored.go or f"map[string]{node.values.name}"
        elif not stored.go:
            node.name = _GO_FORMATS.get(stored.format) or _GO_SCALARS.get(stored.type, "")
        node.keeps_unknown = node.type == "any" or (node.type == "object" and node.values is None)
        return node


@cache
def published(version: str) -> Shapes:
    """The schemas of a version, shared in this process: they are not changed, and derived values are cached on them."""
    return Shapes(version)


def _copied(node: GoSchema) -> GoSchema:
    """Of the same type, sharing its fields, so that what one use of a type declares stays with that use."""
    copy = GoSchema(node.type, node.name)
    for slot in Schema.__slots__:
        setattr(copy, slot, getattr(node, slot))
    copy.definition, copy.zeros = node.definition, node.zeros
    return copy


def _map_type(text: str) -> Literal["granular", "atomic"]:
    return "atomic" if text == "atomic" else "granular"


def _list_type(stored: StoredField) -> tuple[ListType, tuple[str, ...]]:
    """Where no list type is published, server-side apply treats the list as strategic merge does."""
    if stored.list_type:
        return cast("ListType", stored.list_type), stored.map_keys
    if "merge" not in stored.patch_strategies:
        return "atomic", ()
    return ("map", (stored.merge_key,)) if stored.merge_key else ("set", ())
