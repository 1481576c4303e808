"""Computes with amounts of resources by name: cpu in thousandths of a core, all others in their own unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from shoal.api.pod import PodSpec
from shoal.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, effective_requests
from shoal.units.quantity import Format, Quantity

Amounts = Mapping[str, int]
Figures = Mapping[str, float]
"""Amounts that a division may have made fractions of."""
GPU = "nvidia.com/gpu"
_BYTES = frozenset({MEMORY, EPHEMERAL_STORAGE})


def requests_of(spec: PodSpec) -> dict[str, int]:
    """What a pod is charged for in its queue, including one of the resource `pods`."""
    return {**effective_requests(spec), PODS: 1}


Number = TypeVar("Number", int, float)


def add(total: dict[str, Number], more: Mapping[str, Number], sign: int = 1) -> None:
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


def allocated_to_api(amounts: Figures) -> dict[str, str]:
    """The `allocated` field of a queue, of amounts in the engine's units; it names cpu and memory even if they are
    zero."""
    positive = {name: int(amount) for name, amount in amounts.items() if amount > 0 and name != GPU}
    found = to_api({CPU: 0, MEMORY: 0, **positive})
    gpus = int(amounts.get(GPU, 0))
    return found | ({GPU: str(Quantity.of_milli(gpus))} if gpus > 0 else {})


def _quantity(name: str, amount: int) -> str:
    if name == CPU:
        return str(Quantity.of_milli(amount))
    return str(Quantity.of(amount, Format.BINARY if name in _BYTES else Format.DECIMAL))


NEGLIGIBLE = 0.1
"""Amounts that differ by less are equal, as in Volcano: a division leaves fractions."""


def holds(limit: Figures, used: Figures, *, unset: float = 0.0) -> bool:
    """Whether the used amounts are within the limit in all resources. `unset`: the limit of resources without one."""
    for name, amount in used.items():  # noqa: SIM110 - this is asked for every pod
        if amount - limit.get(name, unset) >= NEGLIGIBLE:
            return False
    return True


def within_asked(limit: Figures, used: Figures, asked: Figures, *, unset: float = 0.0) -> bool:
    """Whether used and asked amounts together are within the limit, in the resources asked for."""
    for name, amount in asked.items():
        if amount > 0 and used.get(name, 0) + amount - limit.get(name, unset) >= NEGLIGIBLE:
            return False
    return True


def is_nothing(amounts: Figures) -> bool:
    """Whether only pods are counted: such a pod is best effort."""
    return not any(amount >= NEGLIGIBLE for name, amount in amounts.items() if name != PODS)


def dominant_share(used: Figures, whole: Figures) -> float:
    """The largest used part of any resource of the whole; a part of nothing counts 1."""
    share = 0.0
    # Without calls: this is computed for every job and queue at every turn.
    for name, amount in whole.items():
        taken = used.get(name, 0)
        if taken > 0:
            part = taken / amount if amount > 0 else 1.0
            if part > share:
                share = part
    return share
