"""Operators that do not evaluate all their operands, or that need more than a table: and, or, not, choice, indexing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.embedded.apiserver.cel import objects
from shoal.embedded.apiserver.cel.code import Code, NodeCompiler, Scope
from shoal.embedded.apiserver.cel.faults import NO_OVERLOAD, CelFault, OutOfBudget
from shoal.embedded.apiserver.cel.kinds import BOOL, DYN, UNSIZED, CelType
from shoal.embedded.apiserver.cel.tree import Call, Const
from shoal.embedded.apiserver.cel.values import equal

_READS = frozenset({"matches", "find", "findAll", "split", "replace"})
_COMPARES = frozenset({"_==_", "_!=_", "startsWith", "endsWith"})


def result_kind(result: str, kinds: list[CelType]) -> CelType:
    """What a table row comes to; some rows say it by an argument."""
    match result:
        case "dyn":
            return DYN
        case "same":
            return kinds[0]
        case "joined":
            is_untyped = kinds[0].name == "list" and (kinds[0].items is None or not kinds[0].most)
            return kinds[1] if is_untyped else kinds[0]
        case "item":
            return kinds[0].items or DYN
        case "optional_item":
            return CelType("optional_type", kinds[0].items or DYN)
        case "optional_of":
            return CelType("optional_type", kinds[0])
        case "strings":
            return CelType("list", CelType("string"), kinds[0].most)
        case "unsized":
            return CelType("string", most=UNSIZED)
        case "text":
            return CelType("string", most=sum(kind.most for kind in kinds if kind.name == "string"))
    return CelType(result)


def reading_cost(name: str, kinds: list[CelType]) -> int:
    """Texts are read whole by some functions: a tenth of a step per character."""
    texts = [kind.most for kind in kinds if kind.name in ("string", "bytes")]
    if not texts:
        return 0
    if name == "_+_":
        return sum(texts) // 10
    if name in _COMPARES:
        return min(texts) // 10 + 1
    if name == "contains" and len(texts) == 2:
        return (texts[0] // 10 + 1) * (texts[1] // 10 + 1)
    return texts[0] // 10 if name in _READS else 0


def _both(compiler: NodeCompiler, node: Call) -> tuple[Code, Code]:
    return compiler.code(node.args[0]), compiler.code(node.args[1])


def _operands(compiler: NodeCompiler, node: Call) -> list[Code]:
    codes = [compiler.code(one) for one in node.args]
    for code in codes:
        if code.kind.name not in ("bool", "dyn"):
            shown = ", ".join(one.kind.shown() for one in codes)
            raise compiler.fault(node, f"found no matching overload for '{node.function}' applied to '({shown})'")
    return codes


def _and(compiler: NodeCompiler, node: Call) -> Code:
    return _joined(compiler, node, decides=False)


def _or(compiler: NodeCompiler, node: Call) -> Code:
    return _joined(compiler, node, decides=True)


def _joined(compiler: NodeCompiler, node: Call, *, decides: bool) -> Code:
    """Either side decides alone; a failure counts only where the other side does not."""

    left, right = _operands(compiler, node)
    one, other = left.run, right.run

    def run(scope: Scope) -> Any:
        try:
            first = one(scope)
        except OutOfBudget:
            raise
        except CelFault as fault:
            if other(scope) is decides:
                return decides
            raise fault from None
        if first is decides:
            return decides
        second = other(scope)
        if not isinstance(first, bool):
            if second is decides:
                return decides
            raise CelFault(NO_OVERLOAD)
        if not isinstance(second, bool):
            raise CelFault(NO_OVERLOAD)
        return second

    return Code(BOOL, run, left.cost + right.cost)


def _not(compiler: NodeCompiler, node: Call) -> Code:

    (operand,) = _operands(compiler, node)
    inner = operand.run

    def run(scope: Scope) -> bool:
        value = inner(scope)
        if not isinstance(value, bool):
            raise CelFault(NO_OVERLOAD)
        return not value

    return Code(BOOL, run, operand.cost + 1)


def _choice(compiler: NodeCompiler, node: Call) -> Code:

    condition, yes, no = (compiler.code(one) for one in node.args)
    if condition.kind.name not in ("bool", "dyn") or _differ(yes.kind, no.kind):
        shown = ", ".join(one.kind.shown() for one in (condition, yes, no))
        raise compiler.fault(node, f"found no matching overload for '_?_:_' applied to '({shown})'")
    test, left, right = condition.run, yes.run, no.run

    def run(scope: Scope) -> Any:
        value = test(scope)
        if not isinstance(value, bool):
            raise CelFault(NO_OVERLOAD)
        return left(scope) if value else right(scope)

    kind = yes.kind if yes.kind.name == no.kind.name else DYN
    if kind.name == "list" and not yes.kind.most:
        # An empty list has items of any type.
        kind = no.kind
    return Code(kind, run, condition.cost + max(yes.cost, no.cost))


_NUMBERS = frozenset({"int", "uint", "double"})


def _differ(one: CelType, other: CelType) -> bool:
    names = {"map" if kind.name == "object" else kind.name for kind in (one, other)}
    return len(names) == 2 and not names & {"dyn", "null_type", "type"}


def _equality(compiler: NodeCompiler, node: Call) -> Code:

    left, right = _both(compiler, node)
    if _differ(left.kind, right.kind):
        shown = f"({left.kind.shown()}, {right.kind.shown()})"
        raise compiler.fault(node, f"found no matching overload for '{node.function}' applied to '{shown}'")
    wanted = node.function == "_==_"
    one, other = left.run, right.run
    cost = left.cost + right.cost + 1 + reading_cost("_==_", [left.kind, right.kind])
    return Code(BOOL, lambda scope: equal(one(scope), other(scope)) is wanted, cost)


def _index(compiler: NodeCompiler, node: Call) -> Code:

    held, key = _both(compiler, node)
    if held.kind.name not in ("list", "map", "dyn", "object", "optional_type"):
        shown = f"({held.kind.shown()}, {key.kind.shown()})"
        raise compiler.fault(node, f"found no matching overload for '_[_]' applied to '{shown}'")
    one, other = held.run, key.run
    kind = held.kind.items or DYN if held.kind.name in ("list", "map") else DYN
    run = objects.coerced(kind, lambda scope: objects.item(one(scope), other(scope)))
    return Code(kind, run, held.cost + key.cost + 1)


def _optional_index(compiler: NodeCompiler, node: Call) -> Code:

    held, key = _both(compiler, node)
    one, other = held.run, key.run
    inner = held.kind.items or DYN if held.kind.name == "optional_type" else held.kind
    kind = CelType("optional_type", inner.items or DYN)
    return Code(kind, lambda scope: objects.optional_item(one(scope), other(scope)), held.cost + key.cost + 1)


def _optional_select(compiler: NodeCompiler, node: Call) -> Code:

    held = compiler.code(node.args[0])
    written = node.args[1]
    name = str(written.value) if isinstance(written, Const) else ""
    inner = held.kind.items or DYN if held.kind.name == "optional_type" else held.kind
    if inner.name == "object":
        name = objects.unescaped(name)
    kind = inner.field(name)
    if kind is None:
        raise compiler.fault(node, f"undefined field '{name}'")
    run = held.run
    return Code(CelType("optional_type", kind), lambda scope: objects.optional_field(run(scope), name), held.cost + 1)


def _not_strictly_false(compiler: NodeCompiler, node: Call) -> Code:
    """The condition under which loops go on: a failure does not stop them, a later item may still decide."""

    operand = compiler.code(node.args[0])
    inner = operand.run

    def run(scope: Scope) -> bool:
        try:
            return inner(scope) is not False
        except OutOfBudget:
            raise
        except CelFault:
            return True

    return Code(BOOL, run, 0)


SPECIAL: dict[str, Callable[[NodeCompiler, Call], Code]] = {
    "_&&_": _and,
    "_||_": _or,
    "!_": _not,
    "_?_:_": _choice,
    "_==_": _equality,
    "_!=_": _equality,
    "_[_]": _index,
    "_[?_]": _optional_index,
    "_?._": _optional_select,
    "@not_strictly_false": _not_strictly_false,
}
