"""Computes the value of an expression at a moment, over series in memory.

    Evaluation(store, interval_ms).vector(tree, at_ms)

Values of subqueries are kept while their range contains them: each step is computed once. Functions that rules of
alerts do not use are refused when the expression is checked, not when it is evaluated.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from shoal.prometheus.promql.label_sets import LabelSet
from shoal.prometheus.promql.parser import COMPARISONS, SETS, type_of
from shoal.prometheus.promql.range_functions import RANGE_FUNCTIONS, RangeSamples
from shoal.prometheus.promql.series import SeriesStore, StoredSeries
from shoal.prometheus.promql.tokens import PromqlError
from shoal.prometheus.promql.trees import (
    Aggregation,
    Binary,
    Expression,
    FunctionCall,
    LabelMatcher,
    Negation,
    Number,
    SeriesSelector,
    Subquery,
)
from shoal.units.linear_patterns import compile_linear


class VectorPart(NamedTuple):
    name: str
    labels: LabelSet
    value: float


Vector = list[VectorPart]


def _divided(one: float, other: float) -> float:
    if other:
        return one / other
    return math.nan if not one or one != one else math.copysign(math.inf, one) * math.copysign(1, other)


def _rest(one: float, other: float) -> float:
    return math.fmod(one, other) if other and math.isfinite(one) else math.nan


def _power(one: float, other: float) -> float:
    try:
        found = one**other
    except (OverflowError, ZeroDivisionError):
        return math.inf
    return found if isinstance(found, float) else math.nan


_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": _rest,
    "^": _power,
    "atan2": math.atan2,
}
_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OF_ONE: Mapping[str, Callable[[float], float]] = {
    "abs": abs,
    "ceil": lambda value: float(math.ceil(value)) if math.isfinite(value) else value,
    "floor": lambda value: float(math.floor(value)) if math.isfinite(value) else value,
    "sqrt": lambda value: math.sqrt(value) if value >= 0 else math.nan,
}
_AGGREGATED: Mapping[str, Callable[[list[float]], float]] = {
    "sum": math.fsum,
    "min": min,
    "max": max,
    "count": lambda values: float(len(values)),
    "avg": lambda values: math.fsum(values) / len(values),
    "group": lambda _: 1.0,
}
_KEEPS_NAME = "last_over_time"
_OTHERS = frozenset({"vector", "absent", "histogram_quantile", "time", "scalar"})


def check_supported(tree: Expression) -> None:
    """Raises PromqlError for what cannot be evaluated here."""
    type_of(tree)
    match tree:
        case FunctionCall():
            if tree.function not in {*RANGE_FUNCTIONS, *_OF_ONE, *_OTHERS}:
                raise PromqlError(f"{tree.function} cannot be evaluated without Prometheus")
            for one in tree.arguments:
                check_supported(one)
        case Aggregation():
            if tree.operator not in _AGGREGATED:
                raise PromqlError(f"{tree.operator} cannot be evaluated without Prometheus")
            check_supported(tree.expression)
        case Binary():
            check_supported(tree.left)
            check_supported(tree.right)
        case Subquery() | Negation():
            check_supported(tree.expression)
        case SeriesSelector() if not tree.name:
            raise PromqlError("a selector without a name cannot be evaluated without Prometheus")


class Evaluation:
    def __init__(self, store: SeriesStore, interval_ms: int = 30_000) -> None:
        """`interval_ms`: the step of a subquery that has none."""
        self._store, self._interval_ms = store, interval_ms
        self._sets = store.label_sets
        self._steps: dict[int, dict[int, Vector]] = {}
        """Vectors of subqueries by the id of the tree and the moment."""
        self._trees: dict[int, Expression] = {}
        """Those of `_steps`: kept, because their id is the key."""

    def vector(self, tree: Expression, at_ms: int) -> Vector:
        """A number is a vector with one part and no labels. Raises PromqlError where labels match several times."""
        if type_of(tree) == "scalar":
            return [VectorPart("", self._sets.empty, self._scalar(tree, at_ms))]
        return self._vector(tree, at_ms)

    def _vector(self, tree: Expression, at: int) -> Vector:
        match tree:
            case SeriesSelector():
                return self._current(tree, at)
            case Negation():
                return [VectorPart("", one.labels, -one.value) for one in self._vector(tree.expression, at)]
            case Aggregation():
                return self._aggregated(tree, at)
            case Binary():
                return self._operated(tree, at)
            case FunctionCall():
                return self._called(tree, at)
        raise PromqlError("this is no vector")

    def _scalar(self, tree: Expression, at: int) -> float:
        match tree:
            case Number():
                return tree.value
            case Negation():
                return -self._scalar(tree.expression, at)
            case FunctionCall():
                if tree.function == "time":
                    return at / 1000
                found = self._vector(tree.arguments[0], at)
                return found[0].value if len(found) == 1 else math.nan
            case Binary():
                left, right = self._scalar(tree.left, at), self._scalar(tree.right, at)
                if tree.operator in COMPARISONS:
                    return float(_COMPARED[tree.operator](left, right))
                return _ARITHMETIC[tree.operator](left, right)
        raise PromqlError("this is no number")

    # -- series -----------------------------------------------------------------------------------------------------

    def _selected(self, tree: SeriesSelector) -> Iterator[StoredSeries]:
        for one in self._store.of(tree.name):
            if not tree.matchers or all(self._matches(matcher, one.labels) for matcher in tree.matchers):
                yield one

    def _matches(self, matcher: LabelMatcher, labels: LabelSet) -> bool:
        value = labels.get(matcher.name)
        if matcher.comparison in ("=", "!="):
            return (value == matcher.value) == (matcher.comparison == "=")
        return compile_linear(matcher.value).is_all(value) == (matcher.comparison == "=~")

    def _current(self, tree: SeriesSelector, at: int) -> Vector:
        at -= tree.offset_ms
        return [
            VectorPart(one.name, one.labels, value) for one in self._selected(tree) if (value := one.at(at)) is not None
        ]

    def _ranges(self, tree: Expression, at: int) -> Iterator[tuple[str, LabelSet, RangeSamples]]:
        if isinstance(tree, SeriesSelector):
            end = at - tree.offset_ms
            for one in self._selected(tree):
                times, values = one.between(end - tree.range_ms, end)
                if times:
                    yield one.name, one.labels, RangeSamples(times, values, end - tree.range_ms, end)
        elif isinstance(tree, Subquery):
            end = at - tree.offset_ms
            start = end - tree.range_ms
            found: dict[tuple[str, LabelSet], tuple[list[int], list[float]]] = {}
            for moment in self._moments(tree, start, end):
                for part in self._step(tree, moment, start):
                    times, values = found.setdefault((part.name, part.labels), ([], []))
                    times.append(moment)
                    values.append(part.value)
            for (name, labels), (times, values) in found.items():
                yield name, labels, RangeSamples(times, values, start, end)

    def _moments(self, tree: Subquery, start: int, end: int) -> range:
        """Whole multiples of the step, later than the begin of the range."""
        step = tree.step_ms or self._interval_ms
        return range((start // step + 1) * step, end + 1, step)

    def _step(self, tree: Subquery, moment: int, oldest: int) -> Vector:
        key = id(tree)
        self._trees[key] = tree
        known = self._steps.setdefault(key, {})
        found = known.get(moment)
        if found is None:
            for old in [one for one in known if one <= oldest]:
                del known[old]
            found = known[moment] = self._vector(tree.expression, moment)
        return found

    # -- functions --------------------------------------------------------------------------------------------------

    def _called(self, tree: FunctionCall, at: int) -> Vector:
        name = tree.function
        if name in RANGE_FUNCTIONS:
            function = RANGE_FUNCTIONS[name]
            return [
                VectorPart(named if name == _KEEPS_NAME else "", labels, value)
                for named, labels, samples in self._ranges(tree.arguments[0], at)
                if (value := function(samples)) is not None
            ]
        if name == "vector":
            return [VectorPart("", self._sets.empty, self._scalar(tree.arguments[0], at))]
        if name == "absent":
            return self._absent(tree.arguments[0], at)
        if name == "histogram_quantile":
            return self._quantiles(self._scalar(tree.arguments[0], at), self._vector(tree.arguments[1], at))
        of_one = _OF_ONE[name]
        return [VectorPart("", one.labels, of_one(one.value)) for one in self._vector(tree.arguments[0], at)]

    def _absent(self, tree: Expression, at: int) -> Vector:
        if self._vector(tree, at):
            return []
        matchers = tree.matchers if isinstance(tree, SeriesSelector) else ()
        labels = self._sets.of((one.name, one.value) for one in matchers if one.comparison == "=")
        return [VectorPart("", labels, 1.0)]

    def _quantiles(self, part: float, buckets: Iterable[VectorPart]) -> Vector:
        groups: dict[LabelSet, list[tuple[float, float]]] = {}
        for one in buckets:
            try:
                bound = float(one.labels.get("le").replace("Inf", "inf"))
            except ValueError:
                continue
            labels = self._sets.projected(one.labels, ("le",), is_without=True)
            groups.setdefault(labels, []).append((bound, one.value))
        return [VectorPart("", labels, bucket_quantile(part, found)) for labels, found in groups.items()]

    def _aggregated(self, tree: Aggregation, at: int) -> Vector:
        groups: dict[LabelSet, list[float]] = {}
        for one in self._vector(tree.expression, at):
            key = self._sets.projected(one.labels, tree.labels, is_without=tree.is_without)
            groups.setdefault(key, []).append(one.value)
        function = _AGGREGATED[tree.operator]
        return [VectorPart("", labels, function(values)) for labels, values in groups.items()]

    # -- operators --------------------------------------------------------------------------------------------------

    def _operated(self, tree: Binary, at: int) -> Vector:
        is_left, is_right = type_of(tree.left) == "vector", type_of(tree.right) == "vector"
        if is_left and is_right:
            left = self._vector(tree.left, at)
            if not left and tree.operator != "or":
                # Without a left side there is no result: the right one need not be computed.
                return []
            right = self._vector(tree.right, at)
            return self._of_sets(tree, left, right) if tree.operator in SETS else self._matched(tree, left, right)
        found = []
        number = self._scalar(tree.right if is_left else tree.left, at)
        for one in self._vector(tree.left if is_left else tree.right, at):
            values = (one.value, number) if is_left else (number, one.value)
            if (part := _result(tree, values, one)) is not None:
                found.append(part)
        return found

    def _key(self, tree: Binary, labels: LabelSet) -> LabelSet:
        return self._sets.projected(labels, tree.matching.labels, is_without=not tree.matching.is_on)

    def _of_sets(self, tree: Binary, left: Vector, right: Vector) -> Vector:
        keys = {self._key(tree, one.labels) for one in (left if tree.operator == "or" else right)}
        if tree.operator == "or":
            return left + [one for one in right if self._key(tree, one.labels) not in keys]
        return [one for one in left if (self._key(tree, one.labels) in keys) == (tree.operator == "and")]

    def _matched(self, tree: Binary, left: Vector, right: Vector) -> Vector:
        group = tree.matching.group
        many, one_side = (right, left) if group == "right" else (left, right)
        by_key: dict[LabelSet, VectorPart] = {}
        for one in one_side:
            key = self._key(tree, one.labels)
            if key in by_key:
                raise PromqlError(f"several series match on one side of {tree.operator}")
            by_key[key] = one
        found, used = Vector(), set[LabelSet]()
        for each in many:
            key = self._key(tree, each.labels)
            other = by_key.get(key)
            if other is None:
                continue
            if not group:
                if key in used:
                    raise PromqlError(f"several series match on one side of {tree.operator}")
                used.add(key)
            values = (other.value, each.value) if group == "right" else (each.value, other.value)
            part = _result(tree, values, each)
            if part is not None:
                found.append(self._labelled(tree, part, each.labels, other.labels))
        return found

    def _labelled(self, tree: Binary, part: VectorPart, many: LabelSet, other: LabelSet) -> VectorPart:
        matching = tree.matching
        if matching.group:
            labels = many
            if matching.included:
                included = {name: other.get(name) for name in matching.included}
                labels = self._sets.of({**many.to_dict(), **included})
            return part._replace(labels=labels)
        is_filter = tree.operator in COMPARISONS and not tree.is_bool
        if is_filter and not matching.is_on:
            # Prometheus removes the labels that are ignored, and keeps the name.
            return part._replace(labels=self._sets.projected(many, matching.labels, is_without=True))
        return part._replace(labels=self._key(tree, many))


def _result(tree: Binary, values: tuple[float, float], kept: VectorPart) -> VectorPart | None:
    """`kept`: what remains of a comparison that is true."""
    if tree.operator not in COMPARISONS:
        return VectorPart("", kept.labels, _ARITHMETIC[tree.operator](*values))
    is_true = _COMPARED[tree.operator](*values)
    if tree.is_bool:
        return VectorPart("", kept.labels, float(is_true))
    return kept if is_true else None


def bucket_quantile(part: float, buckets: list[tuple[float, float]]) -> float:
    """Of cumulative buckets with their upper bounds, by linear interpolation."""
    if not 0 <= part <= 1:
        return math.nan if part != part else math.copysign(math.inf, part - 0.5)
    merged: dict[float, float] = {}
    for bound, count in buckets:
        merged[bound] = merged.get(bound, 0.0) + count
    ordered = sorted(merged.items())
    if len(ordered) < 2 or ordered[-1][0] != math.inf:
        return math.nan
    counts, most = [], 0.0
    for _, count in ordered:
        # Counts of scrapes at different moments may fall.
        most = max(most, count)
        counts.append(most)
    if not counts[-1]:
        return math.nan
    rank = part * counts[-1]
    at = next(place for place, count in enumerate(counts) if count >= rank)
    if at == len(counts) - 1:
        return ordered[-2][0]
    bound = ordered[at][0]
    if at == 0 and bound <= 0:
        return bound
    start, before = (ordered[at - 1][0], counts[at - 1]) if at else (0.0, 0.0)
    width = counts[at] - before
    return start + (bound - start) * ((rank - before) / width if width else 0.0)
