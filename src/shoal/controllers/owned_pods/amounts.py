"""`maxSurge: 25%`, `maxUnavailable: 1`: how many that is of so many."""

from __future__ import annotations


def amount_of(written: int | str | None, whole: int, *, up: bool) -> int:
    """A share is rounded up or down; nothing written is none."""
    if written is None:
        return 0
    if isinstance(written, int):
        return written
    share = int(written.removesuffix("%")) * whole
    return -(-share // 100) if up else share // 100
