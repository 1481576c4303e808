"""Assigns a workload's pods to domains of its flavors: either all pod sets, or the one without a place and the reason.

Pod sets are placed in their order, and later ones see what earlier ones were given, also where another flavor counts
the same nodes. Pod sets of one group are placed together: the smaller is the leader, and goes into the same domain as
its workers. Pods beyond the last whole slice get no place, as in Kueue; the others do not wait for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from shoal.engine.queues.facts import PodSet
from shoal.engine.queues.tas.availability import DomainAvailability, Nominated, ReplacementBounds
from shoal.engine.queues.tas.flavor_topology import FlavorTopology
from shoal.engine.queues.tas.levels_request import read
from shoal.engine.queues.tas.merge import merged, shortened
from shoal.engine.queues.tas.order import PodSetPart
from shoal.engine.queues.tas.refusals import TopologyRefusal, faulty, too_small, with_exclusions
from shoal.engine.queues.tas.search import TooSmall, search
from shoal.engine.queues.topology_facts import TopologyAssignment
from shoal.engine.queues.workloads import Total

if TYPE_CHECKING:
    from shoal.engine.queues.state import Queues

__all__ = ["TopologyRefusal", "Request", "place"]

Assignments = dict[str, TopologyAssignment]


class Request(msgspec.Struct, frozen=True):
    """One pod set with the flavor it was given."""

    total: Total
    flavor: str
    count: int
    previous: TopologyAssignment | None = None
    """Where its pods are already; only the difference is placed."""
    implied: bool = False
    """The queue has no flavors without a topology: any place will do for a pod set that names no level."""

    @property
    def pod_set(self) -> PodSet:
        return self.total.pod_set


def place(queues: Queues, requests: list[Request], *, empty: bool = False) -> Assignments | TopologyRefusal:
    """A place for every pod of every pod set, or the first that has none. `empty`: as if no workload used anything."""
    nominated: Nominated = {}
    placed: Assignments = {}
    for group in _groups(requests):
        forest = queues.forest(group[0].flavor)
        if forest is None:
            return faulty(_names(group), f"flavor {group[0].flavor} has no topology").with_placed(placed)
        site = DomainAvailability(queues, forest, nominated, empty)
        found, new = _continue(site, group)
        if isinstance(found, TopologyRefusal):
            return found.with_placed(placed)
        placed |= found
        for request in group if len(requests) > len(group) else ():
            site.nomination(new[request.pod_set.name], request.pod_set)
    return placed


def place_group(site: DomainAvailability, group: list[Request]) -> Assignments | TopologyRefusal:
    """One pod set, or a leader with its workers."""
    workers, leader = _roles(group)
    names = _names(group)
    if leader is not None and (len(group) > 2 or leader.count > 1):
        return faulty(names, "a pod set group is one leader and its workers")
    ask = read(site.forest, workers.pod_set.topology, site.queues.settings.gates, implied=workers.implied)
    if isinstance(ask, str):
        return faulty(names, ask)
    need = workers.count // ask.size
    if not need:
        return faulty(names, f"pod count {workers.count} is less than one slice of {ask.size}")
    if not site.forest.size:
        return faulty(names, f"no topology domains at level: {site.forest.levels[ask.depth]}")
    pod_counts = site.pod_counts(ask, workers.pod_set, None if leader is None else leader.pod_set)
    found = search(pod_counts, need, 0 if leader is None else 1)
    if isinstance(found, TooSmall):
        misfit = too_small(site.forest.flavor.topology, names, found.fits, need, "slice" if ask.size > 1 else "pod")
        return with_exclusions(misfit, site.forest.size, site.exclusions(workers.pod_set))
    return _assignments(site, found, workers, leader, ask.units[-1])


def _continue(site: DomainAvailability, group: list[Request]) -> tuple[Assignments | TopologyRefusal, Assignments]:
    """The group's places, and which of them are new.

    Pods that have a place keep it. What is more finds one, within the domain that holds the others where one domain is
    required; what is less leaves the last domains."""
    request, before = group[0], group[0].previous
    if before is None or len(group) > 1:
        found = place_group(site, group)
        return found, {} if isinstance(found, TopologyRefusal) else found
    name = request.pod_set.name
    more = request.count - sum(pods for _, pods in before.domains)
    if more <= 0:
        return {name: shortened(before, request.count)}, {name: TopologyAssignment(before.levels, ())}
    site.bounds = _around(site.forest, request.pod_set, before)
    found = place_group(site, [msgspec.structs.replace(request, count=more, previous=None)])
    if isinstance(found, TopologyRefusal):
        return found, {}
    return {name: merged(site.forest, before, found[name])}, found


def _around(forest: FlavorTopology, pod_set: PodSet, before: TopologyAssignment) -> ReplacementBounds | None:
    """The domain that the pods must stay in."""
    required = pod_set.topology.required if pod_set.topology is not None else ""
    leaves = (forest.leaf(before.levels, values) for values, _ in before.domains)
    leaf = next((leaf for leaf in leaves if leaf is not None), None)
    if leaf is None or required not in forest.levels:
        return None
    depth = forest.levels.index(required)
    return ReplacementBounds(*forest.leaves_below(depth, forest.above(leaf, depth)), ())


def _groups(requests: list[Request]) -> list[list[Request]]:
    """Pod sets that go together, in the order of their first; those without pods need no place."""
    groups: dict[object, list[Request]] = {}
    for index, request in enumerate(requests):
        topology = request.pod_set.topology
        if request.count > 0:
            groups.setdefault((topology.group if topology is not None else "") or index, []).append(request)
    return list(groups.values())


def _roles(group: list[Request]) -> tuple[Request, Request | None]:
    """Workers and leader; of two equal sets the second is taken for the leader."""
    if len(group) == 1:
        return group[0], None
    first, second = group[:2]
    return (second, first) if second.count > first.count else (first, second)


def _names(group: list[Request]) -> tuple[str, ...]:
    return tuple(request.pod_set.name for request in group)


def _assignments(
    site: DomainAvailability, parts: list[PodSetPart], workers: Request, leader: Request | None, unit: int
) -> Assignments:
    by_place = sorted(parts)
    found = {workers.pod_set.name: _assignment(site, [(part.domain, part.units * unit) for part in by_place])}
    if leader is not None:
        found[leader.pod_set.name] = _assignment(site, [(part.domain, part.leaders) for part in by_place])
    return found


def _assignment(site: DomainAvailability, leaves: list[tuple[int, int]]) -> TopologyAssignment:
    paths, levels = site.forest.paths[-1], site.forest.named_levels
    domains = tuple((paths[leaf][-len(levels) :], pods) for leaf, pods in leaves if pods)
    return TopologyAssignment(levels, domains)
