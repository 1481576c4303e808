"""Sums what is allocated and requested in each queue and its descendants, and formats the amounts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.engine.queues.disciplines.kai.admission_unit import AdmissionUnit
from shoal.engine.queues.disciplines.kai.objects import RESOURCES, Queue, path_to_root
from shoal.engine.queues.facts import Amounts
from shoal.units.quantity import Quantity

_NAMES = {"gpu": "nvidia.com/gpu", "cpu": "cpu", "memory": "memory"}

QueueUsage = Mapping[tuple[str, str], Amounts]
"""(queue, status field) -> amounts."""


def queue_usage(queues: Mapping[str, Queue], units: Iterable[AdmissionUnit]) -> QueueUsage:
    found: dict[tuple[str, str], Amounts] = {}
    for unit in units:
        active_amounts, waiting = unit.amounts(unit.active.values()), unit.amounts(unit.waiting.values())
        parts = [("allocated", active_amounts), ("requested", active_amounts), ("requested", waiting)]
        parts += [("allocatedNonPreemptible", active_amounts)] if unit.is_non_preemptible else []
        for queue in path_to_root(queues, unit.spec.queue):
            for what, amounts in parts:
                add(found.setdefault((queue.name, what), {}), amounts)
    return found


def add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def to_quantities(amounts: Amounts) -> dict[str, str]:
    """Kubernetes quantities; zero amounts are left out."""
    return {
        _NAMES[name]: str(Quantity.of(amount) if name == "memory" else Quantity.of_milli(amount))
        for name in RESOURCES
        if (amount := amounts.get(name, 0))
    }
