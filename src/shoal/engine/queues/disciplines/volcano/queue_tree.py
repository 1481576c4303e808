"""Holds the hierarchy of queues, and charges usage to a queue and all its ancestors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shoal.api.groups.queue_parents import cycle_above, cycle_words
from shoal.engine.queues.disciplines.volcano.amounts import Amounts, add, exceeded_resources
from shoal.engine.queues.disciplines.volcano.group_phases import (
    NOT_ENOUGH_RESOURCES,
    QUEUE_CLOSED,
    QUEUE_CYCLE,
    QUEUE_MISSING,
    QUEUE_NOT_LEAF,
    QUOTA_INSUFFICIENT,
    GroupRefusal,
)
from shoal.engine.queues.disciplines.volcano.objects import ROOT_QUEUE, Queue

Usage = dict[str, dict[str, int]]
"""Amounts by queue."""


class QueueTree:
    def __init__(self, queues: Iterable[Queue]) -> None:
        self.queues: Mapping[str, Queue] = {queue.name: queue for queue in queues}
        self._parents = {queue.parent for queue in self.queues.values()}
        self._limits: dict[str, dict[str, int]] = {}

    @property
    def has_limits(self) -> bool:
        return any(queue.spec.capability for queue in self.queues.values())

    def path_to_root(self, name: str) -> Iterator[Queue]:
        """The queue and its ancestors; a cycle of parents ends where it closes."""
        seen: set[str] = set()
        while name and name not in seen:
            queue = self.queues.get(name)
            if queue is None:
                return
            seen.add(name)
            yield queue
            name = queue.parent

    def charge(self, usage: Usage, name: str, amounts: Amounts, sign: int = 1) -> None:
        """Charges the queue and its ancestors; an unknown queue is charged, too."""
        known = [queue.name for queue in self.path_to_root(name)]
        for each in known or [name]:
            add(usage.setdefault(each, {}), amounts, sign)

    def closed(self, name: str) -> GroupRefusal | None:
        """Why the queue admits no group at all."""
        queue = self.queues.get(name)
        if queue is None:
            return GroupRefusal(QUEUE_MISSING, f'unable to find queue: queues.scheduling.volcano.sh "{name}" not found')
        if cycle := self.cycle(name):
            words = f"queue `{name}` has no way to the root: parents form the cycle {cycle_words(cycle)}"
            return GroupRefusal(QUEUE_CYCLE, words)
        if name in self._parents:
            return GroupRefusal(
                QUEUE_NOT_LEAF, f"can only submit PodGroup to a leaf queue, queue `{name}` has child queues"
            )
        if (orphan := self.orphan(name)) is not None:
            words = f'unable to find queue: queues.scheduling.volcano.sh "{orphan.parent}" not found'
            return GroupRefusal(QUEUE_MISSING, f"{words}, the parent of queue `{orphan.name}`")
        for each in self.path_to_root(name):
            if not each.is_open:
                message = f"can only submit PodGroup to queue with state `Open`, queue `{each.name}` status is"
                return GroupRefusal(QUEUE_CLOSED, f"{message} `{each.status.state}`")
        return None

    def cycle(self, name: str) -> tuple[str, ...]:
        """The cycle in which the ancestors of the queue end; empty if they end elsewhere."""
        return cycle_above(name, self._parent)

    def orphan(self, name: str) -> Queue | None:
        """The queue on the way to the root whose parent does not exist."""
        top = list(self.path_to_root(name))[-1:]
        has_parent = not top or top[0].parent in ("", ROOT_QUEUE) or top[0].parent in self.queues
        return None if has_parent else top[0]

    def _parent(self, name: str) -> str:
        queue = self.queues.get(name)
        return "" if queue is None else queue.parent

    def over_capability(self, name: str, asked: Amounts, *taken: Usage) -> GroupRefusal | None:
        """Why the amounts do not fit below the capabilities of the queue and its ancestors."""
        for queue in self.path_to_root(name):
            limit = self._limit(queue)
            short = exceeded_resources(asked, (usage.get(queue.name, {}) for usage in taken), limit) if limit else []
            if short:
                message = f"{QUOTA_INSUFFICIENT}: " + ", ".join(f"insufficient {one}" for one in short)
                return GroupRefusal(NOT_ENOUGH_RESOURCES, message, is_quota=True)
        return None

    def _limit(self, queue: Queue) -> dict[str, int]:
        found = self._limits.get(queue.name)
        if found is None:
            found = self._limits[queue.name] = queue.capability()
        return found
