"""Updates the quota tree when KAI's queues or the nodes change."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.engine.events import Event, NodeFacts, NodeGone, NodeSeen
from shoal.engine.queues.disciplines.kai.objects import RESOURCES, Queue
from shoal.engine.queues.disciplines.kai.queue_quotas import facts_of
from shoal.engine.queues.facts import Amounts, LocalQueueFacts
from shoal.engine.queues.state import Fact, Queues
from shoal.engine.queues.topology_facts import QueueNode


class QuotaTreeUpdater:
    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._nodes: dict[str, NodeFacts] = {}
        self._put_facts: dict[tuple[type[Fact], str], Fact] = {}
        self.is_stale = True
        """Whether nodes changed since the last refresh."""

    @property
    def has_nodes(self) -> bool:
        return bool(self._nodes)

    def reset(self, queues: Queues) -> None:
        """Continues with an empty quota tree."""
        self._queues, self._put_facts, self.is_stale = queues, {}, True

    def hear(self, event: Event) -> None:
        if isinstance(event, NodeSeen):
            self._nodes[event.node.name] = event.node
            self.is_stale = True
        elif isinstance(event, NodeGone):
            self._nodes.pop(event.name, None)
            self.is_stale = True

    def refresh(self, queues: Mapping[str, Queue]) -> None:
        self.is_stale = False
        known = self._queues
        for name in self._nodes.keys() - known.nodes.keys():
            known.put(QueueNode(name))
        for name in known.nodes.keys() - self._nodes.keys():
            known.drop(QueueNode, name)
        found = {(type(fact), _name(fact)): fact for fact in facts_of(queues, self._capacity())}
        for kind, name in self._put_facts.keys() - found.keys():
            known.drop(kind, name)
        for fact in found.values():
            known.put(fact)
        self._put_facts = found

    # internals

    def _capacity(self) -> Amounts:
        total: Amounts = dict.fromkeys(RESOURCES, 0)
        for node in self._nodes.values():
            total["gpu"] += node.gpus * 1000
            total["cpu"] += node.allocatable.get("cpu", 0)
            total["memory"] += node.allocatable.get("memory", 0)
        return total


def _name(fact: Fact) -> str:
    return fact.key if isinstance(fact, LocalQueueFacts) else fact.name
