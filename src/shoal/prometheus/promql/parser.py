"""Reads expressions of PromQL as trees, and checks what Prometheus checks before it evaluates: the types of arguments,
the labels of matchings, and names of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar, cast

from shoal.prometheus.promql.tokens import PromqlError, Token, milliseconds, tokens_of
from shoal.prometheus.promql.trees import (
    Aggregation,
    Binary,
    Comparison,
    Expression,
    FunctionCall,
    LabelMatcher,
    Matching,
    Negation,
    Number,
    SeriesSelector,
    Subquery,
    Text,
)
from shoal.units.linear_patterns import PatternError, compile_linear

T = TypeVar("T")
ValueType = Literal["scalar", "vector", "range", "text"]
_LEVELS = (("or",), ("and", "unless"), ("==", "!=", "<=", "<", ">=", ">"), ("+", "-"), ("*", "/", "%", "atan2"))
COMPARISONS = frozenset(_LEVELS[2])
SETS = frozenset({"or", "and", "unless"})
AGGREGATIONS = frozenset(
    {"sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "topk", "bottomk", "quantile", "count_values"}
)
_WITH_PARAMETER = frozenset({"topk", "bottomk", "quantile", "count_values"})
_RANGES = ["avg", "min", "max", "sum", "count", "last", "present", "stddev", "stdvar"]
_OF_RANGE = ("rate", "irate", "increase", "delta", "idelta", "deriv", "changes", "resets", "absent_over_time")
_OF_VECTOR = (
    *("abs", "ceil", "floor", "exp", "ln", "log2", "log10", "sqrt", "sgn", "sort", "sort_desc", "absent", "timestamp"),
    *("deg", "rad", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
)
_OF_DATES = ("minute", "hour", "day_of_month", "day_of_week", "day_of_year", "days_in_month", "month", "year")
FUNCTIONS: Mapping[str, tuple[tuple[ValueType, ...], int, ValueType]] = {
    **dict.fromkeys((f"{name}_over_time" for name in _RANGES), (("range",), 1, "vector")),
    **dict.fromkeys(_OF_RANGE, (("range",), 1, "vector")),
    **dict.fromkeys(_OF_VECTOR, (("vector",), 1, "vector")),
    **dict.fromkeys(_OF_DATES, (("vector",), 0, "vector")),
    "quantile_over_time": (("scalar", "range"), 2, "vector"),
    "predict_linear": (("range", "scalar"), 2, "vector"),
    "holt_winters": (("range", "scalar", "scalar"), 3, "vector"),
    "double_exponential_smoothing": (("range", "scalar", "scalar"), 3, "vector"),
    "round": (("vector", "scalar"), 1, "vector"),
    "clamp": (("vector", "scalar", "scalar"), 3, "vector"),
    "clamp_min": (("vector", "scalar"), 2, "vector"),
    "clamp_max": (("vector", "scalar"), 2, "vector"),
    "histogram_quantile": (("scalar", "vector"), 2, "vector"),
    "label_replace": (("vector", "text", "text", "text", "text"), 5, "vector"),
    "label_join": (("vector", "text", "text", "text"), 3, "vector"),
    "vector": (("scalar",), 1, "vector"),
    "scalar": (("vector",), 1, "scalar"),
    "time": ((), 0, "scalar"),
    "pi": ((), 0, "scalar"),
}
"""The types of arguments, how many are needed at least, and the type of the value."""
_MANY_TEXTS = frozenset({"label_join"})
_DEEPEST = 50
_NAME_LABEL = "__name__"


def parsed(expression: str) -> Expression:
    """Raises PromqlError for what Prometheus would refuse."""
    parser = _Parser(tokens_of(expression))
    tree = parser.expression()
    parser.expect("end", "")
    type_of(tree)
    return tree


def type_of(tree: Expression) -> ValueType:
    """Raises PromqlError where an argument or operand has a type that does not fit."""
    match tree:
        case Number():
            return "scalar"
        case Text():
            return "text"
        case SeriesSelector():
            return "range" if tree.range_ms else "vector"
        case Subquery():
            if type_of(tree.expression) != "vector":
                raise PromqlError("a subquery is over an instant vector")
            return "range"
        case Negation():
            found = type_of(tree.expression)
            if found not in ("scalar", "vector"):
                raise PromqlError("a sign is before a number or an instant vector")
            return found
        case Aggregation():
            if type_of(tree.expression) != "vector":
                raise PromqlError(f"{tree.operator} is over an instant vector")
            wanted: ValueType = "text" if tree.operator == "count_values" else "scalar"
            if tree.parameter is not None and type_of(tree.parameter) != wanted:
                raise PromqlError(f"the parameter of {tree.operator} is no {wanted}")
            return "vector"
        case Binary():
            return _type_of_operator(tree)
        case FunctionCall():
            return _type_of_call(tree)


def _type_of_operator(tree: Binary) -> ValueType:
    types = type_of(tree.left), type_of(tree.right)
    if not {*types} <= {"scalar", "vector"}:
        raise PromqlError(f"{tree.operator} is between numbers and instant vectors")
    if tree.operator in SETS and types != ("vector", "vector"):
        raise PromqlError(f"{tree.operator} is between instant vectors")
    if tree.is_bool and tree.operator not in COMPARISONS:
        raise PromqlError("bool belongs to comparisons")
    if types == ("scalar", "scalar"):
        if tree.operator in COMPARISONS and not tree.is_bool:
            raise PromqlError("comparisons between numbers need bool")
        return "scalar"
    return "vector"


def _type_of_call(tree: FunctionCall) -> ValueType:
    wanted, least, found = FUNCTIONS[tree.function]
    types = [type_of(one) for one in tree.arguments]
    most = len(types) if tree.function in _MANY_TEXTS else len(wanted)
    if not least <= len(types) <= most:
        raise PromqlError(f"{tree.function} has {least} arguments")
    for at, one in enumerate(types):
        of_place = wanted[min(at, len(wanted) - 1)]
        if one != of_place:
            raise PromqlError(f"argument {at + 1} of {tree.function} is no {of_place}")
    return found


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _is(self, *texts: str) -> bool:
        return self._next.text in texts and self._next.kind in ("operator", "name")

    def expect(self, kind: str, text: str) -> Token:
        token = self._next
        if token.kind != kind or (text and token.text != text):
            wanted = text or kind
            found = token.text or "the end"
            raise PromqlError(f"{wanted} expected at character {token.at + 1}, not {found}")
        return self._take() if kind != "end" else token

    def expression(self, level: int = 0) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PromqlError("the expression is nested too deeply")
        try:
            return self._binary(level)
        finally:
            self._depth -= 1

    def _binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._signed()
        left = self._binary(level + 1)
        while self._is_operator(_LEVELS[level]):
            operator = self._take().text
            is_bool = self._word("bool")
            matching = self._matching(operator)
            left = Binary(operator, left, self._binary(level + 1), is_bool, matching)
        return left

    def _is_operator(self, operators: tuple[str, ...]) -> bool:
        return self._next.kind in ("operator", "name") and self._next.text.lower() in operators

    def _word(self, word: str) -> bool:
        if self._next.kind == "name" and self._next.text.lower() == word:
            self._at += 1
            return True
        return False

    def _matching(self, operator: str) -> Matching:
        is_on = self._word("on")
        if not is_on and not self._word("ignoring"):
            return Matching()
        labels = self._labels()
        group: Literal["", "left", "right"] = ""
        included: tuple[str, ...] = ()
        if self._word("group_left"):
            group = "left"
        elif self._word("group_right"):
            group = "right"
        if group:
            if operator in SETS:
                raise PromqlError(f"{operator} has no group_{group}")
            included = self._labels() if self._is("(") else ()
        return Matching(labels, is_on, group, included)

    def _signed(self) -> Expression:
        if self._is("-"):
            self._take()
            return Negation(self._signed())
        if self._is("+"):
            self._take()
            return self._signed()
        base = self._postfix()
        if self._is("^"):
            self._take()
            is_bool = self._word("bool")
            # To the right: 2 ^ 3 ^ 2 is 2 ^ 9.
            return Binary("^", base, self._signed(), is_bool, self._matching("^"))
        return base

    def _postfix(self) -> Expression:
        tree = self._primary()
        while True:
            if self._is("["):
                tree = self._range(tree)
            elif self._word("offset"):
                tree = self._offset(tree)
            elif self._is("@"):
                raise PromqlError("@ is not supported")
            else:
                return tree

    def _range(self, tree: Expression) -> Expression:
        self._take()
        length = self._duration()
        if self._is(":"):
            self._take()
            step = 0 if self._is("]") else self._duration()
            self.expect("operator", "]")
            return Subquery(tree, length, step)
        self.expect("operator", "]")
        if not isinstance(tree, SeriesSelector) or tree.range_ms:
            raise PromqlError("a range belongs to a selector; write [1h:] for a subquery")
        return SeriesSelector(tree.name, tree.matchers, length, tree.offset_ms)

    def _offset(self, tree: Expression) -> Expression:
        sign = -1 if self._is("-") else 1
        if sign < 0:
            self._take()
        length = sign * self._duration()
        if isinstance(tree, SeriesSelector):
            return SeriesSelector(tree.name, tree.matchers, tree.range_ms, length)
        if isinstance(tree, Subquery):
            return Subquery(tree.expression, tree.range_ms, tree.step_ms, length)
        raise PromqlError("offset belongs to a selector or a subquery")

    def _duration(self) -> int:
        if self._next.kind != "duration" or not (found := milliseconds(self._next.text)):
            raise PromqlError(f"a duration is expected at character {self._next.at + 1}")
        self._take()
        return found

    def _primary(self) -> Expression:
        token = self._next
        if token.kind == "number":
            self._take()
            return Number(float(int(token.text, 16)) if token.text[:2] in ("0x", "0X") else float(token.text))
        if token.kind == "text":
            self._take()
            return Text(token.text)
        if self._is("("):
            self._take()
            tree = self.expression()
            self.expect("operator", ")")
            return tree
        if self._is("{"):
            return self._selector("")
        if token.kind != "name":
            raise PromqlError(f"unexpected {token.text or 'end'} at character {token.at + 1}")
        return self._named()

    def _named(self) -> Expression:
        name = self._take().text
        small = name.lower()
        if small in AGGREGATIONS and (self._is("(") or self._next.text.lower() in ("by", "without")):
            return self._aggregation(small)
        if self._is("("):
            if name not in FUNCTIONS:
                raise PromqlError(f"there is no function {name}")
            return FunctionCall(name, self._arguments())
        if small in ("inf", "nan"):
            return Number(float(small))
        return self._selector(name)

    def _aggregation(self, operator: str) -> Expression:
        labels, is_without = self._grouping()
        arguments = self._arguments()
        if labels is None:
            labels, is_without = self._grouping()
        if len(arguments) != 1 + (operator in _WITH_PARAMETER):
            raise PromqlError(f"{operator} has {1 + (operator in _WITH_PARAMETER)} arguments")
        parameter = arguments[0] if len(arguments) > 1 else None
        return Aggregation(operator, arguments[-1], parameter, labels or (), is_without)

    def _grouping(self) -> tuple[tuple[str, ...] | None, bool]:
        if self._word("by"):
            return self._labels(), False
        if self._word("without"):
            return self._labels(), True
        return None, False

    def _labels(self) -> tuple[str, ...]:
        return tuple(self._list("(", ")", lambda: self.expect("name", "").text))

    def _arguments(self) -> tuple[Expression, ...]:
        return tuple(self._list("(", ")", self.expression))

    def _selector(self, name: str) -> Expression:
        matchers = list[LabelMatcher]()
        if self._is("{"):
            matchers = self._list("{", "}", self._matcher)
        named = [one for one in matchers if one.name == _NAME_LABEL and one.comparison == "="]
        if named and name:
            raise PromqlError("the name of the metric is given twice")
        if named:
            name = named[0].value
            matchers.remove(named[0])
        if not name and not any(_is_selective(one) for one in matchers):
            raise PromqlError("a selector needs a name or a label that is not empty")
        return SeriesSelector(name, tuple(matchers))

    def _matcher(self) -> LabelMatcher:
        name = self.expect("name", "").text
        token = self._take()
        if token.text not in ("=", "!=", "=~", "!~"):
            raise PromqlError(f"a comparison is expected at character {token.at + 1}")
        comparison, value = cast("Comparison", token.text), self.expect("text", "").text
        if comparison in ("=~", "!~"):
            try:
                compile_linear(value)
            except PatternError as error:
                raise PromqlError(f"{value!r} is no regular expression: {error}") from None
        return LabelMatcher(name, comparison, value)

    def _list(self, opening: str, closing: str, read: Callable[[], T]) -> list[T]:
        self.expect("operator", opening)
        found = list[T]()
        while not self._is(closing):
            found.append(read())
            if not self._is(","):
                break
            self._take()
        self.expect("operator", closing)
        return found


def _is_selective(matcher: LabelMatcher) -> bool:
    """Whether it does not match the empty text."""
    if matcher.comparison == "=":
        return bool(matcher.value)
    if matcher.comparison == "!=":
        return not matcher.value
    does_match = compile_linear(matcher.value).is_all("")
    return not does_match if matcher.comparison == "=~" else does_match
