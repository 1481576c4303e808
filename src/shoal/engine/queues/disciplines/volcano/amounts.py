"""Computes with amounts of resources by name: cpu in thousandths of a core, all others in their own unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.api.pod import PodSpec
from shoal.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, effective_requests
from shoal.units.quantity import Format, Quantity

Amounts = Mapping[str, int]
_BYTES = frozenset({MEMORY, EPHEMERAL_STORAGE})


def requests_of(spec: PodSpec) -> dict[str, int]:
    """What a pod is charged for in its queue, including one of the resource `pods`."""
    return {**effective_requests(spec), PODS: 1}


def add(total: dict[str, int], more: Amounts, sign: int = 1) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + sign * amount


def multiplied(each: Amounts, count: int) -> dict[str, int]:
    return {name: amount * count for name, amount in each.items()}


def uncovered(part: Amounts, whole: Amounts) -> dict[str, int]:
    """`whole` minus `part`, at least zero for each resource."""
    return {name: max(amount - part.get(name, 0), 0) for name, amount in whole.items()}


def exceeded_resources(asked: Amounts, taken: Iterable[Amounts], limit: Amounts) -> list[str]:
    """The requested resources whose total would exceed the limit."""
    known = tuple(taken)
    return sorted(
        name
        for name, amount in asked.items()
        if amount > 0 and name in limit and amount + sum(one.get(name, 0) for one in known) > limit[name]
    )


def to_api(amounts: Amounts) -> dict[str, str]:
    return {name: _quantity(name, amount) for name, amount in sorted(amounts.items())}


def allocated_to_api(amounts: Amounts) -> dict[str, str]:
    """The `allocated` field of a queue; it names cpu and memory even if they are zero."""
    positive = {name: amount for name, amount in amounts.items() if amount > 0}
    return to_api({CPU: 0, MEMORY: 0, **positive})


def _quantity(name: str, amount: int) -> str:
    if name == CPU:
        return str(Quantity.of_milli(amount))
    return str(Quantity.of(amount, Format.BINARY if name in _BYTES else Format.DECIMAL))
