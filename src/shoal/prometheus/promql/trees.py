"""The tree of an expression."""

from __future__ import annotations

from typing import Literal

import msgspec

Comparison = Literal["=", "!=", "=~", "!~"]


class LabelMatcher(msgspec.Struct, frozen=True):
    name: str
    comparison: Comparison
    value: str


class Number(msgspec.Struct, frozen=True):
    value: float


class Text(msgspec.Struct, frozen=True):
    value: str


class SeriesSelector(msgspec.Struct, frozen=True):
    """Series by name and labels, at the moment or over a range."""

    name: str
    matchers: tuple[LabelMatcher, ...] = ()
    range_ms: int = 0
    """0: the newest values."""
    offset_ms: int = 0


class Subquery(msgspec.Struct, frozen=True):
    expression: Expression
    range_ms: int
    step_ms: int
    """0: the interval of evaluation."""
    offset_ms: int = 0


class FunctionCall(msgspec.Struct, frozen=True):
    function: str
    arguments: tuple[Expression, ...]


class Aggregation(msgspec.Struct, frozen=True):
    operator: str
    expression: Expression
    parameter: Expression | None = None
    labels: tuple[str, ...] = ()
    is_without: bool = False


class Matching(msgspec.Struct, frozen=True):
    """How the sides of an operator are matched."""

    labels: tuple[str, ...] = ()
    is_on: bool = False
    """Only by these labels; else by all others."""
    group: Literal["", "left", "right"] = ""
    included: tuple[str, ...] = ()


class Binary(msgspec.Struct, frozen=True):
    operator: str
    left: Expression
    right: Expression
    is_bool: bool = False
    matching: Matching = Matching()


class Negation(msgspec.Struct, frozen=True):
    expression: Expression


Expression = Number | Text | SeriesSelector | Subquery | FunctionCall | Aggregation | Binary | Negation


def selectors(tree: Expression) -> list[SeriesSelector]:
    """All of them, in the order of the text."""
    match tree:
        case SeriesSelector():
            return [tree]
        case Subquery() | Negation():
            return selectors(tree.expression)
        case FunctionCall():
            return [found for one in tree.arguments for found in selectors(one)]
        case Aggregation():
            inner = selectors(tree.parameter) if tree.parameter is not None else []
            return inner + selectors(tree.expression)
        case Binary():
            return selectors(tree.left) + selectors(tree.right)
    return []


def lookback_ms(tree: Expression) -> int:
    """How far before the moment of the evaluation samples are read, without the time in which a sample is current."""
    match tree:
        case SeriesSelector():
            return tree.range_ms + tree.offset_ms
        case Subquery():
            return tree.range_ms + tree.offset_ms + lookback_ms(tree.expression)
        case Negation():
            return lookback_ms(tree.expression)
        case FunctionCall():
            return max((lookback_ms(one) for one in tree.arguments), default=0)
        case Aggregation():
            return lookback_ms(tree.expression)
        case Binary():
            return max(lookback_ms(tree.left), lookback_ms(tree.right))
    return 0
