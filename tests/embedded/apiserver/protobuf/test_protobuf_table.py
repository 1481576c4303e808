"""The shipped table of fields, held against the published schemas: two sources that must tell the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shoal.embedded.apiserver.builtin import builtin_resources
from shoal.embedded.apiserver.protobuf.messages import messages
from shoal.embedded.apiserver.protobuf.stored import StoredField
from shoal.embedded.apiserver.schema.kubernetes import Shapes
from shoal.embedded.apiserver.schema.node import Schema

SHAPES = Shapes("1.36")
TABLE = messages()
WITHOUT_PROTOBUF = ("apiextensions.k8s.io", "apiregistration.k8s.io")
"""Groups that kubectl does not link."""

KINDS = sorted(
    {
        (one.group, one.version, one.kind)
        for one in builtin_resources(SHAPES, {}, alpha=frozenset({"scheduling.k8s.io/v1alpha2"}))
        if one.group not in WITHOUT_PROTOBUF
    }
    | {("policy", "v1", "Eviction"), ("autoscaling", "v1", "Scale"), ("authentication.k8s.io", "v1", "TokenRequest")}
    | {("", "v1", "DeleteOptions")}
)
TYPES = {"int": "integer", "uint": "integer", "bool": "boolean", "string": "string", "bytes": "string"}


def fields(message: str) -> Iterator[StoredField]:
    """With those of embedded messages, as JSON has them."""
    for field in TABLE.fields(message):
        if field.name:
            yield field
        else:
            yield from fields(field.message)


def differences(message: str, schema: Schema, path: str, seen: set[str]) -> Iterator[str]:
    if message in seen:
        return
    seen.add(message)
    found = {field.name: field for field in fields(message)}
    if set(found) != set(schema.properties) - {"apiVersion", "kind"} and set(found) != set(schema.properties):
        yield f"{path}: {sorted(set(found) ^ set(schema.properties))}"
    for name, field in found.items():
        inner: Schema | None = schema.properties.get(name)
        if inner is not None and field.is_map:
            inner = inner.values
        if inner is not None and field.is_list:
            inner = inner.items
        if inner is None:
            yield f"{path}.{name}: a list or a map here, not there"
        elif field.type == "message":
            yield from differences(field.message, inner, f"{path}.{name}", seen)
        elif field.type in TYPES and inner.type != TYPES[field.type]:
            yield f"{path}.{name}: {field.type} here, {inner.type} there"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "/".join(kind))
def test_a_kind_has_the_fields_of_its_published_schema(kind: tuple[str, str, str]) -> None:
    group, version, name = kind
    message = TABLE.of_kind(f"{group}/{version}" if group else version, name)
    assert message is not None
    assert not list(differences(message, SHAPES.of(group, version, name), name, set()))


def test_numbers_are_used_once_in_a_message() -> None:
    for message in TABLE.names():
        numbers = [field.number for field in TABLE.fields(message)]
        assert len(numbers) == len(set(numbers))


def test_a_kind_that_users_defined_has_no_message() -> None:
    assert TABLE.of_kind("example.com/v1", "Ape") is None
