"""Arithmetic. Whole numbers have 64 bits and never wrap: what does not fit is a failure."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.functions.overload import Table, row

_MOST, _LEAST, _MOST_UNSIGNED = 2**63 - 1, -(2**63), 2**64 - 1


def _whole(value: int) -> int:
    if not _LEAST <= value <= _MOST:
        raise CelFault("integer overflow")
    return value


def _unsigned(value: int) -> Any:
    from shoal.embedded.apiserver.cel.values import Uint

    if not 0 <= value <= _MOST_UNSIGNED:
        raise CelFault("unsigned integer overflow")
    return Uint(value)


def _quotient(one: int, other: int) -> int:
    if other == 0:
        raise CelFault("division by zero")
    found = abs(one) // abs(other)
    return found if (one < 0) == (other < 0) else -found


def _remainder(one: int, other: int) -> int:
    if other == 0:
        raise CelFault("modulus by zero")
    return int(math.fmod(one, other)) if max(abs(one), abs(other)) < 2**52 else one - other * _quotient(one, other)


def _real_quotient(one: float, other: float) -> float:
    if other == 0:
        return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)
    return one / other


def _keep(value: float) -> float:
    return value


def _arithmetic(kind: str, fit: Callable[[Any], Any]) -> Table:
    return (
        row(f"_+_({kind}, {kind}) {kind}", lambda one, other: fit(one + other)),
        row(f"_-_({kind}, {kind}) {kind}", lambda one, other: fit(one - other)),
        row(f"_*_({kind}, {kind}) {kind}", lambda one, other: fit(one * other)),
    )


def _extreme(pick: Callable[..., Any]) -> Callable[..., Any]:
    def found(*values: Any) -> Any:
        given = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        if not given:
            raise CelFault("argument list must not be empty")
        if any(isinstance(one, bool) or not isinstance(one, int | float) for one in given):
            raise CelFault("no such overload")
        return pick(given)

    return found


def _rounded(value: float) -> float:
    return math.copysign(math.floor(abs(value) + 0.5), value) if math.isfinite(value) else value


def _sign(value: Any) -> Any:
    return type(value)((value > 0) - (value < 0))


TABLE: Table = (
    *_arithmetic("int", _whole),
    *_arithmetic("uint", _unsigned),
    *_arithmetic("double", _keep),
    row("_/_(int, int) int", lambda one, other: _whole(_quotient(one, other))),
    row("_/_(uint, uint) uint", lambda one, other: _unsigned(_quotient(one, other))),
    row("_/_(double, double) double", _real_quotient),
    row("_%_(int, int) int", _remainder),
    row("_%_(uint, uint) uint", lambda one, other: _unsigned(_remainder(one, other))),
    row("-_(int) int", lambda value: _whole(-value)),
    row("-_(double) double", lambda value: -value),
    *(row(f"math.greatest({takes}) dyn", _extreme(max)) for takes in ("dyn", "dyn, dyn", "dyn, dyn, dyn")),
    *(row(f"math.least({takes}) dyn", _extreme(min)) for takes in ("dyn", "dyn, dyn", "dyn, dyn, dyn")),
    row("math.ceil(double) double", lambda value: float(math.ceil(value)) if math.isfinite(value) else value),
    row("math.floor(double) double", lambda value: float(math.floor(value)) if math.isfinite(value) else value),
    row("math.round(double) double", _rounded),
    row("math.trunc(double) double", lambda value: float(math.trunc(value)) if math.isfinite(value) else value),
    row("math.isNaN(double) bool", math.isnan),
    row("math.isInf(double) bool", math.isinf),
    row("math.isFinite(double) bool", math.isfinite),
    row("math.abs(int) int", lambda value: _whole(abs(value))),
    row("math.abs(double) double", abs),
    row("math.sign(int) int", _sign),
    row("math.sign(double) double", _sign),
)
