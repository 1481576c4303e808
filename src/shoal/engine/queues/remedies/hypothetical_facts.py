"""Applies changes to the facts for one trial, and afterwards restores the facts exactly.

Quotas are changed on the nodes of the tree and summed again up to the root. Everything that a trial may write is saved
before the first change and restored from the saved copy. Recomputing it would differ: a sum reduced by the inverse step
leaves zeros behind, and holders that return would be last in the order.

Rejected: changing the facts and refreshing them. That rebuilds all trees and requeues all inadmissible workloads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import structs

from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.facts import FlavorResource, PreemptionRules, Usage, WorkloadFacts
from shoal.engine.queues.quota_tree import Cohort, CohortNode
from shoal.engine.queues.state import Queues


class _Kept(NamedTuple):
    nominal: Usage
    borrowing: Usage
    kept: Usage
    subtree: Usage
    usage: Usage
    held: dict[str, AdmittedWorkload] | None


class HypotheticalFacts:
    """One trial's stage."""

    __slots__ = ("_kept", "_lending", "_queues", "_undo", "ended", "facts", "is_placed")

    def __init__(self, queues: Queues, facts: WorkloadFacts, root: CohortNode) -> None:
        self.facts = facts
        """The workload as it would be."""
        self.is_placed = True
        """Whether nodes can say anything of it: they know the pods as they are."""
        self.ended: list[str] = []
        """Workloads that would have ended."""
        self._queues = queues
        self._kept: dict[CohortNode, _Kept] = {}
        self._lending: dict[CohortNode, Usage] = {}
        """Limits on lending as they would be."""
        self._undo: list[Callable[[], None]] = []
        self._keep(root)

    # Changes

    def set_nominal(self, node: CohortNode, fr: FlavorResource, amount: int) -> None:
        node.nominal = {**node.nominal, fr: amount}
        self._sum_up(node)

    def set_borrowing(self, node: CohortNode, fr: FlavorResource, limit: int) -> None:
        node.borrowing = {**node.borrowing, fr: limit}

    def set_lending(self, node: CohortNode, fr: FlavorResource, limit: int) -> None:
        self._lending.setdefault(node, {})[fr] = limit
        self._sum_up(node)

    def set_preemption(self, queue: ClusterQueue, rules: PreemptionRules) -> None:
        before = queue.facts
        queue.facts = structs.replace(before, preemption=rules)
        self._undo.append(lambda: setattr(queue, "facts", before))

    def give_back(self, queue: ClusterQueue, fr: FlavorResource, amount: int) -> None:
        """The holders of a queue use so much less: who would be asked first gives first."""
        for held in sorted(queue.held.values(), key=softness):
            part = min(amount, held.usage.get(fr, 0))
            if part <= 0:
                continue
            usage = {**held.usage, fr: held.usage[fr] - part}
            self._swap(held, AdmittedWorkload(held.facts, held.admission, queue, usage, held.stamp_s, held.evicted))
            amount -= part

    def end(self, held: AdmittedWorkload) -> None:
        """A workload holds nothing any more."""
        if held.key not in held.queue.held:
            return
        self._keep(held.queue.root)
        self._queues.remove_usage(held)
        self._undo.append(lambda: self._queues.add_usage(held))
        self.ended.append(held.key)

    def undo(self) -> None:
        """Everything is as it was."""
        for step in reversed(self._undo):
            step()
        for node, kept in self._kept.items():
            node.nominal, node.borrowing, node.kept, node.subtree, node.usage = kept[:5]
            if isinstance(node, ClusterQueue) and kept.held is not None:
                node.held = kept.held

    # internals

    def _swap(self, held: AdmittedWorkload, stand_in: AdmittedWorkload) -> None:
        def back() -> None:
            self._queues.remove_usage(stand_in)
            self._queues.add_usage(held)

        self._queues.remove_usage(held)
        self._queues.add_usage(stand_in)
        self._undo.append(back)

    def _keep(self, node: CohortNode) -> None:
        """Work on copies of all that the tree's nodes know; what is kept is what they had."""
        if node in self._kept:
            return
        held = node.held if isinstance(node, ClusterQueue) else None
        self._kept[node] = _Kept(node.nominal, node.borrowing, node.kept, node.subtree, node.usage, held)
        node.usage = dict(node.usage)
        if isinstance(node, ClusterQueue):
            node.held = dict(node.held)
        if isinstance(node, Cohort):
            for child in node.children:
                self._keep(child)

    def _sum_up(self, start: CohortNode) -> None:
        """Sums from a node up to the root, as they follow from what is below."""
        node: CohortNode | None = start
        while node is not None:
            if isinstance(node, Cohort):
                node.usage = _usage_of(node)
                node.sum_quotas(node.children)
            else:
                node.sum_quotas(())
            for fr, limit in self._lending.get(node, {}).items():
                node.kept[fr] = max(0, node.subtree.get(fr, 0) - limit)
            node = node.parent


def softness(held: AdmittedWorkload) -> tuple[int, float, str]:
    """Who yields first: the lowest priority, then the youngest."""
    return (held.priority, -held.stamp_s, held.key)


def _usage_of(cohort: Cohort) -> Usage:
    """What the children use beyond what they keep to themselves."""
    usage: Usage = {}
    for child in cohort.children:
        for fr, amount in child.usage.items():
            beyond = amount - child.kept.get(fr, 0)
            if beyond > 0:
                usage[fr] = usage.get(fr, 0) + beyond
    return usage
