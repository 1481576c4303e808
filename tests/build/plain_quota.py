"""Quota the plain way: every sum is worked out again, from facts and from who was told that they hold what.

The laws of the queues are held against it. It shares no line with the engine's tree, keeps nothing from one question to
the next but the quotas themselves, and looks at one flavor and resource at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product

from shoal.engine.queues.facts import (
    PODS,
    ClusterQueueFacts,
    CohortFacts,
    FlavorResource,
    PodSet,
    Quota,
    QuotaAssignment,
    Usage,
    WorkloadFacts,
)

NONE = Quota(0)
COHORT = "cohort "
"""Cohorts and queues may have the same name."""


def charge_of(admission: QuotaAssignment) -> Usage:
    """What an admission takes."""
    usage: Usage = {}
    for each in admission.pod_sets:
        for resource, amount in each.usage.items():
            fr = each.flavors[resource], resource
            usage[fr] = usage.get(fr, 0) + amount
    return usage


class PlainQuota:
    """The tree of some facts, with what is used at its leaves."""

    def __init__(self, facts: Iterable[object], admissions: Iterable[QuotaAssignment] = ()) -> None:
        self.quotas: dict[str, dict[FlavorResource, Quota]] = {}
        self.parents: dict[str, str] = {}
        for fact in facts:
            if isinstance(fact, ClusterQueueFacts):
                self._enter(fact.name, fact.cohort, fact)
            elif isinstance(fact, CohortFacts):
                self._enter(COHORT + fact.name, fact.parent, fact)
        self.children: dict[str, list[str]] = {}
        for name, parent in self.parents.items():
            self.children.setdefault(parent, []).append(name)
        self.used: dict[str, Usage] = {}
        for admission in admissions:
            self.add(admission.cluster_queue, charge_of(admission))
        self.subtree = cache(self._subtree)

    def _enter(self, name: str, parent: str, fact: ClusterQueueFacts | CohortFacts) -> None:
        self.quotas[name] = {
            (each.name, resource): quota
            for group in fact.groups
            for each in group.flavors
            for resource, quota in each.quotas.items()
        }
        self.parents[name] = COHORT + parent if parent else ""
        if parent and COHORT + parent not in self.parents:
            self.parents[COHORT + parent] = ""
            self.quotas[COHORT + parent] = {}

    def add(self, queue: str, usage: Mapping[FlavorResource, int]) -> None:
        used = self.used.setdefault(queue, {})
        for fr, amount in usage.items():
            used[fr] = used.get(fr, 0) + amount

    def quota(self, name: str, fr: FlavorResource) -> Quota:
        return self.quotas[name].get(fr, NONE)

    def _subtree(self, name: str, fr: FlavorResource) -> int:
        below = self.children.get(name, ())
        return self.quota(name, fr).nominal + sum(self.subtree(each, fr) - self.kept(each, fr) for each in below)

    def kept(self, name: str, fr: FlavorResource) -> int:
        """What it lends to nobody."""
        lending = self.quota(name, fr).lending
        return 0 if lending is None else max(0, self.subtree(name, fr) - lending)

    def use(self, name: str, fr: FlavorResource) -> int:
        """At a cohort: what those below could not serve from what they keep."""
        below = self.children.get(name, ())
        own = self.used.get(name, {}).get(fr, 0)
        return own + sum(max(0, self.use(each, fr) - self.kept(each, fr)) for each in below)

    def most(self, name: str, fr: FlavorResource) -> int | None:
        """How much may be used at a node; None is without limit."""
        if not self.parents[name]:
            return self.subtree(name, fr)
        borrowing = self.quota(name, fr).borrowing
        return None if borrowing is None else self.subtree(name, fr) + borrowing

    def way_up(self, name: str) -> Iterator[str]:
        while name:
            yield name
            name = self.parents[name]

    def excess(self) -> dict[tuple[str, FlavorResource], int]:
        """Where more is used than may be: the node, and how much is used there."""
        found = {}
        for name in self.parents:
            for fr in self._known(name):
                most = self.most(name, fr)
                if most is not None and (use := self.use(name, fr)) > most:
                    found[name, fr] = use
        return found

    def could_take(self, node: str, usage: Mapping[FlavorResource, int]) -> bool:
        """Whether so much more breaks no limit that was kept before, at no node that would be asked for more."""
        nodes = list(self.way_up(node))
        before = {(name, fr): self.use(name, fr) for name in nodes for fr in usage}
        self.add(node, usage)
        fits = True
        for (name, fr), used in before.items():
            most, now = self.most(name, fr), self.use(name, fr)
            fits = fits and (now == used or most is None or now <= most)
        self.add(node, {fr: -amount for fr, amount in usage.items()})
        return fits

    def potential(self, name: str, fr: FlavorResource) -> int:
        """The most that could be used at a node if nobody else used anything, found by trying."""
        used, self.used = self.used, {}
        amount = 0
        while self.could_take(name, {fr: amount + 1}):
            amount += 1
        self.used = used
        return amount

    def _known(self, name: str) -> set[FlavorResource]:
        found = set(self.quotas[name]) | set(self.used.get(name, ()))
        return found.union(*(self._known(each) for each in self.children.get(name, ())))


def choices(queue: ClusterQueueFacts, facts: WorkloadFacts) -> Iterator[Usage]:
    """Every way to give a workload flavors, one flavor per resource group and pod set, as what it would be charged."""
    ways = [list(_ways(queue, pod_set)) for pod_set in facts.pod_sets]
    for way in product(*ways):
        usage: Usage = {}
        for each in way:
            for fr, amount in each.items():
                usage[fr] = usage.get(fr, 0) + amount
        yield usage


def _ways(queue: ClusterQueueFacts, pod_set: PodSet) -> Iterator[Usage]:
    wanted = {name: amount * pod_set.count for name, amount in pod_set.requests.items()}
    covered = {name for group in queue.groups for name in group.resources}
    if any(amount and name not in covered for name, amount in wanted.items()):
        return
    wanted[PODS] = pod_set.count
    asked = [group for group in queue.groups if any(name in wanted for name in group.resources)]
    for flavors in product(*(group.flavors for group in asked)):
        yield {
            (flavor.name, name): wanted[name]
            for group, flavor in zip(asked, flavors, strict=True)
            for name in group.resources
            if name in wanted
        }
