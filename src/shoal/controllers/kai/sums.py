"""What is held and asked for below each queue, and how amounts are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.controllers.kai.sights import RESOURCES, Queue, path_up
from shoal.controllers.kai.work import Work
from shoal.engine.queues.facts import Amounts
from shoal.units.quantity import Quantity

_NAMES = {"gpu": "nvidia.com/gpu", "cpu": "cpu", "memory": "memory"}

Sums = Mapping[tuple[str, str], Amounts]
"""(queue, field of its status) -> amounts."""


def sums_of(queues: Mapping[str, Queue], works: Iterable[Work]) -> Sums:
    found: dict[tuple[str, str], Amounts] = {}
    for work in works:
        there, waiting = work.amounts(work.there.values()), work.amounts(work.waiting.values())
        parts = [("allocated", there), ("requested", there), ("requested", waiting)]
        parts += [("allocatedNonPreemptible", there)] if work.is_fixed else []
        for queue in path_up(queues, work.origin.queue):
            for what, amounts in parts:
                add_to(found.setdefault((queue.name, what), {}), amounts)
    return found


def add_to(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def texts_of(amounts: Amounts) -> dict[str, str]:
    """As Kubernetes writes them; what is zero is left out."""
    return {
        _NAMES[name]: str(Quantity.of(amount) if name == "memory" else Quantity.of_milli(amount))
        for name in RESOURCES
        if (amount := amounts.get(name, 0))
    }
