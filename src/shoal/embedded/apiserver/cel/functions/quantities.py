"""Kubernetes' quantities: `quantity("1Gi").isGreaterThan(quantity("500Mi"))`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.functions.overload import Table, row
from shoal.embedded.apiserver.cel.values import Opaque
from shoal.units.errors import UserError
from shoal.units.quantity import NANO, Quantity


def _made(nano: int) -> Opaque:
    return Opaque("quantity", nano)


def _quantity(text: str) -> Opaque:
    try:
        return _made(Quantity.parse(text).nano)
    except UserError:
        words = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        raise CelFault(words) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except UserError:
        return False
    return True


def _sign(one: Opaque) -> int:
    return int(one.held > 0) - int(one.held < 0)


def _compare(one: Opaque, other: Opaque) -> int:
    return int(one.held > other.held) - int(one.held < other.held)


def _integer(one: Opaque) -> int:
    whole, rest = divmod(one.held, NANO)
    if rest or not -(2**63) <= whole < 2**63:
        raise CelFault("cannot convert value to integer")
    return int(whole)


def _is_integer(one: Opaque) -> bool:
    return bool(one.held % NANO == 0 and -(2**63) <= one.held // NANO < 2**63)


def _plus(sign: int) -> Callable[[Opaque, Any], Opaque]:
    return lambda one, other: _made(one.held + sign * (other.held if isinstance(other, Opaque) else other * NANO))


TABLE: Table = (
    row("quantity(string) quantity", _quantity),
    row("isQuantity(string) bool", _is_quantity),
    row("quantity!sign() int", _sign),
    row("quantity!isInteger() bool", _is_integer),
    row("quantity!asInteger() int", _integer),
    row("quantity!asApproximateFloat() double", lambda one: one.held / NANO),
    row("quantity!isGreaterThan(quantity) bool", lambda one, other: one.held > other.held),
    row("quantity!isLessThan(quantity) bool", lambda one, other: one.held < other.held),
    row("quantity!compareTo(quantity) int", _compare),
    row("quantity!add(quantity) quantity", _plus(1)),
    row("quantity!add(int) quantity", _plus(1)),
    row("quantity!sub(quantity) quantity", _plus(-1)),
    row("quantity!sub(int) quantity", _plus(-1)),
)
