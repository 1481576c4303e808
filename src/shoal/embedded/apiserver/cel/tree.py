"""The syntax tree of an expression, read from the CEL library's own parser.

The library (`cel-expr-python`) parses the whole language and expands its macros; it hands the tree out as protobuf,
which is read here field by field (the protobuf package is not needed for that). It does not evaluate here: it knows no
types but its own, so Kubernetes' URLs, addresses and authorizers cannot live in it; its loops stop at a small fixed
budget, and macros over two variables are unknown to it. `compiler.py` turns the tree into closures instead.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from shoal.embedded.apiserver.cel.faults import CelFault


class AstNode(msgspec.Struct, frozen=True):
    id: int


class Const(AstNode, frozen=True):
    value: Any
    kind: str


class Ident(AstNode, frozen=True):
    name: str


class Select(AstNode, frozen=True):
    operand: AstNode
    field: str
    is_test: bool


class Call(AstNode, frozen=True):
    target: AstNode | None
    function: str
    args: tuple[AstNode, ...]


class ListOf(AstNode, frozen=True):
    items: tuple[AstNode, ...]
    optional: frozenset[int]


class MapEntry(msgspec.Struct, frozen=True):
    key: AstNode
    value: AstNode
    is_optional: bool


class StructOf(AstNode, frozen=True):
    """A map, or with a name an object of a type."""

    name: str
    entries: tuple[MapEntry, ...]


class Fold(AstNode, frozen=True):
    """What the macros over one variable become."""

    variable: str
    over: AstNode
    result_name: str
    start: AstNode
    condition: AstNode
    step: AstNode
    result: AstNode


class Parsed(msgspec.Struct, frozen=True):
    root: AstNode
    text: str
    positions: dict[int, int]

    def fault(self, node: AstNode, words: str) -> CelFault:
        """A complaint about a place in the text, drawn as CEL draws it."""
        offset = min(self.positions.get(node.id, 0), len(self.text))
        before = self.text[:offset]
        line = before.count("\n")
        column = len(before) - (before.rfind("\n") + 1)
        shown = (self.text.split("\n") or [""])[line]
        return CelFault(f"ERROR: <input>:{line + 1}:{column + 1}: {words}\n | {shown}\n | {'.' * column}^")


@lru_cache(maxsize=1)
def _environment() -> Any:
    # Forty milliseconds, which a server without expressions does not pay.
    from cel_expr_python import cel
    from cel_expr_python.ext.ext_bindings import ExtBindings
    from cel_expr_python.ext.ext_optional import ExtOptional

    return cel.NewEnv(variables={}, extensions=[ExtBindings(), ExtOptional()])


@lru_cache(maxsize=1024)
def parse(text: str) -> Parsed:
    """Kept, since an expression is compiled where it is written and again where it is read."""
    try:
        wire: bytes = _environment().compile(text, disable_check=True).serialize()
    except (RuntimeError, ValueError, UnicodeError) as error:
        words = str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
        raise CelFault(words) from error
    root: AstNode | None = None
    positions: dict[int, int] = {}
    try:
        for number, held in _fields(_last(wire, 2)):
            if number == 2:
                root = _node(held)
            elif number == 3:
                positions = _positions(held)
    except RecursionError as error:
        raise CelFault("the expression is nested too deeply") from error
    if root is None:
        raise CelFault("the expression is empty")
    return Parsed(root, text, positions)


# -- wire format -------------------------------------------------------------------------------------------------


def _varint(wire: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = wire[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(wire: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(wire):
        tag, at = _varint(wire, at)
        number, form = tag >> 3, tag & 7
        if form == 0:
            value, at = _varint(wire, at)
            yield number, value
        elif form == 1:
            yield number, wire[at : at + 8]
            at += 8
        else:
            length, at = _varint(wire, at)
            yield number, wire[at : at + length]
            at += length


def _last(wire: bytes, wanted: int) -> bytes:
    found = b""
    for number, held in _fields(wire):
        if number == wanted:
            found = held
    return found


def _positions(wire: bytes) -> dict[int, int]:
    found = {}
    for number, held in _fields(wire):
        if number == 4:
            entry = dict(_fields(held))
            found[entry.get(1, 0)] = entry.get(2, 0)
    return found


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _constant(wire: bytes) -> tuple[Any, str]:
    for number, held in _fields(wire):
        match number:
            case 1:
                return None, "null_type"
            case 2:
                return bool(held), "bool"
            case 3:
                return _signed(held), "int"
            case 4:
                return held, "uint"
            case 5:
                return struct.unpack("<d", held)[0], "double"
            case 6:
                return held.decode(), "string"
            case 7:
                return held, "bytes"
    return None, "null_type"


def _node(wire: bytes) -> AstNode:
    number_of = 0
    form, body = 0, b""
    for number, held in _fields(wire):
        if number == 2:
            number_of = held
        else:
            form, body = number, held
    match form:
        case 3:
            return Const(number_of, *_constant(body))
        case 4:
            return Ident(number_of, _last(body, 1).decode())
        case 5:
            return _select(number_of, body)
        case 6:
            return _call(number_of, body)
        case 7:
            return _list(number_of, body)
        case 8:
            return _struct(number_of, body)
        case 9:
            return _fold(number_of, body)
    raise CelFault("unsupported expression")


def _select(number_of: int, wire: bytes) -> Select:
    operand, name, is_test = b"", "", False
    for number, held in _fields(wire):
        if number == 1:
            operand = held
        elif number == 2:
            name = held.decode()
        elif number == 3:
            is_test = bool(held)
    return Select(number_of, _node(operand), name, is_test)


def _call(number_of: int, wire: bytes) -> Call:
    target: AstNode | None = None
    function = ""
    args = []
    for number, held in _fields(wire):
        if number == 1:
            target = _node(held)
        elif number == 2:
            function = held.decode()
        elif number == 3:
            args.append(_node(held))
    return Call(number_of, target, function, tuple(args))


def _list(number_of: int, wire: bytes) -> ListOf:
    items = []
    optional: set[int] = set()
    for number, held in _fields(wire):
        if number == 1:
            items.append(_node(held))
        elif isinstance(held, int):
            optional.add(held)
        else:
            at = 0
            while at < len(held):
                index, at = _varint(held, at)
                optional.add(index)
    return ListOf(number_of, tuple(items), frozenset(optional))


def _struct(number_of: int, wire: bytes) -> StructOf:
    name = ""
    entries = []
    for number, held in _fields(wire):
        if number == 1:
            name = held.decode()
            continue
        key: AstNode = Const(number_of, "", "string")
        value: AstNode = Const(number_of, None, "null_type")
        is_optional = False
        for place, part in _fields(held):
            if place == 2:
                key = Const(number_of, part.decode(), "string")
            elif place == 3:
                key = _node(part)
            elif place == 4:
                value = _node(part)
            elif place == 5:
                is_optional = bool(part)
        entries.append(MapEntry(key, value, is_optional))
    return StructOf(number_of, name, tuple(entries))


def _fold(number_of: int, wire: bytes) -> Fold:
    held = dict(_fields(wire))
    return Fold(
        number_of,
        held[1].decode(),
        _node(held[2]),
        held[3].decode(),
        *(_node(held[number]) for number in (4, 5, 6, 7)),
    )
