"""Macros over lists and maps: those of one variable, which the parser has unfolded, those of two, and `sortBy`.

A loop costs what its body costs for every item there may be; that is what the limits of definitions are about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from shoal.embedded.apiserver.cel.code import MOST_COST, Code, NodeCompiler, Scope
from shoal.embedded.apiserver.cel.faults import NO_OVERLOAD, CelFault, OutOfBudget
from shoal.embedded.apiserver.cel.functions.collections import in_order
from shoal.embedded.apiserver.cel.kinds import BOOL, DYN, STRING, CelType
from shoal.embedded.apiserver.cel.lazy import Raising
from shoal.embedded.apiserver.cel.tree import Call, Fold, Ident

_ABSENT: Any = object()
_TWO = frozenset({"all", "exists", "existsOne", "exists_one", "transformList", "transformMap", "transformMapEntry"})
_NO_RANGE = "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)"


def fold_code(compiler: NodeCompiler, node: Fold) -> Code:

    over = compiler.code(node.over)
    if over.kind.name not in ("list", "map", "dyn", "object"):
        raise compiler.fault(node.over, _NO_RANGE.format(over.kind.shown()))
    start = compiler.code(node.start)
    before = dict(compiler.variables)
    compiler.variables[node.result_name] = _accumulator(start.kind)
    compiler.variables[node.variable] = _item_kind(over.kind)
    condition, step = compiler.code(node.condition), compiler.code(node.step)
    compiler.variables = before | {node.result_name: _accumulator(start.kind)}
    result = compiler.code(node.result)
    compiler.variables = before
    compiler.mentioned -= {node.result_name, node.variable} - before.keys()
    kind = result.kind
    if kind.name == "list":
        kind = CelType("list", step.kind.items if step.kind.name == "list" else DYN, over.kind.most)
    most = 1 if _is_binding(node) else over.kind.most
    cost = over.cost + start.cost + result.cost + most * (condition.cost + step.cost + 1)
    return Code(kind, _folding(node, over.run, start.run, (condition.run, step.run, result.run)), min(cost, MOST_COST))


def _is_binding(node: Fold) -> bool:
    return node.variable == "#unused"


def _accumulator(kind: CelType) -> CelType:
    # Until something is added the items have no type.
    return CelType("list") if kind.name == "list" else kind


def _item_kind(over: CelType) -> CelType:
    if over.name == "list":
        return over.items or DYN
    return STRING if over.name in ("map", "object") else DYN


def _folding(node: Fold, over: Any, start: Any, runs: tuple[Any, Any, Any]) -> Callable[[Scope], Any]:
    variable, accumulated = node.variable, node.result_name
    condition, step, result = runs

    def run(scope: Scope) -> Any:
        items = over(scope)
        if not isinstance(items, list | dict):
            raise CelFault(NO_OVERLOAD)
        kept = (scope.get(variable, _ABSENT), scope.get(accumulated, _ABSENT))
        scope[accumulated] = start(scope)
        try:
            for one in items:
                scope["@left"] -= 1
                if scope["@left"] < 0:
                    raise OutOfBudget
                scope[variable] = one
                if not condition(scope):
                    break
                try:
                    scope[accumulated] = step(scope)
                except OutOfBudget:
                    raise
                except CelFault as fault:
                    scope[accumulated] = Raising(fault)
            value = scope[accumulated]
            if isinstance(value, Raising):
                raise value.fault
            return result(scope)
        finally:
            _restore(scope, variable, kept[0])
            _restore(scope, accumulated, kept[1])

    return run


def _restore(scope: Scope, name: str, value: Any) -> None:
    if value is _ABSENT:
        scope.pop(name, None)
    else:
        scope[name] = value


# -- two variables -----------------------------------------------------------------------------------------------


def is_two_variable(node: Call) -> bool:
    if node.target is None or node.function not in _TWO or not 3 <= len(node.args) <= 4:
        return False
    return isinstance(node.args[0], Ident) and isinstance(node.args[1], Ident)


def two_variable_code(compiler: NodeCompiler, node: Call) -> Code:

    names = tuple(one.name for one in node.args[:2] if isinstance(one, Ident))
    if node.target is None or len(names) != 2:
        raise compiler.fault(node, "argument must be a simple name")
    over = compiler.code(node.target)
    if over.kind.name not in ("list", "map", "dyn", "object"):
        raise compiler.fault(node, _NO_RANGE.format(over.kind.shown()))
    before = dict(compiler.variables)
    compiler.variables[names[0]] = CelType("int") if over.kind.name == "list" else _item_kind(over.kind)
    compiler.variables[names[1]] = over.kind.items or DYN
    bodies = [compiler.code(one) for one in node.args[2:]]
    compiler.variables = before
    compiler.mentioned -= {*names} - before.keys()
    runs = [body.run for body in bodies]
    cost = min(over.cost + over.kind.most * (sum(body.cost for body in bodies) + 1), MOST_COST)
    kind, finish = _FINISH[node.function]
    if node.function == "transformList":
        kind = CelType("list", bodies[-1].kind, over.kind.most)
    elif node.function.startswith("transformMap"):
        kind = CelType("map", DYN, over.kind.most)
    held = over.run
    return Code(kind, lambda scope: finish(_each(scope, held(scope), names), runs, scope), cost)


def _each(scope: Scope, items: Any, names: tuple[str, str]) -> Iterator[tuple[Any, Any]]:
    if not isinstance(items, list | dict):
        raise CelFault(NO_OVERLOAD)
    kept = [scope.get(name, _ABSENT) for name in names]
    try:
        for key, value in items.items() if isinstance(items, dict) else enumerate(items):
            scope["@left"] -= 1
            if scope["@left"] < 0:
                raise OutOfBudget
            scope[names[0]], scope[names[1]] = key, value
            yield key, value
    finally:
        for name, value in zip(names, kept, strict=True):
            _restore(scope, name, value)


def _decided(pairs: Iterator[Any], run: Callable[[Scope], Any], scope: Scope, *, by: bool) -> bool:
    failed: CelFault | None = None
    for _ in pairs:
        try:
            is_decided = run(scope) is by
        except OutOfBudget:
            raise
        except CelFault as fault:
            failed = failed or fault
            continue
        if is_decided:
            return by
    if failed is not None:
        raise failed
    return not by


def _all(pairs: Iterator[Any], runs: list[Any], scope: Scope) -> bool:
    return _decided(pairs, runs[0], scope, by=False)


def _exists(pairs: Iterator[Any], runs: list[Any], scope: Scope) -> bool:
    return _decided(pairs, runs[0], scope, by=True)


def _exists_one(pairs: Iterator[Any], runs: list[Any], scope: Scope) -> bool:
    return sum(1 for _ in pairs if runs[0](scope) is True) == 1


def _list(pairs: Iterator[Any], runs: list[Any], scope: Scope) -> list[Any]:
    return [runs[-1](scope) for _ in pairs if len(runs) == 1 or runs[0](scope) is True]


def _map(pairs: Iterator[Any], runs: list[Any], scope: Scope) -> dict[Any, Any]:
    return {key: runs[-1](scope) for key, _ in pairs if len(runs) == 1 or runs[0](scope) is True}


def _entries(pairs: Iterator[Any], runs: list[Any], scope: Scope) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for _ in pairs:
        if len(runs) == 2 and runs[0](scope) is not True:
            continue
        for key, value in runs[-1](scope).items():
            if key in made:
                raise CelFault(f"insert failed: key {key} already exists")
            made[key] = value
    return made


# -- sorting -----------------------------------------------------------------------------------------------------


def is_sorting(node: Call) -> bool:
    return node.target is not None and node.function == "sortBy" and len(node.args) == 2


def sorting_code(compiler: NodeCompiler, node: Call) -> Code:

    named, key = node.args
    if node.target is None or not isinstance(named, Ident):
        raise compiler.fault(named, "argument must be a simple name")
    over = compiler.code(node.target)
    if over.kind.name not in ("list", "dyn"):
        raise compiler.fault(node, _NO_RANGE.format(over.kind.shown()))
    before = dict(compiler.variables)
    compiler.variables[named.name] = _item_kind(over.kind)
    body = compiler.code(key)
    compiler.variables = before
    compiler.mentioned -= {named.name} - before.keys()
    cost = min(over.cost + over.kind.most * (body.cost + 2), MOST_COST)
    held, run, names = over.run, body.run, ("@place", named.name)

    def ordered(scope: Scope) -> list[Any]:
        items = held(scope)
        if not isinstance(items, list):
            raise CelFault(NO_OVERLOAD)
        return in_order(items, [run(scope) for _ in _each(scope, items, names)])

    return Code(over.kind, ordered, cost)


_FINISH: dict[str, tuple[CelType, Callable[[Iterator[Any], list[Any], Scope], Any]]] = {
    "all": (BOOL, _all),
    "exists": (BOOL, _exists),
    "existsOne": (BOOL, _exists_one),
    "exists_one": (BOOL, _exists_one),
    "transformList": (DYN, _list),
    "transformMap": (DYN, _map),
    "transformMapEntry": (DYN, _entries),
}
