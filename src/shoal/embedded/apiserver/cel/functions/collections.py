"""Lists and sets: Kubernetes' list functions, the sets library and the lists extension."""

from __future__ import annotations

from datetime import timedelta
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.functions.overload import Table, row
from shoal.embedded.apiserver.cel.values import contains, equal, less


def _is_sorted(values: list[Any]) -> bool:
    return all(not less(after, before) for before, after in pairwise(values))


def _sum(values: list[Any]) -> Any:
    if not values:
        return 0
    first = values[0]
    if isinstance(first, bool) or not isinstance(first, int | float | timedelta):
        raise CelFault("no such overload")
    total = sum(values[1:], first)
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise CelFault("integer overflow")
    return total


def _extreme(values: list[Any], word: str, *, largest: bool) -> Any:
    if not values:
        raise CelFault(f"{word} called on empty list")
    found = values[0]
    for one in values[1:]:
        if less(found, one) if largest else less(one, found):
            found = one
    return found


def _index(values: list[Any], wanted: Any) -> int:
    return next((place for place, one in enumerate(values) if equal(one, wanted)), -1)


def _last_index(values: list[Any], wanted: Any) -> int:
    return next((place for place in reversed(range(len(values))) if equal(values[place], wanted)), -1)


def _distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for one in values:
        if not contains(found, one):
            found.append(one)
    return found


def _flatten(values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelFault("level must be non-negative")
    found: list[Any] = []
    for one in values:
        if isinstance(one, list) and depth > 0:
            found += _flatten(one, depth - 1)
        else:
            found.append(one)
    return found


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelFault(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelFault(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(values):
        raise CelFault(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def in_order(values: list[Any], keys: list[Any]) -> list[Any]:
    """The values as their keys rise; equal ones stay as they were."""

    def compare(one: int, other: int) -> int:
        return less(keys[other], keys[one]) - less(keys[one], keys[other])

    return [values[place] for place in sorted(range(len(values)), key=cmp_to_key(compare))]


def _sorted(values: list[Any]) -> list[Any]:
    return in_order(values, values)


def _range(count: int) -> list[int]:
    if count > 1_000_000:
        raise CelFault("operation cancelled: actual cost limit exceeded")
    return list(range(count))


def _all_in(one: list[Any], other: list[Any]) -> bool:
    return all(contains(one, wanted) for wanted in other)


def _first(values: list[Any], place: int) -> Any:
    from shoal.embedded.apiserver.cel.values import NONE, Optional

    return Optional(values[place]) if values else NONE


TABLE: Table = (
    row("_+_(list, list) joined", lambda one, other: [*one, *other]),
    row("list!isSorted() bool", _is_sorted),
    row("list!sum() item", _sum),
    row("list!min() item", lambda values: _extreme(values, "min", largest=False)),
    row("list!max() item", lambda values: _extreme(values, "max", largest=True)),
    row("list!indexOf(dyn) int", _index),
    row("list!lastIndexOf(dyn) int", _last_index),
    row("sets.contains(list, list) bool", _all_in),
    row("sets.equivalent(list, list) bool", lambda one, other: _all_in(one, other) and _all_in(other, one)),
    row("sets.intersects(list, list) bool", lambda one, other: any(contains(other, value) for value in one)),
    row("list!distinct() same", _distinct),
    row("list!flatten() list", _flatten),
    row("list!flatten(int) list", _flatten),
    row("list!slice(int, int) same", _slice),
    row("list!sort() same", _sorted),
    row("list!reverse() same", lambda values: values[::-1]),
    row("list!first() optional_item", lambda values: _first(values, 0)),
    row("list!last() optional_item", lambda values: _first(values, -1)),
    row("lists.range(int) list", _range),
)
