"""Represents a queue without the terms of one project, as far as two of the three projects can express it.

Amounts are in the engine's units: cpu and GPUs in thousandths, all others in their own unit. The quota of a parent
contains that of its children, as in Volcano and KAI; in Kueue a cohort declares only what comes on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from shoal.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from shoal.units.quantity import Format, Quantity

GPU = "nvidia.com/gpu"
MILLI = 1000
Amounts = Mapping[str, int]
ROOT = "root"


class NeutralQueue(msgspec.Struct, frozen=True):
    name: str
    parent: str = ""
    """Empty: below the root."""
    quota: Amounts = {}
    limit: Amounts = {}
    """Resources that are not named have no limit."""
    unlimited: frozenset[str] = frozenset()
    """Resources of which everything is its quota."""
    guarantee: Amounts = {}
    weight: float | None = None
    priority: int | None = None
    """Among its siblings; None: not declared."""
    is_first_come: bool = False
    is_held: bool = False
    is_reclaimable: bool = True
    locals: tuple[tuple[str, str], ...] = ()
    """Namespace and name of its local queues."""


class Queues(msgspec.Struct, frozen=True):
    """All queues, parents before children, and what the source declares that the model has no place for."""

    queues: Sequence[NeutralQueue]
    losses: Sequence[str] = ()

    def children(self, name: str) -> list[NeutralQueue]:
        return [queue for queue in self.queues if queue.parent == name]

    def is_leaf(self, name: str) -> bool:
        return not self.children(name)

    def resources(self) -> list[str]:
        named = {name for queue in self.queues for name in (*queue.quota, *queue.limit, *queue.guarantee)}
        return sorted(named | {name for queue in self.queues for name in queue.unlimited})


class Written(msgspec.Struct, frozen=True):
    """Objects of the other project, and what they do not express."""

    objects: Sequence[Mapping[str, object]]
    losses: Sequence[str]


def parents_first(queues: Iterable[NeutralQueue]) -> list[NeutralQueue]:
    """By depth, then by name; a queue whose parent is missing is kept at the top."""
    by_name = {queue.name: queue for queue in queues}

    def depth(queue: NeutralQueue) -> int:
        seen: set[str] = set()
        while queue.parent in by_name and queue.name not in seen:
            seen.add(queue.name)
            queue = by_name[queue.parent]
        return len(seen)

    return sorted(by_name.values(), key=lambda queue: (depth(queue), queue.name))


def quantity(name: str, amount: int) -> str:
    """The amount as an object states it."""
    if name == CPU:
        return str(Quantity.of_milli(amount))
    if name == GPU:
        return str(-(-amount // MILLI))
    return str(Quantity.of(amount, Format.BINARY if name in (MEMORY, EPHEMERAL_STORAGE) else Format.DECIMAL))


def fractions(queue: NeutralQueue) -> list[str]:
    """Says which GPU amounts are no whole number, where the other project knows only whole GPUs."""
    parts = (("quota", queue.quota), ("limit", queue.limit), ("guarantee", queue.guarantee))
    return [
        f"queue {queue.name}: {what} of {amounts[GPU] / MILLI:g} GPUs is rounded up to a whole number"
        for what, amounts in parts
        if amounts.get(GPU, 0) % MILLI
    ]


def in_engine_units(amounts: Amounts) -> dict[str, int]:
    """Objects of Kueue and Volcano count whole GPUs."""
    return {name: amount * MILLI if name == GPU else amount for name, amount in amounts.items()}
