"""Volcano's queues as facts of the one quota tree: what a queue deserves is its own, what it has beyond is borrowed.

Queues say it in one of two ways. Where any of them names what it deserves (`deserved`, `guarantee`), those are the
quotas: beyond them queues take what others leave, and give it back when these want it. Else the cluster is divided by
`weight`, and who borrows is told by shares. A guarantee is never lent.

A capability bounds what a queue and all below it may borrow beyond that.

Rejected: sharing wherever there are two queues. Queues that all say nothing are in nobody's way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shoal.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from shoal.api.selectors import Selector
from shoal.controllers.volcano.amounts import Amounts
from shoal.controllers.volcano.names import ROOT_QUEUE
from shoal.controllers.volcano.queue_tree import QueueTree
from shoal.controllers.volcano.sights import Queue
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
_ENDLESS = 1 << 60
_EVERYBODYS = frozenset({CPU, MEMORY, PODS, EPHEMERAL_STORAGE})
_RULES = PreemptionRules(reclaim="Any")


class Shares:
    """What the queues of a tree come to on nodes that have so much."""

    def __init__(self, tree: QueueTree, capacity: Amounts) -> None:
        self._tree = tree
        self._capacity = capacity
        self._below: dict[str, list[Queue]] = {}
        self._own: dict[str, dict[str, int]] = {}
        """By queue, once its facts were made."""
        for queue in tree.queues.values():
            if queue.name != ROOT_QUEUE:
                self._below.setdefault(queue.parent, []).append(queue)
        known = [queue for queue in tree.queues.values() if queue.name != ROOT_QUEUE]
        self.is_by_weight = not any(queue.spec.deserved or queue.spec.guarantee.resource for queue in known)
        named = {name for queue in known for name in (*queue.deserved(), *queue.guarantee(), *queue.capability())}
        self.resources: Sequence[str] = tuple(sorted({*named, *(capacity if self.is_by_weight else ())} - {PODS}))
        self.settings = Settings(fair_sharing=self.is_by_weight, respect_budgets=True, ignore_undeclared=True)

    @property
    def are_wanted(self) -> bool:
        """Whether anybody said how queues share."""
        leaves = [queue for queue in self._tree.queues.values() if queue.name != ROOT_QUEUE]
        if not self.is_by_weight:
            return True
        return len(leaves) > 1 and len({queue.spec.weight for queue in leaves}) > 1

    def may_be_taken_from(self, name: str) -> bool:
        """Whether work of the queue yields what is beyond its own. Who only has a weight has to say so."""
        queue = self._tree.queues.get(name)
        said = queue.spec.reclaimable if queue is not None else False
        return bool(said) if self.is_by_weight else said is not False

    def owns(self, name: str, taken: Amounts, asked: Amounts) -> bool:
        """Whether a queue that has taken so much has it of its own, as far as what is asked for goes."""
        own = self._own.get(name, {})
        return all(taken.get(each, 0) <= own.get(each, 0) for each, amount in asked.items() if amount and each in own)

    def charged(self, amounts: Amounts) -> dict[str, int]:
        """What work of these amounts is counted as."""
        return {name: amounts.get(name, 0) for name in self.resources}

    def facts(self) -> list[Fact]:
        top = self._below.get(ROOT_QUEUE, [])
        root = self._tree.queues.get(ROOT_QUEUE)
        most = root.capability() if root is not None else {}
        has = {name: self._capacity.get(name, 0) for name in self.resources}
        own = {name: min(amount, most.get(name, amount)) for name, amount in has.items()}
        deserved = {queue.name: self._deserved(queue, top, own) for queue in top}
        left = {name: Quota(max(0, own[name] - sum(each[name] for each in deserved.values()))) for name in own}
        found: list[Fact] = [FlavorFacts(FLAVOR), CohortFacts(ROOT_QUEUE, groups=self._group(left))]
        for queue in top:
            found += self._facts_below(queue, ROOT_QUEUE, deserved[queue.name], frozenset())
        return found

    # Inside

    def _facts_below(self, queue: Queue, above: str, deserved: Amounts, seen: frozenset[str]) -> Iterable[Fact]:
        """Of the queue and those below it; a circle that somebody made of them ends where it closes."""
        below = [each for each in self._below.get(queue.name, ()) if each.name not in seen]
        each_deserves = {each.name: self._deserved(each, below, deserved) for each in below}
        guaranteed, most = queue.guarantee(), queue.capability()
        quotas: dict[str, Quota] = {}
        for name in self.resources:
            given = sum(one[name] for one in each_deserves.values())
            own = max(0, deserved[name] - given)
            lent = max(0, own - guaranteed[name]) if guaranteed.get(name) else None
            beyond = max(0, most[name] - max(deserved[name], given)) if name in most else None
            quotas[name] = Quota(own, beyond, lent)
        weight = float(max(queue.spec.weight, 1))
        self._own[queue.name] = {name: quota.nominal for name, quota in quotas.items()}
        if below:
            yield CohortFacts(queue.name, above, self._group(quotas), weight)
            for each in below:
                yield from self._facts_below(each, queue.name, each_deserves[each.name], seen | {queue.name})
            return
        yield ClusterQueueFacts(
            queue.name,
            above,
            self._group(quotas),
            strategy="StrictFIFO" if queue.spec.dequeue_strategy == "fifo" else "BestEffortFIFO",
            namespaces=Selector.EVERYTHING,
            preemption=_RULES,
            weight=weight,
        )
        yield LocalQueueFacts(door_of(queue.name), queue.name)

    def _deserved(self, queue: Queue, siblings: Sequence[Queue], above: Amounts) -> dict[str, int]:
        guaranteed, told, capability = queue.guarantee(), queue.deserved(), queue.capability()
        found: dict[str, int] = {}
        for name in self.resources:
            if self.is_by_weight:
                total = sum(max(each.spec.weight, 1) for each in siblings)
                own = above[name] * max(queue.spec.weight, 1) // total
            elif name in _EVERYBODYS and name not in told:
                # It says what it deserves of other things, and gets as much of this as these take.
                own = _ENDLESS
            else:
                own = told.get(name, 0)
            found[name] = min(max(own, guaranteed.get(name, 0)), capability.get(name, _ENDLESS))
        return found

    def _group(self, quotas: Mapping[str, Quota]) -> tuple[ResourceGroup, ...]:
        if not quotas:
            return ()
        return (ResourceGroup(tuple(self.resources), (FlavorQuotas(FLAVOR, dict(quotas)),)),)


def door_of(queue: str) -> str:
    """The local queue that leads to it."""
    return f"{FLAVOR}/{queue}"
