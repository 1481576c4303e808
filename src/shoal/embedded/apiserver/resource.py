"""Resources, their names and verbs, and the key of one object.

A `Resource` is one plural name in one version of one group. Versions of the same resource share what is stored: `home`
names that. The list of all resources is `catalog.Catalog`; built-in ones are in the table `builtin.py`, others come
from CustomResourceDefinitions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from shoal.embedded.apiserver.schema.node import ANY, Schema
from shoal.embedded.apiserver.strategy import GENERIC, Strategy

Obj = dict[str, Any]
"""An object of the API as plain JSON values."""
Converter = Callable[[Obj, str], Obj]
"""An object as another apiVersion of its kind writes it, the argument as it was; UserError where that cannot be."""


class Home(NamedTuple):
    """Where objects are kept: shared by all versions of a resource."""

    group: str
    plural: str


class Ref(NamedTuple):
    """The address of one object. The namespace of cluster-wide objects is empty."""

    home: Home
    namespace: str
    name: str


class Subresource(msgspec.Struct, frozen=True):
    """A door of its own below an object: status, scale, binding ..."""

    name: str
    verbs: tuple[str, ...]
    kind: str = ""
    """The kind it speaks, where that is not the resource's own."""
    group: str = ""
    version: str = ""


class Column(msgspec.Struct, frozen=True):
    """One additional printer column of a custom resource."""

    name: str
    type: str
    json_path: str
    format: str = ""
    description: str = ""
    priority: int = 0


class Resource(msgspec.Struct, frozen=True, dict=True, eq=False):
    """One served plural of one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    subresources: tuple[Subresource, ...] = ()
    stored_version: str = ""
    """The version objects are kept in; empty: this one."""
    schema: Schema = ANY
    strategy: Strategy = GENERIC
    columns: tuple[Column, ...] = ()
    is_custom: bool = False
    scale_paths: tuple[str, str, str] | None = None
    """Of a custom resource with the scale subresource: the JSON paths of spec replicas, status replicas, selector."""
    conversion_webhook: Obj | None = None
    """Of a custom resource: spec.conversion.webhook when versions are converted by one."""
    converter: Converter | None = None
    """Of a custom resource whose versions are converted by the server itself; None: they call everything alike."""
    home_group: str | None = None
    home_plural: str = ""
    """Where this is another face of a resource of another group (events)."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def home(self) -> Home:
        group = self.group if self.home_group is None else self.home_group
        return Home(group, self.home_plural or self.plural)

    @property
    def storage_version(self) -> str:
        return self.stored_version or self.version

    def subresource(self, name: str) -> Subresource | None:
        return next((one for one in self.subresources if one.name == name), None)

    def ref(self, namespace: str, name: str) -> Ref:
        return Ref(self.home, namespace if self.namespaced else "", name)
