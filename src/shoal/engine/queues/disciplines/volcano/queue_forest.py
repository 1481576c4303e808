"""Holds Volcano's queues as the scheduler reads them: amounts in the engine's units, parents, children and leaves.

A queue without a parent is a child of the root. A cycle of parents ends where it closes: its queues are no descendants
of the root, and admit nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from shoal.api.groups.queue_parents import cycle_above, cycle_words
from shoal.api.resources import CPU, MEMORY
from shoal.engine.device_demand import FULL_MILLI
from shoal.engine.queues.disciplines.volcano.amounts import GPU, Figures
from shoal.engine.queues.disciplines.volcano.objects import ROOT_QUEUE, Queue

_PLAIN = (CPU, MEMORY)
"""A capability of 0 of these is no limit, as in Volcano."""
PRIORITY, FIFO, BEST_FIT = POLICIES = ("priority", "FIFO", "bestFit")
"""Which pods of a queue go first: of the least important job; of the youngest job; one that suffices alone."""


class VolcanoQueue(msgspec.Struct, frozen=True):
    """One queue. Amounts: cpu in thousandths of a core, GPUs in thousandths, all others in their own unit."""

    name: str
    parent: str = ""
    weight: int = 1
    priority: int = 0
    capability: Figures = {}
    deserved: Figures = {}
    guarantee: Figures = {}
    is_reclaimable: bool = True
    is_open: bool = True
    created_s: float = 0.0
    dequeue_strategy: str = ""
    is_preemptable: bool = True
    """Whether pods of the queue may be evicted or moved at all."""
    victims: str = PRIORITY
    """Which of its pods go first: PRIORITY, FIFO or BEST_FIT."""


def scheduler_queue(queue: Queue) -> VolcanoQueue:
    """The queue of an object."""
    return VolcanoQueue(
        queue.name,
        queue.parent,
        queue.spec.weight,
        queue.spec.priority,
        {
            name: amount
            for name, amount in engine_amounts(queue.capability()).items()
            if amount > 0 or name not in _PLAIN
        },
        engine_amounts(queue.deserved()),
        engine_amounts(queue.guarantee()),
        queue.spec.reclaimable is not False,
        queue.is_open,
        queue.metadata.created_s,
        queue.spec.dequeue_strategy,
        queue.spec.preemptable is not False,
        preemption_policy(queue.spec.preemption_policy) or PRIORITY,
    )


def preemption_policy(text: str) -> str:
    """The policy as it is named here; PRIORITY if none is named, empty for a word that is no policy."""
    return next((policy for policy in POLICIES if policy.lower() == text.lower()), "") if text else PRIORITY


def engine_amounts(amounts: Mapping[str, int]) -> dict[str, int]:
    """GPUs of an object are whole devices; the engine counts thousandths, so that shares of devices count as well."""
    return {name: amount * FULL_MILLI if name == GPU else amount for name, amount in amounts.items()}


def whole_gpus(amounts: Figures) -> dict[str, float]:
    """The inverse of `engine_amounts`."""
    return {name: amount / FULL_MILLI if name == GPU else amount for name, amount in amounts.items()}


class QueueForest:
    """The queues by name, with the paths to the root."""

    def __init__(self, queues: Iterable[VolcanoQueue]) -> None:
        self.queues: dict[str, VolcanoQueue] = {queue.name: queue for queue in queues}
        self._children: dict[str, list[VolcanoQueue]] = {}
        for queue in self.queues.values():
            if queue.name != ROOT_QUEUE:
                self._children.setdefault(self.parent_of(queue.name), []).append(queue)
        self._paths: dict[str, tuple[str, ...]] = {}
        self._places: dict[str, int] = {}
        self._refusals: dict[str, str] = {}
        self.declares_quota = any(queue.deserved or queue.guarantee for queue in self.queues.values())
        self.protected = frozenset(queue.name for queue in self.queues.values() if not queue.is_preemptable)
        """The queues of which no pod is evicted or moved."""
        self.is_tree = any(parent != ROOT_QUEUE for parent in self._children)
        """Whether queues have parents other than the root."""

    def parent_of(self, name: str) -> str:
        """The parent, which may not exist; empty for the root."""
        if name == ROOT_QUEUE:
            return ""
        queue = self.queues.get(name)
        return (queue.parent if queue is not None else "") or ROOT_QUEUE

    def children(self, name: str) -> Sequence[VolcanoQueue]:
        return self._children.get(name, ())

    def is_leaf(self, name: str) -> bool:
        return not self._children.get(name)

    def path(self, name: str) -> tuple[str, ...]:
        """The queue and its ancestors, the root last."""
        found = self._paths.get(name)
        if found is None:
            path: dict[str, None] = {}
            at = name
            while at and at not in path:
                path[at] = None
                at = self.parent_of(at)
            found = self._paths[name] = tuple(path)
        return found

    def place(self, name: str) -> int:
        """The place of the queue among all, the oldest first."""
        if not self._places:
            ordered = sorted(self.queues.values(), key=lambda queue: (queue.created_s, queue.name))
            self._places = {queue.name: place for place, queue in enumerate(ordered)}
        return self._places[name]

    def is_open(self, name: str) -> bool:
        """Whether the queue and all its ancestors are open."""
        return all(self.queues[each].is_open for each in self.path(name) if each in self.queues)

    def refusal(self, name: str) -> str:
        """Why the queue takes no jobs at all; empty if it does."""
        found = self._refusals.get(name)
        if found is None:
            found = self._refusals[name] = self._refusal(name)
        return found

    def _refusal(self, name: str) -> str:
        queue = self.queues.get(name)
        if queue is None:
            return f"queue {name} does not exist"
        if cycle := cycle_above(name, self._known_parent):
            return f"queue {name} has no way to the root: parents form the cycle {cycle_words(cycle)}"
        if not self.is_leaf(name):
            below = ", ".join(sorted(each.name for each in self.children(name)))
            return f"queue {name} has child queues ({below}); only leaf queues take jobs"
        for each in self.path(name):
            above = self.queues.get(each)
            if above is None:
                return "" if each == ROOT_QUEUE else f"queue {each}, an ancestor of queue {name}, does not exist"
            if not above.is_open:
                return f"queue {each} is not open"
        return ""

    def _known_parent(self, name: str) -> str:
        return self.parent_of(name) if name in self.queues else ""

    def distance(self, one: str, other: str) -> int:
        """How many levels above the first queue the nearest common ancestor is."""
        others = set(self.path(other))
        return next((steps for steps, name in enumerate(self.path(one)) if name in others), len(self.path(one)))
