"""The price of a machine over time, and what an interval costs.

Costs are whole numbers of `COST_UNIT`, so that sums over millions of intervals are exact. Rates are rounded to a
millionth of a billionth of the currency, which is far below a cent for any fleet and month.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from shoal.units.calendar_windows import HOUR_MS
from shoal.units.money import EXACT

_SCALE = 10**15
COST_UNIT = Fraction(1, _SCALE * HOUR_MS)
_PER_CURRENCY = Decimal(_SCALE * HOUR_MS)


class PriceCurve:
    """`rates`: moments and the price per hour from then on. The first also holds before its moment."""

    def __init__(self, rates: Iterable[tuple[int, Decimal]]) -> None:
        ordered = sorted(rates)
        self._starts = [start for start, _ in ordered]
        self._rates = [int((rate * _SCALE).to_integral_value()) for _, rate in ordered]
        if not ordered:
            raise ValueError("a price curve needs a rate")
        self._sums = [0]
        for at in range(1, len(ordered)):
            length = self._starts[at] - self._starts[at - 1]
            self._sums.append(self._sums[-1] + length * self._rates[at - 1])

    def units(self, start_ms: int, end_ms: int) -> int:
        """The cost of a whole machine in `COST_UNIT`."""
        if len(self._rates) == 1:
            return (end_ms - start_ms) * self._rates[0]
        return self._until(end_ms) - self._until(start_ms)

    def rate(self, at_ms: int) -> Decimal:
        """Per hour."""
        return Decimal(self._rates[self._index(at_ms)]) / _SCALE

    def breaks(self) -> Sequence[int]:
        return self._starts[1:]

    def _until(self, at_ms: int) -> int:
        index = self._index(at_ms)
        return self._sums[index] + (at_ms - self._starts[index]) * self._rates[index]

    def _index(self, at_ms: int) -> int:
        return max(0, bisect_right(self._starts, at_ms) - 1)


def constant(rate: Decimal) -> PriceCurve:
    return PriceCurve([(0, rate)])


def amount(units: int, numerator: int = 1, denominator: int = 1) -> Decimal:
    """So many units, times a fraction, in the currency."""
    return EXACT.divide(Decimal(units * numerator), _PER_CURRENCY * denominator)
