"""One condition on a set of labels: a key, an operator, values. Label and node selectors are made of these.

A requirement is a plain value, so that an engine can turn it into columns over nodes; `matches` says the
same for one set of labels at a time and is what tests hold the columns against.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, assert_never

from shoal.api.names import label_key_fault, label_value_fault
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

_INTEGER = re.compile(r"[+-]?[0-9]+")
_LONGEST_INT64 = 20


class Requirement(ApiStruct, frozen=True):
    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """NotIn and DoesNotExist hold where the key is absent; all others need it."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt":
                return _compare(value, self.values) > 0
            case "Lt":
                return _compare(value, self.values) < 0
            case _:
                assert_never(self.operator)

    def check(self, where: Where, *, numeric: bool) -> None:
        """Refuse what the API server refuses. Only node selectors may compare numbers."""
        if fault := label_key_fault(self.key):
            raise UserError(f"{excerpt(self.key)} is not a label key: {fault}", where=where.below("key"))
        values = where.below("values")
        match self.operator:
            case "In" | "NotIn":
                if not self.values:
                    raise UserError(f"operator {self.operator} needs at least one value", where=values)
            case "Exists" | "DoesNotExist":
                if self.values:
                    raise UserError(f"operator {self.operator} takes no values", where=values)
            case "Gt" | "Lt":
                if not numeric:
                    raise UserError(
                        f"operator {self.operator} is for node selectors only",
                        where=where.below("operator"),
                        fix="use In, NotIn, Exists or DoesNotExist",
                    )
                if len(self.values) != 1 or as_int64(self.values[0]) is None:
                    raise UserError(f"operator {self.operator} needs exactly one whole number", where=values)
                return
        for index, value in enumerate(self.values):
            if fault := label_value_fault(value):
                raise UserError(f"{excerpt(value)} is not a label value: {fault}", where=values.below(f"[{index}]"))


def as_int64(text: str) -> int | None:
    """A whole number as the API server reads one: no blanks, no underscores, at most 64 bits."""
    if len(text) > _LONGEST_INT64 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _compare(value: str | None, bounds: tuple[str, ...]) -> int:
    """Sign of value minus bound; 0, which satisfies neither Gt nor Lt, where one of them is no number."""
    if value is None or len(bounds) != 1:
        return 0
    number, bound = as_int64(value), as_int64(bounds[0])
    if number is None or bound is None:
        return 0
    return (number > bound) - (number < bound)
