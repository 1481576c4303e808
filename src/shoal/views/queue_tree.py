"""The quota tree as people and programs read it: what each cohort, cluster queue and local queue has, uses, borrows and
lends, and who waits in front of it.

A cohort's line sums up everything below it with its own quota; what it borrows and lends is between it and the outside.
Who lends follows from the sums only where there is one lender: several are taken to lend in proportion to what they
have idle.

Amounts are in the units that people count in: cores, bytes, pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import Amounts, FlavorResource, Usage
from shoal.engine.queues.quota_tree import Cohort, CohortNode
from shoal.engine.queues.shares import MOST, share_of
from shoal.engine.queues.state import Queues
from shoal.units.near_texts import meant_words
from shoal.views.queue_backlog import Backlog, Number, Waiter, backlog_of, plain
from shoal.views.queue_lending import lending_of

_NOT_THERE = "it does not exist"
_NO_NAME = "these workloads name no LocalQueue"

Kind = Literal["cohort", "clusterQueue", "localQueue"]


class QuotaLine(msgspec.Struct, frozen=True):
    """One resource of one flavor."""

    flavor: str
    resource: str
    nominal: Number | None = None
    """None for a local queue, which has none of its own."""
    used: Number = 0
    borrowed: Number = 0
    lent: Number = 0
    waiting: Number | None = None
    """What those who wait ask for, where only this flavor could serve them."""


class DominantShare(msgspec.Struct, frozen=True):
    """Dominant resource share of a borrower."""

    weighted: int | None
    """In thousandths, as Kueue's status has it; None where the weight is 0: more than any other."""
    resource: str


class TreeNode(msgspec.Struct, frozen=True, rename="camel"):
    kind: Kind
    name: str
    quotas: list[QuotaLine] = []
    waiting: Backlog = Backlog()
    share: DominantShare | None = None
    """Only while it borrows."""
    closed: str = ""
    """Why nothing is admitted here."""
    children: list[TreeNode] = []


class Tree(msgspec.Struct, frozen=True):
    """All of it. `astray` are local queues whose cluster queue is not there; `missing` are local queues that workloads
    name and that do not exist."""

    roots: list[TreeNode] = []
    astray: list[TreeNode] = []
    missing: list[TreeNode] = []

    @property
    def all_roots(self) -> list[TreeNode]:
        return [*self.roots, *self.astray, *self.missing]

    @property
    def cluster_queues(self) -> set[str]:
        """Their names."""
        found, left = set(), list(self.roots)
        while left:
            node = left.pop()
            left += node.children
            if node.kind == "clusterQueue":
                found.add(node.name)
        return found


def queue_tree(queues: Queues, waiters: Iterable[Waiter]) -> Tree:
    """The present tree."""
    return _QueueTreeReader(queues, list(waiters)).tree()


class _QueueTreeReader:
    def __init__(self, queues: Queues, waiters: list[Waiter]) -> None:
        self._queues = queues
        self._by_local: dict[str, list[Waiter]] = {}
        for waiter in waiters:
            self._by_local.setdefault(waiter.queue, []).append(waiter)
        self._lent = lending_of(queues)
        self._used: dict[str, Usage] = {}
        """By local queue."""
        for held in queues.held.values():
            used = self._used.setdefault(held.facts.queue, {})
            for fr, amount in held.usage.items():
                used[fr] = used.get(fr, 0) + amount

    def tree(self) -> Tree:
        queues = self._queues
        tops: list[CohortNode] = [cohort for cohort in queues.cohorts.values() if cohort.parent is None]
        tops += [queue for queue in queues.cluster_queues.values() if queue.parent is None]
        known = queues.cluster_queues
        astray = [facts for _, facts in sorted(queues.local_queues.items()) if facts.cluster_queue not in known]
        return Tree(
            [self._node(top) for top in sorted(tops, key=_rank)],
            [
                TreeNode(
                    "localQueue",
                    facts.key,
                    waiting=backlog_of(self._by_local.get(facts.key, ())),
                    closed=f"its ClusterQueue {facts.cluster_queue} does not exist"
                    + meant_words(facts.cluster_queue, known),
                )
                for facts in astray
            ],
            [
                TreeNode("localQueue", name, waiting=backlog_of(waiters), closed=_NOT_THERE if name else _NO_NAME)
                for name, waiters in sorted(self._by_local.items())
                if name not in queues.local_queues
            ],
        )

    def _node(self, node: CohortNode) -> TreeNode:
        if isinstance(node, ClusterQueue):
            return self._cluster_queue(node)
        assert isinstance(node, Cohort)  # noqa: S101 - there is no third kind
        children = [self._node(child) for child in sorted(node.children, key=_rank)]
        leaves = list(self._queues.leaves_of(node))
        waiters = [waiter for leaf in leaves for waiter in self._waiters(leaf)]
        nominal = _total(each.nominal for each in (*leaves, *_cohorts_of(node)))
        used = _total(leaf.usage for leaf in leaves)
        cycle = "it is its own ancestor" if node.name in self._queues.cycles else ""
        lines = self._lines(node, nominal, used, {})
        return TreeNode("cohort", node.name, lines, backlog_of(waiters), _share(node), cycle, children)

    def _cluster_queue(self, queue: ClusterQueue) -> TreeNode:
        waiters = self._waiters(queue)
        backlog = backlog_of(waiters)
        locals_ = [self._local(key) for key in self._local_keys(queue)]
        asked = _of_one_flavor(queue, _amounts(waiters))
        lines = self._lines(queue, queue.nominal, queue.usage, asked)
        closed = f"it {queue.closed[1]}{self._meant(queue)}" if queue.closed is not None else ""
        if not closed and queue.facts.namespaces.requirements is None:
            closed = "it has no namespaceSelector, so no namespace may use it; an empty one ({}) allows all"
        return TreeNode("clusterQueue", queue.name, lines, backlog, _share(queue), closed, locals_)

    def _meant(self, queue: ClusterQueue) -> str:
        """A flavor or topology with a similar name, where one is missing."""
        queues = self._queues
        flavors = [flavor.name for group in queue.facts.groups for flavor in group.flavors]
        for name in flavors:
            if name not in queues.flavors:
                return meant_words(name, queues.flavors)
        topologies = [topology for name in flavors if (topology := queues.flavors[name].topology)]
        missing = next((name for name in topologies if name not in queues.topologies), "")
        return meant_words(missing, queues.topologies) if missing else ""

    def _local(self, key: str) -> TreeNode:
        used = self._used.get(key, {})
        lines = [QuotaLine(fr[0], fr[1], used=plain(fr[1], amount)) for fr, amount in sorted(used.items()) if amount]
        stop = self._queues.local_queues[key].stop
        closed = "" if stop == "None" else "it is stopped"
        return TreeNode("localQueue", key, lines, backlog_of(self._by_local.get(key, ())), None, closed)

    def _lines(self, node: CohortNode, nominal: Usage, used: Usage, asked: Usage) -> list[QuotaLine]:
        lent = self._lent.get(node, {})
        lines = []
        for fr in sorted({*nominal, *used}):
            resource = fr[1]
            borrowed = max(0, node.usage.get(fr, 0) - node.subtree.get(fr, 0)) if node.parent is not None else 0
            lines.append(
                QuotaLine(
                    fr[0],
                    resource,
                    plain(resource, nominal.get(fr, 0)),
                    plain(resource, used.get(fr, 0)),
                    plain(resource, borrowed),
                    plain(resource, lent.get(fr, 0)),
                    plain(resource, asked[fr]) if fr in asked else None,
                )
            )
        return lines

    def _local_keys(self, queue: ClusterQueue) -> list[str]:
        found = self._queues.local_queues.values()
        return sorted(facts.key for facts in found if facts.cluster_queue == queue.name)

    def _waiters(self, queue: ClusterQueue) -> list[Waiter]:
        return [waiter for key in self._local_keys(queue) for waiter in self._by_local.get(key, ())]


def _rank(node: CohortNode) -> tuple[bool, str]:
    return isinstance(node, ClusterQueue), node.name


def _cohorts_of(node: Cohort) -> Iterable[Cohort]:
    yield node
    for child in node.children:
        if isinstance(child, Cohort):
            yield from _cohorts_of(child)


def _total(parts: Iterable[Mapping[FlavorResource, int]]) -> Usage:
    total: Usage = {}
    for part in parts:
        for fr, amount in part.items():
            total[fr] = total.get(fr, 0) + amount
    return total


def _amounts(waiters: Iterable[Waiter]) -> Amounts:
    total: Amounts = {}
    for waiter in waiters:
        for resource, amount in waiter.asked.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def _of_one_flavor(queue: ClusterQueue, amounts: Amounts) -> Usage:
    """What is asked for, where there is no choice of flavors."""
    found: Usage = {}
    for resource, group in queue.group_of.items():
        if len(group.flavors) == 1 and resource in amounts:
            found[group.flavors[0].name, resource] = amounts[resource]
    return found


def _share(node: CohortNode) -> DominantShare | None:
    share = share_of(node)
    if not share.borrows:
        return None
    return DominantShare(None if share.weighted == MOST else share.weighted, share.dominant)
