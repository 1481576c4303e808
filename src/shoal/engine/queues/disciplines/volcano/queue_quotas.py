"""Converts Volcano's queues into facts of the quota tree: `deserved` is nominal quota, what exceeds it is borrowed.

There are two modes. If any queue declares `deserved` or `guarantee`, these are the quotas; queues borrow what others
leave unused, and return it when the others need it. Otherwise the cluster is divided by `weight`, and fair sharing
decides which queue borrows. A guarantee is never lent. A capability bounds what a queue and its descendants may borrow.

Rejected: sharing whenever there are two queues. Queues without any declaration do not compete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shoal.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from shoal.api.selectors import Selector
from shoal.engine.events import NodeFacts
from shoal.engine.queues.disciplines.volcano.amounts import Amounts, add
from shoal.engine.queues.disciplines.volcano.objects import ROOT_QUEUE, Queue
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree
from shoal.engine.queues.facts import (
    ClusterQueueFacts,
    CohortFacts,
    FlavorFacts,
    FlavorQuotas,
    LocalQueueFacts,
    PreemptionRules,
    Quota,
    ResourceGroup,
)
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact

FLAVOR = "volcano"
_UNLIMITED = 1 << 60
_GPU = "nvidia.com/gpu"
_SHARED_RESOURCES = frozenset({CPU, MEMORY, PODS, EPHEMERAL_STORAGE})
_RULES = PreemptionRules(reclaim="Any")


class QueueQuotas:
    """The quotas of the queues of a tree, given the capacity of the cluster."""

    def __init__(self, tree: QueueTree, capacity: Amounts) -> None:
        self._tree = tree
        self._capacity = capacity
        self._children: dict[str, list[Queue]] = {}
        self._nominal: dict[str, dict[str, int]] = {}
        """The nominal quota by queue, set by `facts`."""
        for queue in tree.queues.values():
            if queue.name != ROOT_QUEUE:
                self._children.setdefault(queue.parent, []).append(queue)
        known = [queue for queue in tree.queues.values() if queue.name != ROOT_QUEUE]
        self.is_by_weight = not any(queue.spec.deserved or queue.spec.guarantee.resource for queue in known)
        named = {name for queue in known for name in (*queue.deserved(), *queue.guarantee(), *queue.capability())}
        self.resources: Sequence[str] = tuple(sorted({*named, *(capacity if self.is_by_weight else ())} - {PODS}))
        self.settings = Settings(fair_sharing=self.is_by_weight, respect_budgets=True, ignore_undeclared=True)

    @property
    def is_configured(self) -> bool:
        """Whether any queue declares how quota is shared."""
        leaves = [queue for queue in self._tree.queues.values() if queue.name != ROOT_QUEUE]
        if not self.is_by_weight:
            return True
        return len(leaves) > 1 and len({queue.spec.weight for queue in leaves}) > 1

    def is_reclaimable(self, name: str) -> bool:
        """Whether others may reclaim what the queue borrows. A queue that has only a weight has to declare it."""
        queue = self._tree.queues.get(name)
        reclaimable = queue.spec.reclaimable if queue is not None else False
        return bool(reclaimable) if self.is_by_weight else reclaimable is not False

    def is_within_own(self, name: str, used: Amounts, requested: Amounts) -> bool:
        """Whether the used amounts are within the nominal quota, for the requested resources."""
        nominal = self._nominal.get(name, {})
        return all(
            used.get(each, 0) <= nominal.get(each, 0)
            for each, amount in requested.items()
            if amount and each in nominal
        )

    def usage_of(self, amounts: Amounts) -> dict[str, int]:
        """The usage of a unit with these requests."""
        return {name: amounts.get(name, 0) for name in self.resources}

    def facts(self) -> list[Fact]:
        top = self._children.get(ROOT_QUEUE, [])
        root = self._tree.queues.get(ROOT_QUEUE)
        limits = root.capability() if root is not None else {}
        has = {name: self._capacity.get(name, 0) for name in self.resources}
        nominal = {name: min(amount, limits.get(name, amount)) for name, amount in has.items()}
        deserved = {queue.name: self._deserved(queue, top, nominal) for queue in top}
        left = {name: Quota(max(0, nominal[name] - sum(each[name] for each in deserved.values()))) for name in nominal}
        found: list[Fact] = [FlavorFacts(FLAVOR), CohortFacts(ROOT_QUEUE, groups=self._group(left))]
        for queue in top:
            found += self._facts_below(queue, ROOT_QUEUE, deserved[queue.name], frozenset())
        return found

    # internals

    def _facts_below(self, queue: Queue, parent: str, deserved: Amounts, seen: frozenset[str]) -> Iterable[Fact]:
        """The facts of the queue and its descendants; a cycle of parents ends where it closes."""
        below = [each for each in self._children.get(queue.name, ()) if each.name not in seen]
        each_deserves = {each.name: self._deserved(each, below, deserved) for each in below}
        guaranteed, limits = queue.guarantee(), queue.capability()
        quotas: dict[str, Quota] = {}
        for name in self.resources:
            given = sum(one[name] for one in each_deserves.values())
            nominal = max(0, deserved[name] - given)
            lending_limit = max(0, nominal - guaranteed[name]) if guaranteed.get(name) else None
            beyond = max(0, limits[name] - max(deserved[name], given)) if name in limits else None
            quotas[name] = Quota(nominal, beyond, lending_limit)
        weight = float(max(queue.spec.weight, 1))
        self._nominal[queue.name] = {name: quota.nominal for name, quota in quotas.items()}
        if below:
            yield CohortFacts(queue.name, parent, self._group(quotas), weight)
            for each in below:
                yield from self._facts_below(each, queue.name, each_deserves[each.name], seen | {queue.name})
            return
        yield ClusterQueueFacts(
            queue.name,
            parent,
            self._group(quotas),
            strategy="StrictFIFO" if queue.spec.dequeue_strategy == "fifo" else "BestEffortFIFO",
            namespaces=Selector.EVERYTHING,
            preemption=_RULES,
            weight=weight,
        )
        yield LocalQueueFacts(local_queue_key(queue.name), queue.name)

    def _deserved(self, queue: Queue, siblings: Sequence[Queue], parent: Amounts) -> dict[str, int]:
        guaranteed, declared, capability = queue.guarantee(), queue.deserved(), queue.capability()
        found: dict[str, int] = {}
        for name in self.resources:
            if self.is_by_weight:
                total = sum(max(each.spec.weight, 1) for each in siblings)
                nominal = parent[name] * max(queue.spec.weight, 1) // total
            elif name in _SHARED_RESOURCES and name not in declared:
                # The queue declares other resources, and gets as much of this one as they need.
                nominal = _UNLIMITED
            else:
                nominal = declared.get(name, 0)
            found[name] = min(max(nominal, guaranteed.get(name, 0)), capability.get(name, _UNLIMITED))
        return found

    def _group(self, quotas: Mapping[str, Quota]) -> tuple[ResourceGroup, ...]:
        if not quotas:
            return ()
        return (ResourceGroup(tuple(self.resources), (FlavorQuotas(FLAVOR, dict(quotas)),)),)


def local_queue_key(queue: str) -> str:
    """The key of the LocalQueue that points to the queue."""
    return f"{FLAVOR}/{queue}"


def total_capacity(nodes: Iterable[NodeFacts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for node in nodes:
        add(total, {**node.allocatable, **({_GPU: node.gpus} if node.gpus else {})})
    return total
