"""Money as exact decimals: reading, and rounding to cents without losing one.

An amount is a `Decimal` in the currency of the prices. It is rounded once, where it is shown: `rounded` rounds the
parts of a total so that their sum is the rounded total. Rejected: binary floating point, in which ten times 0.1 is not
1, and rounding of each part alone, after which a statement of many lines differs from its invoice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

CENT = Decimal("0.01")
EXACT = Context(prec=50)
"""Wide enough for the sums of a year of a large fleet in parts of a billionth."""
_AMOUNT = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,12})?")


class MoneyError(ValueError):
    """The text is no amount of money that is at least 0."""


def money(text: str) -> Decimal:
    """`98.32`. Raises MoneyError for signs, exponents, separators and more than 12 decimals."""
    if not _AMOUNT.fullmatch(text):
        raise MoneyError("is not an amount; write digits with at most 12 decimals, as in 98.32")
    return Decimal(text)


def cents(amount: Decimal) -> Decimal:
    """Half a cent goes to the even neighbour."""
    return amount.quantize(CENT, ROUND_HALF_EVEN, EXACT)


def rounded(parts: Sequence[Decimal], unit: Decimal = CENT) -> list[Decimal]:
    """The parts in whole units; their sum is the rounded sum. The parts with the largest remainders are rounded up."""
    total = sum(parts, Decimal(0)).quantize(unit, ROUND_HALF_EVEN, EXACT)
    lower = [part.quantize(unit, ROUND_FLOOR, EXACT) for part in parts]
    missing = int((total - sum(lower, Decimal(0))) / unit)
    order = sorted(range(len(parts)), key=lambda at: (lower[at] - parts[at], at))
    for at in order[:missing]:
        lower[at] += unit
    return lower
