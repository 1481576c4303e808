"""One mutation of a policy: an object to be laid over the written one as server-side apply does, or a JSON patch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission_expressions import Expression, Scope
from shoal.embedded.apiserver.apply.checking import check
from shoal.embedded.apiserver.apply.merging import merged
from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.kinds import CelType
from shoal.embedded.apiserver.cel.plain import to_json
from shoal.embedded.apiserver.dynamic.operations import PatchFault, UnmetTest, applied
from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.schema.node import ANY, Schema

Obj = dict[str, Any]


class MutationFault(Exception):  # noqa: N818 - the failure policy decides what it means
    """A mutation that could not be made."""


class Mutation(msgspec.Struct, frozen=True, eq=False):
    expression: Expression
    is_patch: bool

    def made(self, obj: Obj, scope: Scope, resource: Resource) -> Obj:
        """The object with the mutation made; the argument stays as it is."""
        try:
            value = to_json(self.expression.value(dict(scope)))
        except CelFault as fault:
            raise MutationFault(str(fault)) from None
        return _patched(obj, value) if self.is_patch else _laid_over(obj, value, resource)


def compiled(spec: Mapping[str, Any], visible: Mapping[str, CelType]) -> tuple[Mutation, ...]:
    made = []
    for one in spec.get("mutations") or ():
        is_patch = one.get("patchType") == "JSONPatch"
        written = one.get("jsonPatch" if is_patch else "applyConfiguration") or {}
        made.append(Mutation(Expression(written.get("expression", ""), visible, "any", mutates=True), is_patch))
    return tuple(made)


def _patched(obj: Obj, operations: Any) -> Obj:
    if not isinstance(operations, list):
        raise MutationFault("type mismatch: JSONPatchType.expression should evaluate to array")
    try:
        patched = applied(obj, operations)
    except UnmetTest:
        return obj
    except PatchFault as fault:
        raise MutationFault(f"JSONPath: {fault}") from None
    if not isinstance(patched, dict):
        raise MutationFault("JSONPath: the patched document is not an object")
    return patched


def _laid_over(obj: Obj, value: Any, resource: Resource) -> Obj:
    if not isinstance(value, dict):
        raise MutationFault(f"unsupported return type from ApplyConfiguration expression: {type(value).__name__}")
    config = {**value, "apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    lead = "error applying patch"
    try:
        check(config, resource.schema)
    except status.ApiError as error:
        words = error.message.partition("): ")[2] or error.message
        raise MutationFault(f"{lead}: failed to convert patch object to typed object: {words}") from None
    atomic = ", ".join(_atomic(value, resource.schema, ""))
    if atomic:
        words = f"may not mutate atomic arrays, maps or structs: {atomic}"
        raise MutationFault(f"{lead}: invalid ApplyConfiguration: {words}")
    laid: Obj = merged(obj, config, resource.schema)
    return laid


def _atomic(value: Any, schema: Schema, path: str) -> Iterator[str]:
    """The places where the whole would be replaced though only a part was named."""
    if isinstance(value, dict) and schema.type == "object":
        if schema.map_type == "atomic":
            yield path
        for name, below in value.items():
            shape = schema.properties.get(name)
            if shape is not None:
                yield from _atomic(below, shape, f"{path}.{name}")
    elif isinstance(value, list) and schema.type == "array":
        if schema.list_type == "atomic":
            yield path
        for place, item in enumerate(value):
            yield from _atomic(item, schema.items or ANY, f"{path}[{place}]")
