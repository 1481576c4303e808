"""The discovery documents, made once for each state of the catalog and kept as bytes.

Each carries an ETag, so that a client that has the newest answer gets 304 without a body. Groups that other servers
serve (APIService objects) are added as the aggregated items of those servers: `set_foreign`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from shoal.embedded.apiserver.discovery import aggregated, legacy
from shoal.embedded.apiserver.discovery.accept import Form, Generation, form_of
from shoal.embedded.apiserver.discovery.groups import Group, ServedResources, groups

Obj = dict[str, Any]


class Document(msgspec.Struct, frozen=True):
    body: bytes
    """JSON; the sender converts it to YAML where the content type requires it."""
    content_type: str
    etag: str


class DiscoveryDocuments:
    """All discovery answers. None where nothing is served at the path."""

    def __init__(self, catalog: ServedResources, *, server_address: str) -> None:
        self._catalog = catalog
        self._address = server_address
        self._stamp = -1
        self._groups: dict[str, Group] = {}
        self._made: dict[tuple[str, ...], Document] = {}
        self._foreign: dict[str, Obj] = {}

    def set_foreign(self, items: list[Obj]) -> None:
        """Takes the APIGroupDiscovery items of groups that are served elsewhere; own groups win."""
        self._foreign = {item["metadata"]["name"]: item for item in items}
        self._stamp = -1

    def api(self, accept: str) -> Document:
        """`/api`: the core group."""
        form = form_of(accept, is_aggregated=True, is_routed=True)
        return self._kept(("api",), form, lambda: self._core(form.generation))

    def apis(self, accept: str) -> Document:
        """`/apis`: all named groups."""
        form = form_of(accept, is_aggregated=True, is_routed=False)
        return self._kept(("apis",), form, lambda: self._named(form.generation))

    def group(self, name: str, accept: str = "") -> Document | None:
        """`/apis/<group>`."""
        versions = self._versions().get(name)
        if versions is None or not name:
            return None
        form = form_of(accept, is_aggregated=False, is_routed=False)
        return self._kept(("group", name), form, lambda: legacy.group_document(name, versions))

    def resources(self, group: str, version: str, accept: str = "") -> Document | None:
        """`/api/v1` and `/apis/<group>/<version>`."""
        found = self._current().get(group)
        served = found.resources(version) if found is not None else None
        if found is None or served is None:
            return None
        form = form_of(accept, is_aggregated=False, is_routed=not any(one.is_custom for one in served))
        return self._kept(("resources", group, version), form, lambda: legacy.resource_list(found, version))

    def _current(self) -> dict[str, Group]:
        if self._stamp != self._catalog.stamp:
            self._groups = groups(self._catalog.all())
            self._made.clear()
            self._stamp = self._catalog.stamp
        return self._groups

    def _versions(self) -> dict[str, list[str]]:
        """Every group with its versions, those of other servers after the own."""
        own = {name: [version for version, _ in one.versions] for name, one in self._current().items()}
        foreign = {name: [one["version"] for one in item["versions"]] for name, item in self._foreign.items()}
        return {**own, **{name: versions for name, versions in foreign.items() if name not in own and versions}}

    def _core(self, generation: Generation) -> Obj:
        if generation == "legacy":
            return legacy.api_versions(self._address)
        core = self._current().get("")
        return aggregated.document(generation, [aggregated.group_item(core)] if core else [])

    def _named(self, generation: Generation) -> Obj:
        if generation == "legacy":
            entries = [legacy.group_entry(name, versions) for name, versions in self._versions().items() if name]
            return legacy.group_list(entries)
        own = self._current()
        items = [aggregated.group_item(one) for name, one in own.items() if name]
        return aggregated.document(
            generation, items + [item for name, item in self._foreign.items() if name not in own]
        )

    def _kept(self, path: tuple[str, ...], form: Form, make: Callable[[], Obj]) -> Document:
        self._current()
        key = (*path, form.content_type)
        found = self._made.get(key)
        if found is None:
            body = msgspec.json.encode(make()) + b"\n"
            digest = hashlib.sha512(body + form.content_type.encode()).hexdigest().upper()
            found = Document(body, form.content_type, f'"{digest}"')
            self._made[key] = found
        return found
