"""Resolves values such as `maxSurge: 25%` and `maxUnavailable: 1` to a number of pods."""

from __future__ import annotations


def amount_of(written: int | str | None, whole: int, *, up: bool) -> int:
    """A percentage is rounded up or down; None counts as 0."""
    if written is None:
        return 0
    if isinstance(written, int):
        return written
    share = int(written.removesuffix("%")) * whole
    return -(-share // 100) if up else share // 100
