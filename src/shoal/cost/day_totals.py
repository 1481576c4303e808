"""What the nodes cost on each day of a period, by what they were paid for.

The days add up to the invoice, without what belongs to no node: commitments, shared costs, adjustments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Literal, get_args

import msgspec

from shoal.cost.statement import CostRow
from shoal.units.money import rounded

PaidFor = Literal["held", "idle", "not held", "unknown"]
PAID_FOR: tuple[PaidFor, ...] = get_args(PaidFor)
_OF_CLASS: Mapping[str, PaidFor] = {
    "allocated-active": "held",
    "allocated-unmeasured": "held",
    "startup": "held",
    "allocated-idle": "idle",
    "fragmented": "not held",
    "unallocated": "not held",
    "unhealthy": "not held",
    "overhead": "not held",
    "unknown": "unknown",
}


class DayTotal(msgspec.Struct, frozen=True):
    day: int
    amounts: dict[PaidFor, Decimal]
    """In cents."""

    @property
    def total(self) -> Decimal:
        return sum(self.amounts.values(), Decimal(0))


def day_totals(rows: Sequence[CostRow], days: int) -> list[DayTotal]:
    sums = {(day, kind): Decimal(0) for day in range(days) for kind in PAID_FOR}
    for row in rows:
        if (kind := _OF_CLASS.get(row.kind)) is not None:
            sums[row.day, kind] += row.amount
    amounts = dict(zip(sums, rounded(list(sums.values())), strict=True))
    return [DayTotal(day, {kind: amounts[day, kind] for kind in PAID_FOR}) for day in range(days)]
