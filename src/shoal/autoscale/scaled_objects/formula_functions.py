"""The operators and functions of formulas. Wrong types are errors with the types, as in the expr language."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Value = Any
"""A number, truth value, text, nil, or a tuple of values."""
Expression = Callable[[Mapping[str, Value]], Value]
_EACH = Callable[[Value], Value]


class FormulaError(ValueError):
    """The formula cannot be read, or has no result for these values."""


def as_truth(value: Value) -> bool:
    if not isinstance(value, bool):
        raise FormulaError(f"non-bool expression (type {_type(value)}) used as condition")
    return value


def to_float(value: Value) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise FormulaError(f"invalid operation: float({value!r})") from None
    return float(_number(value, "float"))


def _type(value: Value) -> str:
    if value is None:
        return "nil"
    return {bool: "bool", int: "int", float: "float64", str: "string"}.get(type(value), "array")


def _number(value: Value, name: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FormulaError(f"invalid argument for {name} (type {_type(value)})")
    return value


def _arithmetic(name: str, apply: Callable[[Any, Any], Value]) -> Callable[[Value, Value], Value]:
    def checked(left: Value, right: Value) -> Value:
        for one in (left, right):
            if isinstance(one, bool) or not isinstance(one, (int, float)):
                raise FormulaError(f"invalid operation: {_type(left)} {name} {_type(right)}")
        return apply(left, right)

    return checked


def _ordered(name: str, apply: Callable[[Any, Any], bool]) -> Callable[[Value, Value], Value]:
    numbers = _arithmetic(name, apply)

    def checked(left: Value, right: Value) -> Value:
        return apply(left, right) if isinstance(left, str) and isinstance(right, str) else numbers(left, right)

    return checked


def _quotient(left: float, right: float) -> float:
    if right == 0:
        return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left)
    return left / right


def _remainder(left: Value, right: Value) -> int:
    if not isinstance(left, int) or not isinstance(right, int):
        raise FormulaError(f"invalid operation: {_type(left)} % {_type(right)}")
    if right == 0:
        raise FormulaError("integer divide by zero")
    return int(math.fmod(left, right)) if abs(left) < 2**53 else left % right


def _power(left: float, right: float) -> float:
    try:
        return math.pow(left, right)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def _equal(left: Value, right: Value) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _contained(left: Value, right: Value) -> bool:
    return any(_equal(left, one) for one in _listed(right, "in"))


BINARY: Mapping[str, Callable[[Value, Value], Value]] = {
    "+": _arithmetic("+", lambda left, right: left + right),
    "-": _arithmetic("-", lambda left, right: left - right),
    "*": _arithmetic("*", lambda left, right: left * right),
    "/": _arithmetic("/", _quotient),
    "%": _arithmetic("%", _remainder),
    "**": _arithmetic("**", _power),
    "^": _arithmetic("^", _power),
    "<": _ordered("<", lambda left, right: left < right),
    "<=": _ordered("<=", lambda left, right: left <= right),
    ">": _ordered(">", lambda left, right: left > right),
    ">=": _ordered(">=", lambda left, right: left >= right),
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "in": _contained,
}

NEGATIONS: Mapping[str, Callable[[Value], Value]] = {
    "-": lambda value: -_number(value, "-"),
    "+": lambda value: _number(value, "+"),
    "!": lambda value: not as_truth(value),
    "not": lambda value: not as_truth(value),
}


def _listed(value: Value, name: str) -> tuple[Value, ...]:
    if not isinstance(value, tuple):
        raise FormulaError(f"invalid argument for {name} (type {_type(value)})")
    return value


def _flat(values: tuple[Value, ...], name: str) -> Iterator[int | float]:
    for one in values:
        if isinstance(one, tuple):
            yield from _flat(one, name)
        else:
            yield _number(one, name)


def _over(name: str, apply: Callable[[list[int | float]], Value]) -> Callable[..., Value]:
    """Of numbers and of lists of numbers."""

    def applied(*values: Value) -> Value:
        numbers = list(_flat(values, name))
        if not numbers:
            raise FormulaError(f"not enough arguments to call {name}")
        return apply(numbers)

    return applied


def _rounded(value: float) -> float:
    """Halves away from zero."""
    return math.copysign(math.floor(abs(value) + 0.5), value) if math.isfinite(value) else value


def _on_number(name: str, apply: Callable[[Any], Value]) -> Callable[..., Value]:
    def applied(*values: Value) -> Value:
        if len(values) != 1:
            raise FormulaError(f"invalid number of arguments for {name} (expected 1, got {len(values)})")
        return apply(_number(values[0], name))

    return applied


def _to_float(*values: Value) -> float:
    if len(values) != 1:
        raise FormulaError(f"invalid number of arguments for float (expected 1, got {len(values)})")
    return to_float(values[0])


def _whole(value: float) -> int:
    if not math.isfinite(value):
        raise FormulaError(f"invalid operation: int({value})")
    return int(value)


def _float_floor(value: float) -> float:
    return float(math.floor(value)) if math.isfinite(value) else value


def _float_ceil(value: float) -> float:
    return float(math.ceil(value)) if math.isfinite(value) else value


def _count(*values: Value) -> int:
    """Without a condition: of the true values of a list."""
    if len(values) != 1:
        raise FormulaError("not enough arguments to call count")
    return sum(as_truth(one) for one in _listed(values[0], "count"))


def _length(*values: Value) -> int:
    if len(values) == 1 and isinstance(values[0], (tuple, str)):
        return len(values[0])
    raise FormulaError("invalid argument for len")


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "float": _to_float,
    "int": _on_number("int", _whole),
    "abs": _on_number("abs", abs),
    "ceil": _on_number("ceil", _float_ceil),
    "floor": _on_number("floor", _float_floor),
    "round": _on_number("round", _rounded),
    "max": _over("max", max),
    "min": _over("min", min),
    "sum": _over("sum", sum),
    "mean": _over("mean", lambda numbers: sum(numbers) / len(numbers)),
    "median": _over("median", lambda numbers: float(statistics.median(numbers))),
    "count": _count,
    "len": _length,
}

PREDICATES: Mapping[str, Callable[[Value, _EACH], Value]] = {
    "all": lambda values, each: all(as_truth(each(one)) for one in _listed(values, "all")),
    "any": lambda values, each: any(as_truth(each(one)) for one in _listed(values, "any")),
    "none": lambda values, each: not any(as_truth(each(one)) for one in _listed(values, "none")),
    "one": lambda values, each: sum(as_truth(each(one)) for one in _listed(values, "one")) == 1,
    "count": lambda values, each: sum(as_truth(each(one)) for one in _listed(values, "count")),
    "sum": lambda values, each: sum(_number(each(one), "sum") for one in _listed(values, "sum")),
    "filter": lambda values, each: tuple(one for one in _listed(values, "filter") if as_truth(each(one))),
    "map": lambda values, each: tuple(each(one) for one in _listed(values, "map")),
}
