"""Amounts of resources by name, as queues count them: cpu in thousandths of a core, all else in its own unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.api.pod import PodSpec
from shoal.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, effective_requests
from shoal.units.quantity import Format, Quantity

Amounts = Mapping[str, int]
_BYTES = frozenset({MEMORY, EPHEMERAL_STORAGE})


def requests_of(spec: PodSpec) -> dict[str, int]:
    """What a pod counts for; it is a pod, too."""
    return {**effective_requests(spec), PODS: 1}


def add(total: dict[str, int], more: Amounts, sign: int = 1) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + sign * amount


def times(each: Amounts, count: int) -> dict[str, int]:
    return {name: amount * count for name, amount in each.items()}


def beyond(part: Amounts, whole: Amounts) -> dict[str, int]:
    """What of `whole` is not covered by `part`, nowhere below zero."""
    return {name: max(amount - part.get(name, 0), 0) for name, amount in whole.items()}


def lacking(asked: Amounts, taken: Iterable[Amounts], limit: Amounts) -> list[str]:
    """The resources asked for of which there would be more than the limit."""
    known = tuple(taken)
    return sorted(
        name
        for name, amount in asked.items()
        if amount > 0 and name in limit and amount + sum(one.get(name, 0) for one in known) > limit[name]
    )


def to_api(amounts: Amounts) -> dict[str, str]:
    return {name: _spelled(name, amount) for name, amount in sorted(amounts.items())}


def allocated_to_api(amounts: Amounts) -> dict[str, str]:
    """Cpu and memory are told also where nothing of them is taken."""
    told = {name: amount for name, amount in amounts.items() if amount > 0}
    return to_api({CPU: 0, MEMORY: 0, **told})


def _spelled(name: str, amount: int) -> str:
    if name == CPU:
        return str(Quantity.of_milli(amount))
    return str(Quantity.of(amount, Format.BINARY if name in _BYTES else Format.DECIMAL))
