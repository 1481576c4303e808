"""OpenAPI documents of what a catalog serves, made when asked for and kept until the catalog changes.

Version 3 has an index of one document per group and version, and one per path of discovery. Their addresses carry a
hash, so that clients may keep them. Version 2 is one document of everything. Descriptions of fields are loaded with the
first document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from shoal.data.kubernetes_schemas import NEWEST
from shoal.embedded.apiserver.openapi.definitions import META, Definitions, custom_name, list_kind
from shoal.embedded.apiserver.openapi.dialect import V2, V3, Dialect, Json
from shoal.embedded.apiserver.openapi.operations import UNAUTHORIZED, Naming, camel, paths
from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.schema.kubernetes import GoSchema

_EVERYWHERE = tuple(f"{META}.{kind}" for kind in ("DeleteOptions", "Patch", "Status", "WatchEvent", "APIResourceList"))
_OF_GROUPS = tuple(f"{META}.{kind}" for kind in ("APIGroup", "APIGroupList", "APIVersions"))


class SchemaCatalog(Protocol):
    @property
    def stamp(self) -> int: ...

    def all(self) -> Iterable[Resource]: ...


class Documents:
    """`minor` is the Kubernetes version whose schemas are served."""

    def __init__(self, catalog: SchemaCatalog, minor: str = NEWEST) -> None:
        self._catalog = catalog
        self._minor = minor
        self._stamp = -1
        self._kept: dict[object, Any] = {}
        self._definitions: dict[int, Definitions] = {}

    def index_v3(self) -> Json:
        """The document served at `/openapi/v3`."""
        found: Json | None = self._known("index")
        if found is None:
            by_path: dict[str, list[Resource]] = {}
            for resource in self._catalog.all():
                by_path.setdefault(_path(resource.group, resource.version), []).append(resource)
            listed = {path: {"serverRelativeURL": _address(path, self._hash(all_))} for path, all_ in by_path.items()}
            for path in of_groups(self._catalog.all()):
                listed[path] = {
                    "serverRelativeURL": _address(path, hashlib.sha256(self._minor.encode()).hexdigest().upper())
                }
            found = {"paths": dict(sorted(listed.items()))}
            self._kept["index"] = found
        return found

    def document_v3(self, group: str, version: str) -> bytes | None:
        """The document served at `/openapi/v3/apis/<group>/<version>`; None when nothing of it is served."""
        key = (group, version)
        found: bytes | None = self._known(key)
        if found is None:
            resources = [one for one in self._catalog.all() if (one.group, one.version) == key]
            if not resources:
                return None
            found = self._kept[key] = self._document(resources, V3)
        return found

    def document_of_group(self, path: str) -> bytes | None:
        """The document served at `/openapi/v3/api`, `/openapi/v3/apis` and `/openapi/v3/apis/<group>`."""
        if path not in of_groups(self._catalog.all()):
            return None
        operation, definition = group_path(path, V3)
        schemas = dict(sorted(self._defined(V3).closure({definition}).items()))
        return msgspec.json.encode(V3.document(self._minor, operation, schemas))

    def document_v2(self) -> bytes:
        """The document served at `/openapi/v2`."""
        found: bytes | None = self._known("v2")
        if found is None:
            found = self._kept["v2"] = self._document(self._catalog.all(), V2)
        return found

    def document_v2_protobuf(self) -> bytes:
        """The same for clients that take it in protobuf only."""
        from shoal.embedded.apiserver.openapi.gnostic import encode_document

        found: bytes | None = self._known("v2 protobuf")
        if found is None:
            found = self._kept["v2 protobuf"] = encode_document(msgspec.json.decode(self.document_v2()))
        return found

    def _known(self, key: object) -> Any:
        if self._stamp != self._catalog.stamp:
            self._stamp = self._catalog.stamp
            self._kept.clear()
        return self._kept.get(key)

    def _defined(self, dialect: Dialect) -> Definitions:
        definitions = self._definitions.get(dialect.version)
        if definitions is None:
            definitions = self._definitions[dialect.version] = Definitions(self._minor, dialect)
        return definitions

    def _document(self, resources: Iterable[Resource], dialect: Dialect) -> bytes:
        definitions = self._defined(dialect)
        found_paths: Json = {}
        custom: Json = {}
        wanted = {*_EVERYWHERE, *(_OF_GROUPS if dialect is V2 else ()), f"{META}.ObjectMeta", f"{META}.ListMeta"}
        for resource in resources:
            naming = _naming(resource, definitions)
            if resource.is_custom:
                custom.update(definitions.custom(resource))
            wanted |= {naming.one, naming.many}
            wanted |= {
                _spoken(resource, sub.kind, sub.group, sub.version, definitions) for sub in resource.subresources
            }
            found_paths.update(paths(resource, naming, dialect))
        schemas = dict(sorted((definitions.closure(wanted) | custom).items()))
        return msgspec.json.encode(dialect.document(self._minor, dict(sorted(found_paths.items())), schemas))

    def _hash(self, resources: Iterable[Resource]) -> str:
        """Of what a document is made from, which is cheaper than the document and changes with it."""
        said = hashlib.sha256(self._minor.encode())
        for one in resources:
            shape = (one.api_version, one.plural, one.kind, one.namespaced, one.verbs, one.subresources)
            said.update(msgspec.json.encode((shape, one.schema.published)))
        return said.hexdigest().upper()


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _address(path: str, hashed: str) -> str:
    return f"/openapi/v3/{path}?hash={hashed}"


def _naming(resource: Resource, definitions: Definitions) -> Naming:
    if resource.is_custom:
        many = custom_name(resource, list_kind(resource))
        return Naming(custom_name(resource, resource.kind), many, definitions.name_of)
    schema = resource.schema
    one = schema.definition if isinstance(schema, GoSchema) and schema.definition else ""
    one = one or definitions.name_of(resource.group, resource.version, resource.kind)
    many = definitions.name_of(resource.group, resource.version, list_kind(resource)) or one
    return Naming(one, many, definitions.name_of)


def _spoken(resource: Resource, kind: str, group: str, version: str, definitions: Definitions) -> str:
    if not version:
        group, version = resource.group, resource.version
    return definitions.name_of(group, version, kind or resource.kind)


_LIST = "get available API versions"


def of_groups(resources: Iterable[Resource]) -> list[str]:
    """Of the built-in groups: Kubernetes describes no other."""
    named = {f"apis/{one.group}" for one in resources if one.group and not one.is_custom}
    return ["api", "apis", *sorted(named)]


def group_path(path: str, dialect: Dialect) -> tuple[Json, str]:
    """The operation, and the definition of what it answers."""
    group = path.partition("/")[2]
    name = camel(group)
    said, tag, operation, definition = {
        "api": (_LIST, "core", "getCoreAPIVersions", "APIVersions"),
        "apis": (_LIST, "apis", "getAPIVersions", "APIGroupList"),
    }.get(path, ("get information of a group", name[:1].lower() + name[1:], f"get{name}APIGroup", "APIGroup"))
    answer = {**dialect.answer(f"{META}.{definition}", "200"), **UNAUTHORIZED}
    found = {"tags": [tag], "description": said, "operationId": operation, "responses": answer}
    return {f"/{path}/": {"get": found}}, f"{META}.{definition}"
