"""The price per hour of a GPU of one's own: its purchase over its years, its power, and what else a year costs."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from shoal.cost.prices.price_file import OnPremises

HOURS_PER_YEAR = Decimal(8760)
HOURS_PER_MONTH = Decimal(730)
"""A twelfth of a year."""


def needs_power(owned: Iterable[OnPremises]) -> bool:
    """Whether a price depends on power that is measured."""
    return any(one.watts is None and one.per_kwh for one in owned)


def per_gpu_hour(own: OnPremises, measured_watts: Decimal | None = None) -> Decimal | None:
    """`measured_watts`: of a GPU with its part of the machine. None where power has a price and no watts are known."""
    watts = own.watts if own.watts is not None else measured_watts
    if watts is None:
        if own.per_kwh:
            return None
        watts = Decimal(0)
    fixed = own.purchase / own.years / HOURS_PER_YEAR + own.other_per_year / HOURS_PER_YEAR
    return fixed + watts * own.pue / 1000 * own.per_kwh
