"""The served resources, arranged as discovery tells them: groups, their versions, their resources by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from shoal.embedded.apiserver.discovery.order import newest_first
from shoal.embedded.apiserver.resource import Resource, Subresource

Obj = dict[str, Any]


class ServedResources(Protocol):
    """What is needed of the catalog of resources; `stamp` changes with every change of it."""

    @property
    def stamp(self) -> int: ...

    def all(self) -> Iterable[Resource]: ...


class Group(msgspec.Struct, frozen=True):
    """An API group: its versions, the preferred one first, each with its resources in the order of their names."""

    name: str
    versions: tuple[tuple[str, tuple[Resource, ...]], ...]

    def resources(self, version: str) -> tuple[Resource, ...] | None:
        return next((found for one, found in self.versions if one == version), None)


def groups(resources: Iterable[Resource]) -> dict[str, Group]:
    """Built-in groups stay in the order of their table, for a bare name means the first that has it; then others."""
    built_in: dict[str, dict[str, list[Resource]]] = {}
    custom: dict[str, dict[str, list[Resource]]] = {}
    for one in resources:
        target = custom if one.is_custom and one.group not in built_in else built_in
        target.setdefault(one.group, {}).setdefault(one.version, []).append(one)
    arranged = {**built_in, **{name: custom[name] for name in sorted(custom)}}
    return {name: _group(name, versions) for name, versions in arranged.items()}


def _group(name: str, versions: dict[str, list[Resource]]) -> Group:
    ordered: Sequence[str] = sorted(versions, key=newest_first)
    return Group(name, tuple((one, tuple(sorted(versions[one], key=_plural))) for one in ordered))


def in_order(resource: Resource) -> Sequence[Subresource]:
    """Those of custom resources as Kubernetes makes them, the status first; others by name."""
    return resource.subresources if resource.is_custom else sorted(resource.subresources, key=lambda one: one.name)


def _plural(resource: Resource) -> str:
    return resource.plural
