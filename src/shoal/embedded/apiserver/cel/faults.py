"""Describes errors of expressions during compilation and evaluation."""

from __future__ import annotations


class CelFault(Exception):  # noqa: N818 - a refusal that callers turn into their own answer
    """An expression means nothing, or fails on the values it was given."""


class OutOfBudget(CelFault):
    """An evaluation took more steps than it may."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


NO_OVERLOAD = "no such overload"
