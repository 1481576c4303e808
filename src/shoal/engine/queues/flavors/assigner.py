"""Gives every pod set of a workload its flavors: per resource group the first flavor that will do, else the best one.

Pod sets are taken in order and see what earlier ones were given; those of one group are taken together and share their
flavors. The search goes on after the last flavor tried in an earlier round, as long as quotas have not changed since.

Where topology puts the pods is not asked here; a flavor is chosen by quota, and the round tries it on the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import PODS, Amounts, ResourceGroup, Usage, WorkloadFacts
from shoal.engine.queues.flavors.assignment import Assignment, PodSetChoice, severity
from shoal.engine.queues.flavors.capacity import FlavorRequest
from shoal.engine.queues.flavors.eligibility import inferred_flavor, topology_applies
from shoal.engine.queues.flavors.modes import Choice, Mode, Oracle
from shoal.engine.queues.flavors.scan import Scanner
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues
from shoal.engine.queues.workloads import FlavorSearchProgress, Total

NO_FLAVORS: frozenset[str] = frozenset()


def assign(
    queues: Queues,
    queue: ClusterQueue,
    facts: WorkloadFacts,
    totals: tuple[Total, ...],
    oracle: Oracle,
    tried: FlavorSearchProgress | None = None,
    barred: frozenset[str] = NO_FLAVORS,
) -> Assignment:
    """The best flavors for a workload of this size; `barred` are flavors that are ruled out from outside."""
    if tried is not None and tried.generation != queue.generation:
        tried = None
    usage: Usage = {}
    asker = FlavorRequest(queue, facts, oracle, queues.settings.fair_sharing)
    search = _FlavorSearch(Scanner(queues, asker, barred, usage), totals, tried)
    for members in _together(totals):
        if not search.assign(members):
            break
    chosen = [each for each in search.chosen if each is not None]
    return Assignment(chosen, usage, search.borrow, FlavorSearchProgress(search.last, queue.generation))


class _FlavorSearch:
    """One workload's way through the flavors."""

    __slots__ = ("borrow", "chosen", "last", "queue", "queues", "scanner", "totals", "tried", "usage")

    def __init__(self, scanner: Scanner, totals: tuple[Total, ...], tried: FlavorSearchProgress | None) -> None:
        self.scanner = scanner
        self.queues = scanner.queues
        self.queue = scanner.asker.queue
        self.usage = scanner.usage
        self.totals = totals
        self.tried = tried
        self.chosen: list[PodSetChoice | None] = [None] * len(totals)
        self.last: list[dict[str, int]] = [{} for _ in totals]
        self.borrow = 0

    def assign(self, members: list[int]) -> bool:
        """Choose for pod sets that go together; whether flavors were found."""
        common = PodSetChoice(self.totals[members[0]])
        if len(members) == 1:
            is_found = self._fill(common, common.total.requests, members)
            self._take(members[0], common, common)
            return is_found
        is_found = self._fill(common, self._sum(members), members)
        for index in members:
            self._take(index, _part(self.totals[index], common), common)
        return is_found

    def _fill(self, common: PodSetChoice, requests: Amounts, members: list[int]) -> bool:
        """Flavors for all that is asked for together. Where one resource finds none, `common` says why and has none."""
        group_of = self.queue.group_of
        for resource, amount in requests.items():
            if resource in common.flavors:
                continue
            group = group_of.get(resource)
            if group is not None:
                if not self._choose(group, requests, members, common):
                    return False
            elif amount != 0 and resource != PODS and not self.queues.settings.ignore_undeclared:
                common.reasons = [f"resource {resource} unavailable in ClusterQueue"]
                common.flavors, common.code = {}, Wait.NO_FLAVOR
                return False
        return True

    def _choose(self, group: ResourceGroup, requests: Amounts, members: list[int], common: PodSetChoice) -> bool:
        """Add the flavor of one resource group to `common`."""
        wanted = {resource: requests[resource] for resource in group.resources if resource in requests}
        pod_sets = [self.totals[index].pod_set for index in members]
        found = self.scanner.scan(group, wanted, pod_sets, self._start(members[0], wanted))
        if found.suits is None:
            common.flavors, common.reasons, common.code = {}, found.reasons, found.why
            return False
        tried = -1 if found.last == len(group.flavors) - 1 else found.last
        for resource, capacity in found.each.items():
            common.flavors[resource] = Choice(found.flavor, capacity.mode, capacity.borrow, tried)
        mode = found.suits.mode
        if mode is not Mode.FIT:
            common.reasons = common.reasons + found.reasons
            code = Wait.QUOTA if mode is Mode.NO_CANDIDATES else Wait.VICTIMS
            common.code = code if common.code is None else min(common.code, code, key=severity)
        return True

    def _start(self, index: int, wanted: Amounts) -> int:
        """The first flavor to look at."""
        if self.tried is None or index >= len(self.tried.flavors):
            return 0
        before = self.tried.flavors[index]
        return next((before[resource] + 1 for resource in wanted if resource in before), 0)

    def _sum(self, members: list[int]) -> Amounts:
        together: Amounts = {}
        for index in members:
            for resource, amount in self.totals[index].requests.items():
                together[resource] = together.get(resource, 0) + amount
        return together

    def _take(self, index: int, chosen: PodSetChoice, common: PodSetChoice) -> None:
        """A pod set has what it was given."""
        if not chosen.flavors and chosen.code is None:
            chosen.flavors = self._infer(chosen.total, common)
        self.chosen[index] = chosen
        requests, last, usage = chosen.total.requests, self.last[index], self.usage
        for resource, choice in chosen.flavors.items():
            fr = (choice.flavor, resource)
            usage[fr] = usage.get(fr, 0) + requests.get(resource, 0)
            last[resource] = choice.tried
            if choice.borrow > self.borrow:
                self.borrow = choice.borrow

    def _infer(self, total: Total, common: PodSetChoice) -> dict[str, Choice]:
        """Pods that ask for nothing the queue counts still need a topology to be placed in: that of their group, else
        the only one that the queue has."""
        if common.flavors:
            return {
                resource: choice
                for resource, choice in common.flavors.items()
                if topology_applies(self.queues, choice.flavor)
            }
        inferred = inferred_flavor(self.queues, self.queue, total.pod_set)
        return {} if inferred is None else {inferred[1]: Choice(inferred[0], Mode.FIT, 0, -1)}


def _part(total: Total, common: PodSetChoice) -> PodSetChoice:
    """Of what a group was given, what concerns one pod set."""
    own = {resource: choice for resource, choice in common.flavors.items() if resource in total.requests}
    if common.flavors and not own:
        return PodSetChoice(total)
    return PodSetChoice(total, own, list(common.reasons), common.code)


def _together(totals: tuple[Total, ...]) -> Iterable[list[int]]:
    """Pod sets that name the same group, each other one by itself, in the order in which they come."""
    if len(totals) == 1:
        return ([0],)
    groups: dict[str | int, list[int]] = {}
    for index, total in enumerate(totals):
        topology = total.pod_set.topology
        groups.setdefault(index if topology is None or not topology.group else topology.group, []).append(index)
    return groups.values()
