"""The paths of a document, made up from the resources that are served.

Clients look for three things in them: which kind a path speaks (`x-kubernetes-group-version-kind`), which verbs there
are, and whether writes take `fieldValidation`, without which kubectl would check manifests by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from shoal.embedded.apiserver.openapi.definitions import META
from shoal.embedded.apiserver.openapi.dialect import CUSTOM_PATCHES, JSON_BODY, PATCHES, Dialect, Json
from shoal.embedded.apiserver.resource import Resource, Subresource

_LISTING = (
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
)
_WRITING = (("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"))
_DELETING = (
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
)


class Naming(msgspec.Struct, frozen=True):
    """Which definitions represent a resource in this document."""

    one: str
    many: str
    of_kind: Callable[[str, str, str], str]
    """The definition of a built-in kind, for what subresources speak."""


class _Verb(msgspec.Struct, frozen=True):
    method: str
    action: str
    said: str
    parameters: tuple[tuple[str, str], ...] = ()


_ON_COLLECTION = {
    "list": _Verb("get", "list", "list", _LISTING),
    "create": _Verb("post", "post", "create", _WRITING),
    "deletecollection": _Verb("delete", "deletecollection", "delete", (*_DELETING, *_LISTING)),
}
_ON_OBJECT = {
    "get": _Verb("get", "get", "read"),
    "update": _Verb("put", "put", "replace", _WRITING),
    "patch": _Verb("patch", "patch", "patch", (*_WRITING, ("force", "boolean"))),
    "delete": _Verb("delete", "delete", "delete", _DELETING),
    "create": _Verb("post", "connect", "create", _WRITING),
}


def paths(resource: Resource, naming: Naming, dialect: Dialect) -> Json:
    return _Paths(resource, naming, dialect).all()


class _Paths:
    def __init__(self, resource: Resource, naming: Naming, dialect: Dialect) -> None:
        self._resource = resource
        self._naming = naming
        self._dialect = dialect
        self._root = f"/{'apis' if resource.group else 'api'}/{resource.api_version}"

    def all(self) -> Json:
        resource = self._resource
        inside = f"{self._root}/namespaces/{{namespace}}" if resource.namespaced else self._root
        collection = f"{inside}/{resource.plural}"
        found = {collection: self._item(_pick(_ON_COLLECTION, resource.verbs), None, ())}
        if resource.namespaced and "list" in resource.verbs:
            listing = self._operation(_ON_COLLECTION["list"], None, "ForAllNamespaces", is_everywhere=True)
            found[f"{self._root}/{resource.plural}"] = {"get": listing}
        verbs = tuple(verb for verb in resource.verbs if verb != "create")
        found[f"{collection}/{{name}}"] = self._item(_pick(_ON_OBJECT, verbs), None, ("name",))
        for sub in resource.subresources:
            item = self._item(_pick(_ON_OBJECT, sub.verbs), sub, ("name",))
            found[f"{collection}/{{name}}/{sub.name}"] = item
        return {path: item for path, item in found.items() if item.keys() - {"parameters"}}

    def _item(self, verbs: Sequence[_Verb], sub: Subresource | None, in_path: tuple[str, ...]) -> Json:
        named = (*in_path, "namespace") if self._resource.namespaced else in_path
        item: Json = {verb.method: self._operation(verb, sub, "") for verb in verbs}
        if named:
            item["parameters"] = [self._dialect.parameter(name, "path", "string") for name in named]
        return item

    def _operation(self, verb: _Verb, sub: Subresource | None, ending: str, *, is_everywhere: bool = False) -> Json:
        resource, dialect = self._resource, self._dialect
        group, version, kind, definition = self._speaks(sub)
        parameters = [dialect.parameter(name, "query", type_) for name, type_ in verb.parameters]
        found: Json = {
            "tags": [camel(resource.group)[:1].lower() + camel(resource.group)[1:] + "_" + resource.version],
            "operationId": self._identifier(verb, sub, is_everywhere) + ending,
            "responses": {**dialect.answer(self._answered(verb, definition), "200"), **UNAUTHORIZED},
            "x-kubernetes-action": verb.action,
            "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
        }
        body = self._body(verb, definition)
        parameters += body.pop("parameters", [])
        return {**found, **body, **({"parameters": parameters} if parameters else {})}

    def _speaks(self, sub: Subresource | None) -> tuple[str, str, str, str]:
        resource = self._resource
        if sub is None or not sub.kind:
            return resource.group, resource.version, resource.kind, self._naming.one
        group, version = (sub.group, sub.version) if sub.version else (resource.group, resource.version)
        definition = self._naming.of_kind(group, version, sub.kind)
        return group, version, sub.kind, definition or self._naming.one

    def _answered(self, verb: _Verb, definition: str) -> str:
        if verb.action == "list":
            return self._naming.many
        return f"{META}.Status" if verb.method == "delete" else definition

    def _body(self, verb: _Verb, definition: str) -> Json:
        if verb.method == "delete":
            return self._dialect.body(f"{META}.DeleteOptions", (JSON_BODY,))
        if verb.method == "patch":
            media = CUSTOM_PATCHES if self._resource.is_custom else PATCHES
            return self._dialect.body(f"{META}.Patch", media)
        return self._dialect.body(definition, (JSON_BODY,)) if verb.method in ("post", "put") else {}

    def _identifier(self, verb: _Verb, sub: Subresource | None, is_everywhere: bool) -> str:
        resource = self._resource
        scope = "Namespaced" if resource.namespaced and not is_everywhere else ""
        bulk = "Collection" if verb.action == "deletecollection" else ""
        below = sub.name[:1].upper() + sub.name[1:] if sub is not None else ""
        return f"{verb.said}{camel(resource.group)}{camel(resource.version)}{bulk}{scope}{resource.kind}{below}"


UNAUTHORIZED = {"401": {"description": "Unauthorized"}}


def _pick(known: dict[str, _Verb], verbs: Sequence[str]) -> list[_Verb]:
    return [one for verb, one in known.items() if verb in verbs]


def camel(name: str) -> str:
    if not name:
        return "Core"
    parts = name.removesuffix(".k8s.io").replace("-", ".").split(".")
    return "".join(part[:1].upper() + part[1:] for part in parts)
