"""Represents the values of one label that a requirement admits, and intersects two of them.

A closed set lists its values; an open set admits everything but its exclusions, within whole-number bounds. All eight
operators come to one of the two, so an intersection has four cases and always ends in the same normal form: a closed
set has no bounds (they have been applied to its values), an open set excludes only values within its bounds, and
bounds that cross admit nothing. Under a bound a value that is not a whole number is never admitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal

import msgspec

from shoal.api.requirement import as_int64
from shoal.units.errors import UserError, excerpt

RequirementOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]
RequirementKind = Literal["In", "NotIn", "Exists", "DoesNotExist"]

_NEGATIVE: Final = frozenset({"NotIn", "DoesNotExist"})


class AdmittedValues(msgspec.Struct, frozen=True, cache_hash=True):
    """What one requirement, or several on one label, admit."""

    is_open: bool
    values: frozenset[str] = frozenset()
    """Of a closed set the admitted values, of an open one the excluded values."""
    gte: int | None = None
    lte: int | None = None
    min_values: int | None = None

    @property
    def kind(self) -> RequirementKind:
        """The operator of the normal form; bounds are beside it."""
        if self.is_open:
            return "NotIn" if self.values else "Exists"
        return "In" if self.values else "DoesNotExist"

    @property
    def is_bounded(self) -> bool:
        return self.gte is not None or self.lte is not None

    def has(self, value: str) -> bool:
        """Whether the value is admitted."""
        if not self.is_open:
            return value in self.values
        return value not in self.values and self._is_within(value)

    def _is_within(self, value: str) -> bool:
        if not self.is_bounded:
            return True
        number = as_int64(value)
        if number is None:
            return False
        return (self.gte is None or number >= self.gte) and (self.lte is None or number <= self.lte)

    def intersection(self, other: AdmittedValues) -> AdmittedValues:
        """What both admit, with the larger of the two `min_values`."""
        return _intersection(self, other)

    def overlaps(self, other: AdmittedValues) -> bool:
        """Whether some value satisfies both: two open sets always have one unless their bounds cross."""
        both = _intersection(self, other)
        return both.is_open or bool(both.values)

    def is_compatible(self, other: AdmittedValues) -> bool:
        """As `overlaps`; two requirements that the absence of the label satisfies are compatible too."""
        return (self.kind in _NEGATIVE and other.kind in _NEGATIVE) or self.overlaps(other)

    def is_met_by_absence(self) -> bool:
        return self.kind in _NEGATIVE

    def __str__(self) -> str:
        bounds = [f">= {self.gte}"] * (self.gte is not None) + [f"<= {self.lte}"] * (self.lte is not None)
        listed = ", ".join(sorted(self.values))
        text = {"In": f"in [{listed}]", "NotIn": f"not in [{listed}]"}.get(self.kind, self.kind)
        return " ".join([text, *bounds]) if not bounds or self.values else " ".join(bounds)


ANY: Final = AdmittedValues(is_open=True)
NONE: Final = AdmittedValues(is_open=False)


@lru_cache(maxsize=65536)
def only(*values: str) -> AdmittedValues:
    """Exactly these values."""
    return AdmittedValues(is_open=False, values=frozenset(values))


def admitted_values(
    operator: RequirementOperator, values: Iterable[str] = (), min_values: int | None = None
) -> AdmittedValues:
    """What one requirement admits."""
    listed = tuple(values)
    match operator:
        case "In":
            return AdmittedValues(is_open=False, values=frozenset(listed), min_values=min_values)
        case "NotIn":
            return AdmittedValues(is_open=True, values=frozenset(listed), min_values=min_values)
        case "Exists":
            return AdmittedValues(is_open=True, min_values=min_values)
        case "DoesNotExist":
            return AdmittedValues(is_open=False, min_values=min_values)
        case "Gt" | "Gte":
            least = _bound(operator, listed) + (operator == "Gt")
            return AdmittedValues(is_open=True, gte=least, min_values=min_values)
        case "Lt" | "Lte":
            most = _bound(operator, listed) - (operator == "Lt")
            return AdmittedValues(is_open=True, lte=most, min_values=min_values)
        case _:
            raise UserError(
                f"unknown operator {excerpt(str(operator))}",
                fix="use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte",
            )


def _bound(operator: str, values: tuple[str, ...]) -> int:
    number = as_int64(values[0]) if len(values) == 1 else None
    if number is None:
        raise UserError(f"operator {operator} needs exactly one whole number, got {', '.join(map(excerpt, values))}")
    return number


@lru_cache(maxsize=65536)
def _intersection(one: AdmittedValues, other: AdmittedValues) -> AdmittedValues:
    min_values = _larger(one.min_values, other.min_values)
    gte, lte = _larger(one.gte, other.gte), _smaller(one.lte, other.lte)
    if gte is not None and lte is not None and gte > lte:
        return AdmittedValues(is_open=False, min_values=min_values)
    is_open = one.is_open and other.is_open
    if is_open:
        values = one.values | other.values
    elif one.is_open:
        values = other.values - one.values
    elif other.is_open:
        values = one.values - other.values
    else:
        values = one.values & other.values
    bounds = AdmittedValues(is_open=True, gte=gte, lte=lte)
    within = frozenset(value for value in values if bounds.has(value))
    if is_open:
        return AdmittedValues(is_open=True, values=within, gte=gte, lte=lte, min_values=min_values)
    return AdmittedValues(is_open=False, values=within, min_values=min_values)


def _larger(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _smaller(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
