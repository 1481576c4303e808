"""Reads amounts of devices of the command line: `nvidia.com/mig-1g.10gb=7`."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.policy.tenants.grants import is_device
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.numbers import whole_of


def device_amounts(texts: Sequence[str] | None, option: str) -> dict[str, int]:
    """Raises UserError."""
    found: dict[str, int] = {}
    for text in texts or ():
        name, equals, amount = text.partition("=")
        number = whole_of(amount)
        if not equals or not is_device(name) or number is None or number < 0:
            fix = "write NAME=N, as in nvidia.com/mig-1g.10gb=7"
            raise UserError(f"{excerpt(text)} is no amount of a device", where=Where(path=option), fix=fix)
        found[name] = number
    return found
