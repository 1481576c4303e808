"""Implements the quota tree: cluster queues are leaves, cohorts are inner nodes, and others may borrow what one does
not use.

Per flavor and resource, a node keeps to itself what it does not lend (`local`); use beyond that is the parent's
affair too. `add` and `remove` are exact inverses, so a trial is undone by doing the opposite in reverse order.

Rejected: a copy of the tree per round, as Kueue's snapshot is. A round then costs the size of the tree even when
nothing happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shoal.engine.queues.facts import FlavorResource, ResourceGroup, Usage


class CohortNode:
    """What cluster queues and cohorts have in common."""

    __slots__ = ("_lending", "borrowing", "kept", "name", "nominal", "parent", "subtree", "usage", "weight")

    def __init__(self, name: str) -> None:
        self.name = name
        self.parent: Cohort | None = None
        self.weight = 1.0
        self.nominal: Usage = {}
        self.borrowing: Usage = {}
        """Where a limit is set."""
        self.kept: Usage = {}
        """What it does not lend, where it keeps something (`local`)."""
        self.subtree: Usage = {}
        """Its own quota and what its children lend."""
        self.usage: Usage = {}
        self._lending: Usage = {}

    def available(self, fr: FlavorResource) -> int:
        """How much more could be used here; negative where quota was cut below use."""
        usage = self.usage.get(fr, 0)
        subtree = self.subtree.get(fr, 0)
        parent = self.parent
        if parent is None:
            return subtree - usage
        above = parent.available(fr)
        kept = self.kept.get(fr, 0)
        limit = self.borrowing.get(fr)
        if limit is not None:
            above = min(above, subtree - kept - max(0, usage - kept) + limit)
        return max(0, kept - usage) + above

    def potential(self, fr: FlavorResource) -> int:
        """The same without any usage: larger requests can never be admitted."""
        subtree = self.subtree.get(fr, 0)
        if self.parent is None:
            return subtree
        most = self.kept.get(fr, 0) + self.parent.potential(fr)
        limit = self.borrowing.get(fr)
        return most if limit is None else min(subtree + limit, most)

    def borrows_with(self, fr: FlavorResource, amount: int) -> bool:
        """Whether use would go beyond the subtree's quota."""
        return self.usage.get(fr, 0) + amount > self.subtree.get(fr, 0)

    def borrows(self, fr: FlavorResource) -> bool:
        return self.usage.get(fr, 0) > self.subtree.get(fr, 0)

    def local_capacity(self, fr: FlavorResource) -> int:
        """What is free of the part that is not lent."""
        return max(0, self.kept.get(fr, 0) - self.usage.get(fr, 0))

    def add(self, fr: FlavorResource, amount: int) -> None:
        node: CohortNode | None = self
        while node is not None and amount > 0:
            before = node.usage.get(fr, 0)
            node.usage[fr] = before + amount
            amount -= max(0, node.kept.get(fr, 0) - before)
            node = node.parent

    def remove(self, fr: FlavorResource, amount: int) -> None:
        node: CohortNode | None = self
        while node is not None and amount > 0:
            before = node.usage.get(fr, 0)
            node.usage[fr] = before - amount
            amount = min(amount, before - node.kept.get(fr, 0))
            node = node.parent

    def add_all(self, usage: Mapping[FlavorResource, int]) -> None:
        for fr, amount in usage.items():
            self.add(fr, amount)

    def remove_all(self, usage: Mapping[FlavorResource, int]) -> None:
        for fr, amount in usage.items():
            self.remove(fr, amount)

    def path_up(self) -> Iterator[Cohort]:
        """The cohorts above, nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def root(self) -> CohortNode:
        node: CohortNode = self
        while node.parent is not None:
            node = node.parent
        return node

    def set_quotas(self, groups: Iterable[ResourceGroup]) -> None:
        """Own quotas; `refresh` makes the sums true afterwards."""
        quotas = {(f.name, name): quota for g in groups for f in g.flavors for name, quota in f.quotas.items()}
        self.nominal = {fr: quota.nominal for fr, quota in quotas.items()}
        self.borrowing = {fr: quota.borrowing for fr, quota in quotas.items() if quota.borrowing is not None}
        self._lending = {fr: quota.lending for fr, quota in quotas.items() if quota.lending is not None}

    def sum_quotas(self, children: Iterable[CohortNode]) -> None:
        """`subtree` and `kept` from the own quotas and the children's, which are summed already."""
        subtree = dict(self.nominal)
        for child in children:
            for fr, amount in child.subtree.items():
                subtree[fr] = subtree.get(fr, 0) + amount - child.kept.get(fr, 0)
        self.subtree = subtree
        self.kept = {fr: max(0, subtree[fr] - lending) for fr, lending in self._lending.items()}


class Cohort(CohortNode):
    """An inner node; it exists as long as it is named."""

    __slots__ = ("children", "height")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.children: list[CohortNode] = []
        self.height = 0
        """Levels below."""

    def sum_quotas(self, children: Iterable[CohortNode]) -> None:
        children = list(children)
        super().sum_quotas(children)
        self.height = max((1 + (child.height if isinstance(child, Cohort) else 0) for child in children), default=0)


def lowest_that_fits(node: CohortNode, fr: FlavorResource, amount: int) -> tuple[int, bool]:
    """The borrowing level: height of the lowest subtree whose own quota holds the amount, and whether that is less
    than the whole tree. 0 without borrowing; the whole tree's height where nothing holds it."""
    if not node.borrows_with(fr, amount) or node.parent is None:
        return 0, node.parent is not None
    left = amount - node.local_capacity(fr)
    top = node.parent
    for cohort in node.path_up():
        if not cohort.borrows_with(fr, left):
            return cohort.height, cohort.parent is not None
        left -= cohort.local_capacity(fr)
        top = cohort
    return top.height, False
