"""The schema part of a document: definitions as they are published, with everything they refer to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.data.kubernetes_schemas import Described, StoredDefinition, StoredField, definitions, descriptions
from shoal.embedded.apiserver.openapi.dialect import Dialect, Json
from shoal.embedded.apiserver.resource import Resource

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_TIMES = (f"{META}.Time", f"{META}.MicroTime")
_ANYTHING = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"
_EXAMPLE = "io.k8s.api.core.v1.Pod"
"""A kind whose words about its type and metadata are those of all kinds."""
_UNSAID = Described("", {})
_X = "x-kubernetes-"
# Version 2 has no words for these, and clients of it stop at them.
_VERSION_3_ONLY = frozenset(("oneOf", "anyOf", "allOf", "not", "nullable", "x-kubernetes-validations"))


class Definitions:
    """Collects definitions for one document; built-in ones are translated once and kept."""

    def __init__(self, minor: str, dialect: Dialect) -> None:
        self._dialect = dialect
        self._stored = definitions(minor)
        self._words = descriptions(minor)
        self._by_kind = {kind: name for name, one in self._stored.items() for kind in one.kinds}
        self._translated: dict[str, tuple[Json, frozenset[str]]] = {}

    def name_of(self, group: str, version: str, kind: str) -> str:
        """A built-in kind's definition, or empty."""
        return self._by_kind.get((group, version, kind), "")

    def closure(self, names: Iterable[str]) -> Json:
        """The named definitions and all that they lead to, in alphabetical order."""
        found: dict[str, Json] = {}
        waiting = [name for name in names if name in self._stored]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name], leads_to = self._definition(name)
                waiting.extend(leads_to)
        return dict(sorted(found.items()))

    def _definition(self, name: str) -> tuple[Json, frozenset[str]]:
        if name not in self._translated:
            refs: set[str] = set()
            stored, said = self._stored[name], self._words.get(name, _UNSAID)
            self._translated[name] = self._translate(name, stored, said, refs), frozenset(refs)
        return self._translated[name]

    def _translate(self, name: str, stored: StoredDefinition, said: Described, refs: set[str]) -> Json:
        if name == QUANTITY:
            return self._dialect.either("number", "", said.text)
        if name == INT_OR_STRING:
            return self._dialect.either("integer", "int-or-string", said.text)
        found: Json = {"description": said.text} if said.text else {}
        if name in _TIMES:
            return {**found, "type": "string", "format": "date-time"}
        if name.startswith(_ANYTHING) and not stored.fields:
            return found
        found["type"] = "object"
        if stored.fields:
            found["properties"] = {
                key: self._field(field, said.fields.get(key, ""), refs) for key, field in stored.fields.items()
            }
        if stored.required:
            found["required"] = list(stored.required)
        if stored.map_type:
            found[f"{_X}map-type"] = stored.map_type
        if stored.kinds:
            found[f"{_X}group-version-kind"] = [_gvk(*kind) for kind in stored.kinds]
        return found

    def _field(self, field: StoredField, text: str, refs: set[str]) -> Json:
        extras: Json = {"description": text} if text else {}
        if field.list_type:
            extras[f"{_X}list-type"] = field.list_type
        if field.map_keys:
            extras[f"{_X}list-map-keys"] = list(field.map_keys)
        if field.map_type:
            extras[f"{_X}map-type"] = field.map_type
        if field.merge_key:
            extras[f"{_X}patch-merge-key"] = field.merge_key
        if field.patch_strategies:
            extras[f"{_X}patch-strategy"] = ",".join(field.patch_strategies)
        if field.ref:
            refs.add(field.ref)
            return self._dialect.field(field.ref, extras)
        return {**self._value(field, refs), **extras}

    def _value(self, field: StoredField, refs: set[str]) -> Json:
        if field.ref:
            refs.add(field.ref)
            return {"$ref": self._dialect.ref(field.ref)}
        found: Json = {"type": field.type} if field.type else {}
        if field.format:
            found["format"] = field.format
        if field.items is not None:
            found["items"] = self._value(field.items, refs)
        if field.values is not None:
            found["additionalProperties"] = self._value(field.values, refs)
        return found

    def custom(self, resource: Resource) -> Json:
        """The two definitions of a custom resource: the object and its list."""
        name = custom_name(resource, resource.kind)
        published = dict(resource.schema.published) or {"type": "object", f"{_X}preserve-unknown-fields": True}
        schema: Json = published if self._dialect.version == 3 else _for_version_2(published)
        said = {"description": self._words[_EXAMPLE].fields["metadata"]}
        properties = {
            **schema.get("properties", {}),
            **self._type_fields(),
            "metadata": self._dialect.field(f"{META}.ObjectMeta", said),
        }
        one = {**schema, "type": "object", "properties": properties}
        one[f"{_X}group-version-kind"] = [_gvk(resource.group, resource.version, resource.kind)]
        items = {"type": "array", "items": {"$ref": self._dialect.ref(name)}}
        metadata = self._dialect.field(f"{META}.ListMeta", said)
        many = {
            "description": f"{resource.kind}List is a list of {resource.kind}",
            "type": "object",
            "required": ["items"],
            "properties": {**self._type_fields(), "metadata": metadata, "items": items},
            f"{_X}group-version-kind": [_gvk(resource.group, resource.version, list_kind(resource))],
        }
        return {name: one, custom_name(resource, list_kind(resource)): many}

    def _type_fields(self) -> Json:
        said = self._words[_EXAMPLE].fields
        return {key: {"description": said[key], "type": "string"} for key in ("apiVersion", "kind")}


def _gvk(group: str, version: str, kind: str) -> Json:
    return {"group": group, "version": version, "kind": kind}


def list_kind(resource: Resource) -> str:
    return resource.list_kind or f"{resource.kind}List"


def custom_name(resource: Resource, kind: str) -> str:
    """`com.example.v1.Widget`, for the group turned round is the domain of who wrote it."""
    return ".".join((*reversed(resource.group.split(".")), resource.version, kind))


def _for_version_2(schema: Any) -> Any:
    """What version 2 can say of a custom resource; the server checks the whole."""
    if isinstance(schema, list):
        return [_for_version_2(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _for_version_2(one) for key, one in schema.items() if key not in _VERSION_3_ONLY}
    if "type" not in found and schema.get(f"{_X}int-or-string"):
        found["type"], found["format"] = "string", "int-or-string"
    return found
