"""Replaces the failed node of a workload for the pods that ran there, while the other pods stay where they are.

What had to be in one domain stays in it: the required level, and a slice that lost some of its pods. Whole slices that
were lost may go elsewhere. The failed node still counts as used by the workload, and is never chosen.

Of several unhealthy nodes the first is replaced. The others keep their pods while they are there; one that is gone
stops the repair, because the workload cannot run on what would be left.

Rejected: placing the whole pod set anew, which would move pods that run; replacing all unhealthy nodes at once, which
Kueue does not do.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.facts import PodSet, QuotaAssignment
from shoal.engine.queues.tas.availability import DomainAvailability, Nominated, ReplacementBounds
from shoal.engine.queues.tas.flavor_topology import FlavorTopology, TopologyLevelsRequest
from shoal.engine.queues.tas.levels_request import read
from shoal.engine.queues.tas.merge import merged, without
from shoal.engine.queues.tas.place import Request, place_group
from shoal.engine.queues.tas.refusals import TopologyRefusal
from shoal.engine.queues.topology_facts import TopologyAssignment, TopologyRequest
from shoal.engine.queues.workloads import Total

if TYPE_CHECKING:
    from shoal.engine.queues.state import Queues


def replace(queues: Queues, held: AdmittedWorkload) -> QuotaAssignment | str:
    """The admission with another node for the one that failed, or why there is none."""
    failed = held.facts.unhealthy_nodes
    unhealthy = {(name,) for name in failed}
    wanted = {pod_set.name: pod_set for pod_set in held.facts.pod_sets}
    nominated: Nominated = {}
    pod_sets = []
    for admitted in held.admission.pod_sets:
        pod_set = wanted.get(admitted.name)
        before = admitted.topology
        if pod_set is None or before is None or not unhealthy & {values[-1:] for values, _ in before.domains}:
            pod_sets.append(admitted)
            continue
        flavor = next(iter(admitted.flavors.values()), "")
        forest = queues.forest(flavor)
        if forest is None or not forest.by_host:
            return f"flavor {flavor} has no topology that ends at host names"
        found = _replace(DomainAvailability(queues, forest, nominated), before, pod_set, failed[0])
        if isinstance(found, str):
            return found
        pod_sets.append(msgspec.structs.replace(admitted, topology=found))
    return msgspec.structs.replace(held.admission, pod_sets=tuple(pod_sets))


def _replace(
    site: DomainAvailability, before: TopologyAssignment, pod_set: PodSet, failed: str
) -> TopologyAssignment | str:
    forest = site.forest
    left, lost = without(before, failed)
    missing = next((values for values, _ in left.domains if forest.leaf(left.levels, values) is None), None)
    if missing is not None:
        return (
            f"Cannot replace the node, because the existing topologyAssignment is invalid: {missing[-1]} does not exist"
        )
    topology = _alone(pod_set.topology)
    ask = read(forest, topology, site.queues.settings.gates, implied=True)
    if isinstance(ask, str):
        return ask
    if not lost:
        return before
    barred = forest.leaf(left.levels, (failed,))
    within, requirement = _bounds(forest, ask, topology, left)
    site.bounds = ReplacementBounds(*within, () if barred is None else (barred,))
    part = msgspec.structs.replace(pod_set, topology=requirement)
    found = place_group(site, [Request(Total.of(part, lost), forest.flavor.name, lost, implied=True)])
    if isinstance(found, TopologyRefusal):
        return found.message
    site.nomination(found[pod_set.name], pod_set)
    return merged(forest, left, found[pod_set.name])


def _alone(topology: TopologyRequest | None) -> TopologyRequest:
    """A pod set is repaired by itself, whatever group it belongs to."""
    return TopologyRequest() if topology is None else msgspec.structs.replace(topology, group="")


def _bounds(
    forest: FlavorTopology, ask: TopologyLevelsRequest, topology: TopologyRequest, left: TopologyAssignment
) -> tuple[tuple[int, int], TopologyRequest]:
    """The leaves among which the lost pods must go, and what they still ask for.

    Where a slice is incomplete they belong to it, the innermost layer before the outer ones: pod by pod, or in the
    whole slices of the layer inside it."""
    leaves = [(leaf, pods) for v, pods in left.domains if (leaf := forest.leaf(left.levels, v)) is not None]
    inner = 1
    for depth in range(len(ask.units) - 1, ask.slice_depth - 1, -1):
        unit = ask.units[depth]
        if unit == inner or (depth > ask.slice_depth and ask.units[depth - 1] == unit):
            continue
        pods: Counter[int] = Counter()
        for leaf, count in leaves:
            pods[forest.above(leaf, depth)] += count
        broken = next((domain for domain in sorted(pods) if pods[domain] % unit), None)
        if broken is not None:
            return forest.leaves_below(depth, broken), _inside(forest, ask, depth, inner)
        inner = unit
    if ask.required and leaves:
        return forest.leaves_below(ask.depth, forest.above(leaves[0][0], ask.depth)), topology
    return (0, forest.size), topology


def _inside(forest: FlavorTopology, ask: TopologyLevelsRequest, depth: int, inner: int) -> TopologyRequest:
    """Any place below that depth, in whole slices of the inner layer."""
    level = forest.levels[depth]
    if inner == 1:
        return TopologyRequest(required=level, slice_level=level, slice_size=1)
    lowest = max(at for at, unit in enumerate(ask.units) if unit == inner)
    return TopologyRequest(required=level, slice_level=forest.levels[lowest], slice_size=inner)
