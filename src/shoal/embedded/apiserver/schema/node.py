"""The shape of a value, the same for built-in kinds and custom resources.

Everything that walks objects by their schema (strict decoding, pruning, strategic merge, server-side apply, OpenAPI)
reads this one form. Two builders fill it: `schema/kubernetes.py` from the published schemas of a Kubernetes release,
`crds/structural.py` from a CustomResourceDefinition. Schemas may be recursive, so nodes are plain mutable objects that
are never changed once their builder returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Type = Literal["object", "array", "string", "integer", "number", "boolean", "any"]
ListType = Literal["atomic", "set", "map"]


class Schema:
    """One value's shape. An object has either named `properties` or, as a map, `values`; or it is opaque ("any")."""

    __slots__ = (
        "is_int_or_string",
        "is_quantity",
        "is_time",
        "items",
        "keeps_unknown",
        "list_type",
        "map_keys",
        "map_type",
        "merge_key",
        "name",
        "number_format",
        "patch_strategies",
        "properties",
        "published",
        "required",
        "type",
        "values",
    )

    def __init__(self, kind: Type = "any", name: str = "") -> None:
        self.type: Type = kind
        self.name = name
        """Of a built-in type, its Go name as error messages have it (`v1.PodSpec`); else empty."""
        self.properties: dict[str, Schema] = {}
        self.items: Schema | None = None
        self.values: Schema | None = None
        """The shape of each value of a map (additionalProperties)."""
        self.required: tuple[str, ...] = ()
        self.keeps_unknown = False
        """x-kubernetes-preserve-unknown-fields, RawExtension and free-form JSON."""
        self.is_int_or_string = False
        self.is_quantity = False
        self.is_time = False
        """metav1.Time or MicroTime."""
        self.number_format = ""
        """int32, int64, double, byte ... as written in the schema."""
        self.list_type: ListType = "atomic"
        self.map_keys: tuple[str, ...] = ()
        """Of a list of type map: the fields that identify an item."""
        self.map_type: Literal["granular", "atomic"] = "granular"
        self.merge_key = ""
        """Strategic merge: the one field that identifies an item; empty means lists are replaced."""
        self.patch_strategies: frozenset[str] = frozenset()
        """Strategic merge: of `merge` and `retainKeys`."""
        self.published: Mapping[str, Any] = {}
        """Custom resources: the schema as written (validations, defaults, patterns ...)."""


ANY = Schema("any")
ANY.keeps_unknown = True
