"""Limits the length of lists as Kueue does, so that no object exceeds what the API server stores."""

from __future__ import annotations

from collections.abc import Sized

from shoal.units.errors import UserError, Where


def check_most(items: Sized, most: int, where: Where) -> None:
    if len(items) > most:
        raise UserError(f"must have at most {most} items, got {len(items)}", where=where)


def check_some(items: Sized, most: int, where: Where) -> None:
    """As above, and not empty."""
    if not items:
        raise UserError("must have at least one item", where=where)
    check_most(items, most, where)
