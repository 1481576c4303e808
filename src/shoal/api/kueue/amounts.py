"""Amounts that are bounds or sums and not what one pod takes: halves of a device are allowed, less than zero is not.

Absurd ones are refused as everywhere, which keeps all sums within 64 bits.
"""

from __future__ import annotations

from shoal.api.resource_rules import ABSURD, ABSURD_MILLI
from shoal.api.resources import CPU
from shoal.units.errors import UserError, Where
from shoal.units.quantity import Quantity


def check_bound(resource: str, amount: Quantity, where: Where) -> None:
    if amount.nano < 0:
        raise UserError(f"must be 0 or more, got {amount}", where=where)
    if amount > (ABSURD_MILLI if resource == CPU else ABSURD):
        raise UserError(f"is absurdly large: {amount}", where=where)
