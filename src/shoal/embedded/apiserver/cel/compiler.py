"""A syntax tree becomes closures, and is checked on the way.

Each node yields `Code`: what it comes to (`kinds.py`), how to get it, and what that costs at most. Closures read
variables from one dict, the scope; loops put their variable there and take it away again. Rejected: a tree walk at
evaluation, which is three times slower.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.cel import logic, loops, objects
from shoal.embedded.apiserver.cel.code import MOST_COST, Code, Run, Scope
from shoal.embedded.apiserver.cel.faults import NO_OVERLOAD, CelFault, OutOfBudget
from shoal.embedded.apiserver.cel.functions import FUNCTIONS, Overload
from shoal.embedded.apiserver.cel.kinds import BOOL, DYN, CelType
from shoal.embedded.apiserver.cel.lazy import Lazy
from shoal.embedded.apiserver.cel.tree import AstNode, Call, Const, Fold, Ident, ListOf, Parsed, Select, StructOf
from shoal.embedded.apiserver.cel.values import TypeName, Uint, kind_name

_TYPES = {"int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"}


class Compiler:
    """One expression on its way."""

    def __init__(self, parsed: Parsed, variables: Mapping[str, CelType], types: frozenset[str] = frozenset()) -> None:
        self.parsed = parsed
        self.types = types
        """Of `Object` and `JSONPatch`, what may be made."""
        self.variables: dict[str, CelType] = dict(variables)
        self.mentioned: set[str] = set()

    def compiled(self) -> Code:
        return self.code(self.parsed.root)

    def code(self, node: AstNode) -> Code:
        match node:
            case Const():
                value = Uint(node.value) if node.kind == "uint" else node.value
                return Code(CelType(node.kind, most=len(value) if isinstance(value, str) else 1), lambda _: value, 0)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return objects.list_code(self, node)
            case StructOf():
                return objects.struct_code(self, node)
            case Fold():
                return loops.fold_code(self, node)
        raise self.fault(node, "unsupported expression")

    def fault(self, node: AstNode, words: str) -> CelFault:
        return self.parsed.fault(node, words)

    # -- names and fields ----------------------------------------------------------------------------------------

    def _ident(self, node: Ident) -> Code:
        name = node.name
        kind = self.variables.get(name)
        if kind is not None:
            self.mentioned.add(name)
            return Code(kind, objects.coerced(kind, lambda scope: _variable(scope, name)))
        if name in _TYPES:
            named = TypeName(name)
            return Code(CelType("type"), lambda _: named, 0)
        raise self.fault(node, f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: Select) -> Code:
        dotted = self.qualified(node)
        if dotted in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            named = TypeName("timestamp" if dotted.endswith("Timestamp") else "duration")
            return Code(CelType("type"), lambda _: named, 0)
        operand = self.code(node.operand)
        name = objects.unescaped(node.field) if operand.kind.name == "object" else node.field
        kind = _inner(operand.kind).field(name)
        if kind is None:
            raise self.fault(node, f"undefined field '{node.field}'")
        if operand.kind.name in _NO_FIELDS:
            raise self.fault(node, f"type '{operand.kind.shown()}' does not support field selection")
        run = operand.run
        if node.is_test:
            return Code(BOOL, lambda scope: objects.has_field(run(scope), name), operand.cost + 1)
        if operand.kind.name == "optional_type":
            made = CelType("optional_type", kind)
            return Code(made, lambda scope: objects.optional_field(run(scope), name), operand.cost + 1)
        return Code(kind, objects.coerced(kind, lambda scope: objects.field(run(scope), name)), operand.cost + 1)

    def qualified(self, node: AstNode) -> str:
        """A dotted name that begins with no variable; empty for anything else."""
        if isinstance(node, Ident):
            return "" if node.name in self.variables else node.name
        if isinstance(node, Select) and not node.is_test:
            head = self.qualified(node.operand)
            return f"{head}.{node.field}" if head else ""
        return ""

    # -- calls ---------------------------------------------------------------------------------------------------

    def _call(self, node: Call) -> Code:
        special = logic.SPECIAL.get(node.function) if node.target is None else None
        if special is not None:
            return special(self, node)
        if loops.is_two_variable(node):
            return loops.two_variable_code(self, node)
        if loops.is_sorting(node):
            return loops.sorting_code(self, node)
        name, target = node.function, node.target
        if target is not None:
            head = self.qualified(target)
            if head and f"{head}.{name}" in FUNCTIONS:
                name, target = f"{head}.{name}", None
        arguments = [self.code(one) for one in ((target, *node.args) if target is not None else node.args)]
        return self.applied(node, name, arguments, is_member=target is not None)

    def applied(self, node: AstNode, name: str, arguments: list[Code], *, is_member: bool) -> Code:
        """A function of the tables on given arguments."""
        known = [one for one in FUNCTIONS.get(name, ()) if one.is_member == is_member]
        if not known:
            raise self.fault(node, f"undeclared reference to '{name}' (in container '')")
        kinds = [argument.kind for argument in arguments]
        fitting = [one for one in known if _may_fit(one, kinds)]
        if not fitting:
            shown = ", ".join(kind.shown() for kind in kinds)
            if is_member:
                shown = f"{kinds[0].shown()}.({', '.join(kind.shown() for kind in kinds[1:])})"
            else:
                shown = f"({shown})"
            raise self.fault(node, f"found no matching overload for '{name}' applied to '{shown}'")
        results = {one.result for one in fitting}
        kind = logic.result_kind(fitting[0].result, kinds) if len(results) == 1 else DYN
        cost = 1 + sum(argument.cost for argument in arguments) + logic.reading_cost(name, kinds)
        return Code(kind, _applying(fitting, [one.run for one in arguments]), min(cost, MOST_COST))


_NO_FIELDS = frozenset(
    {"bool", "int", "uint", "double", "string", "bytes", "list", "null_type", "timestamp", "duration"}
)


def _inner(kind: CelType) -> CelType:
    return kind.items or DYN if kind.name == "optional_type" else kind


def _variable(scope: Scope, name: str) -> Any:
    try:
        value = scope[name]
    except KeyError:
        raise CelFault(f"no such attribute(s): {name}") from None
    return value() if isinstance(value, Lazy) else value


def _may_fit(overload: Overload, kinds: list[CelType]) -> bool:
    return len(overload.takes) == len(kinds) and all(map(_may_be, overload.takes, kinds))


def _may_be(wanted: str, kind: CelType) -> bool:
    found = "map" if kind.name == "object" else kind.name
    return wanted in ("dyn", found) or found == "dyn"


def _applying(overloads: list[Overload], runs: list[Run]) -> Run:
    tables = [(overload.takes, overload.does) for overload in overloads]

    def apply(scope: Scope) -> Any:
        scope["@left"] -= 1
        if scope["@left"] < 0:
            raise OutOfBudget
        values = [run(scope) for run in runs]
        names = [kind_name(value) for value in values]
        for takes, does in tables:
            if all(wanted in ("dyn", name) for wanted, name in zip(takes, names, strict=True)):
                return does(*values)
        raise CelFault(NO_OVERLOAD)

    return apply
