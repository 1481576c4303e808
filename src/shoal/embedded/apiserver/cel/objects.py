"""Fields, items, lists, maps and objects of types: reading them and making them.

Mutating policies make objects by type (`Object{spec: Object.spec{replicas: 1}}`). Types mean nothing there but
to say where in the object a value belongs, so such an object is a map, and its type must be its path.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

from shoal.embedded.apiserver.cel.code import Code, NodeCompiler, Scope
from shoal.embedded.apiserver.cel.faults import NO_OVERLOAD, CelFault
from shoal.embedded.apiserver.cel.functions.authorization import request_resource
from shoal.embedded.apiserver.cel.functions.times import parse_duration, parse_timestamp
from shoal.embedded.apiserver.cel.kinds import DYN, CelType
from shoal.embedded.apiserver.cel.tree import Const, ListOf, StructOf
from shoal.embedded.apiserver.cel.values import NONE, Opaque, Optional, Uint

_ESCAPES = {"__underscores__": "__", "__dot__": ".", "__dash__": "-", "__slash__": "/"}
_RESERVED = re.compile(
    r"__(true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|"
    r"void|while)__"
)


def unescaped(name: str) -> str:
    """The property that a rule means: what could not be written as a name is escaped."""
    if "__" not in name:
        return name
    whole = _RESERVED.fullmatch(name)
    if whole:
        return whole[1]
    return re.sub("|".join(_ESCAPES), lambda found: _ESCAPES[found[0]], name)


def field(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        try:
            found = value[name]
        except KeyError:
            raise CelFault(f"no such key: {name}") from None
        return found() if callable(found) else found
    if isinstance(value, Optional):
        return optional_field(value, name)
    if name == "requestResource" and isinstance(value, Opaque) and value.kind == "authorizer":
        return request_resource(value)
    raise CelFault(NO_OVERLOAD)


def coerced(kind: CelType, run: Callable[[Scope], Any]) -> Callable[[Scope], Any]:
    """JSON has fewer types than schemas: what a schema calls a time is text there, and 3 may be a double."""
    convert = _CONVERSIONS.get(kind.name)
    if convert is None:
        return run
    written, make = convert

    def converted(scope: Scope) -> Any:
        value = run(scope)
        return make(value) if isinstance(value, written) and not isinstance(value, bool) else value

    return converted


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        raise CelFault("illegal base64 data") from None


_CONVERSIONS: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "double": (int, float),
    "bytes": (str, _decoded),
    "timestamp": (str, lambda text: parse_timestamp(text if "T" in text.upper() else f"{text}T00:00:00Z")),
    "duration": (str, parse_duration),
}


def has_field(value: Any, name: str) -> bool:
    if isinstance(value, Optional):
        return value.is_there and has_field(value.value, name)
    if not isinstance(value, dict):
        raise CelFault(NO_OVERLOAD)
    return name in value


def optional_field(value: Any, name: str) -> Optional:
    if isinstance(value, Optional):
        return optional_field(value.value, name) if value.is_there else NONE
    if not isinstance(value, dict):
        raise CelFault(NO_OVERLOAD)
    return Optional(field(value, name)) if name in value else NONE


def item(value: Any, key: Any) -> Any:
    if isinstance(value, Optional):
        return optional_item(value, key)
    if isinstance(value, dict):
        if isinstance(key, dict | list) or key not in value:
            raise CelFault(f"no such key: {key}")
        return field(value, key) if isinstance(key, str) else value[key]
    if isinstance(value, list):
        place = int(key) if isinstance(key, float) and key.is_integer() else key
        if not isinstance(place, int) or isinstance(place, bool):
            raise CelFault(f"unsupported index type '{type(key).__name__}' in list")
        if not 0 <= place < len(value):
            raise CelFault(f"index out of bounds: {place}")
        return value[place]
    raise CelFault(NO_OVERLOAD)


def optional_item(value: Any, key: Any) -> Optional:
    if isinstance(value, Optional):
        return optional_item(value.value, key) if value.is_there else NONE
    try:
        return Optional(item(value, key))
    except CelFault:
        return NONE


# -- making ------------------------------------------------------------------------------------------------------


def list_code(compiler: NodeCompiler, node: ListOf) -> Code:

    codes = [compiler.code(one) for one in node.items]
    parts = [(code.run, index in node.optional) for index, code in enumerate(codes)]
    names = {code.kind.name for code in codes}
    items = codes[0].kind if len(names) == 1 and not node.optional else DYN

    def run(scope: Scope) -> list[Any]:
        made = []
        for part, is_optional in parts:
            value = part(scope)
            if not is_optional:
                made.append(value)
            elif value.is_there:
                made.append(value.value)
        return made

    return Code(CelType("list", items, len(codes)), run, 10 + sum(code.cost for code in codes))


def struct_code(compiler: NodeCompiler, node: StructOf, at: str = "") -> Code:

    kind = _struct_kind(compiler, node, at)
    parts = []
    cost = 30
    for entry in node.entries:
        key = compiler.code(entry.key)
        where = ""
        if node.name and node.name != "JSONPatch" and isinstance(entry.key, Const):
            where = f"{node.name}.{entry.key.value}"
        value = _value_code(compiler, entry.value, where)
        parts.append((key.run, value.run, entry.is_optional))
        cost += key.cost + value.cost
    is_patch = node.name == "JSONPatch"

    def run(scope: Scope) -> Any:
        made: dict[Any, Any] = {}
        for key_of, value_of, is_optional in parts:
            value = value_of(scope)
            if is_optional:
                if not value.is_there:
                    continue
                value = value.value
            name = key_of(scope)
            if not isinstance(name, str | bool | int | Uint):
                raise CelFault(f"unsupported key type: {type(name).__name__}")
            made[name] = value
        return Opaque("JSONPatch", made) if is_patch else made

    return Code(kind, run, cost)


def _value_code(compiler: NodeCompiler, node: Any, at: str) -> Code:
    """Of an object's field; the types of objects further down must name their place."""
    if isinstance(node, StructOf) and node.name:
        return struct_code(compiler, node, at)
    return compiler.code(node)


def _struct_kind(compiler: NodeCompiler, node: StructOf, at: str) -> CelType:
    if not node.name:
        return CelType("map", DYN, len(node.entries))
    if node.name == "JSONPatch":
        _check_patch(compiler, node)
        return CelType("JSONPatch")
    if "Object" not in compiler.types or not re.match(r"Object(\.|$)", node.name):
        raise compiler.fault(node, f"undeclared reference to '{node.name}' (in container '')")
    if at and node.name != at:
        words = (
            f'unexpected type name "{node.name}", expected "{at}", which matches field name path from root Object type'
        )
        raise compiler.fault(node, words)
    return CelType("Object")


def _check_patch(compiler: NodeCompiler, node: StructOf) -> None:
    if "JSONPatch" not in compiler.types:
        raise compiler.fault(node, "undeclared reference to 'JSONPatch' (in container '')")
    for entry in node.entries:
        name = entry.key.value if isinstance(entry.key, Const) else ""
        if name not in ("op", "path", "from", "value"):
            raise compiler.fault(node, f"undefined field '{name}'")
