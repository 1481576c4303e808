"""Computes what one placement finds free in one topology: free capacity, less what earlier pod sets of the same
workload were just given. It gives the number of pods of a pod set that fit in each domain and, after a failure, why
leaves were left out.

Selects the leaves that match a pod, independent of capacity: taints, node selector, required node affinity, and the
score of preferred node affinity.

Only a topology that ends at the host name knows which node a pod gets; above that, nothing of this is asked. Answers
are kept per question, so that a thousand workloads of one template walk over the nodes once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.api.taints import untolerated
from shoal.engine.queues.facts import PODS, Amounts, PodSet
from shoal.engine.queues.tas.flavor_topology import MOST, Column, FlavorTopology, MatchingLeaves, TopologyLevelsRequest
from shoal.engine.queues.tas.overlap import free_of_all
from shoal.engine.queues.tas.pod_counts import DomainPodCounts
from shoal.engine.queues.tas.refusals import exhausted
from shoal.engine.queues.topology_facts import QueueNode, TopologyAssignment

if TYPE_CHECKING:
    from shoal.engine.queues.state import Queues

Nominated = dict[object, Amounts]
"""What this workload was given already: by host, which all flavors share, or by flavor and domain."""


class ReplacementBounds(NamedTuple):
    """Where pods have to be when a node of an admitted workload is replaced."""

    first: int
    after: int
    barred: tuple[int, ...]
    """Leaves that are not to be used: the nodes that failed."""


@dataclass(slots=True, eq=False)
class DomainAvailability:
    queues: Queues
    forest: FlavorTopology
    nominated: Nominated
    empty: bool = False
    """As if no workload used anything."""
    bounds: ReplacementBounds | None = None
    _columns: dict[str, Column | None] = field(default_factory=dict)

    def pod_counts(self, ask: TopologyLevelsRequest, pod_set: PodSet, leader: PodSet | None) -> DomainPodCounts:
        """What every leaf could take, with and without the leader."""
        amounts = needs(pod_set)
        here = suited(self.forest, pod_set)
        pods = self._count(amounts, None)
        self._bar(pods, here.ok)
        pod_counts = DomainPodCounts(self.forest, ask, pods)
        if ask.by_liking:
            pod_counts.liking = here.liking
        if leader is not None:
            led = needs(leader)
            can = self._count(led, None)
            self._bar(can, suited(self.forest, leader).ok)
            pod_counts.leader = np.minimum(can, 1)
            pod_counts.pods_led = np.where(pod_counts.leader > 0, self._count(amounts, led), pods)
            self._bar(pod_counts.pods_led, here.ok)
        return pod_counts

    def exclusions(self, pod_set: PodSet) -> dict[str, int]:
        """Leaves that take none of these pods, by rule."""
        here = suited(self.forest, pod_set)
        inside = self._inside()
        considered = inside if here.ok is None else inside & here.ok
        amounts = needs(pod_set)
        columns = {name: self._free(name) for name in amounts}
        outside = self.forest.size - int(np.count_nonzero(inside))
        return {
            **here.refusals,
            **({"topologyDomain": outside} if outside else {}),
            **exhausted(columns, amounts, considered),
        }

    def nomination(self, assignment: TopologyAssignment, pod_set: PodSet) -> None:
        """Later pod sets of the workload see these pods."""
        amounts = needs(pod_set)
        for values, pods in assignment.domains:
            given = self.nominated.setdefault(self._key(values), {})
            for name, amount in amounts.items():
                given[name] = min(given.get(name, 0) + amount * pods, MOST)
        self._columns.clear()

    def _count(self, amounts: Amounts, besides: Amounts | None) -> Column:
        """Pods per leaf; `besides` is taken off first. A new array."""
        fewest: Column | None = None
        for name, amount in amounts.items():
            column = self._free(name)
            if column is None:
                return np.zeros(self.forest.size, np.int64)
            other = besides.get(name, 0) if besides is not None else 0
            count = ((column - other) if other else column) // amount
            fewest = count if fewest is None else np.minimum(fewest, count, out=fewest)
        return np.zeros(self.forest.size, np.int64) if fewest is None else np.maximum(fewest, 0, out=fewest)

    def _bar(self, pods: Column, ok: NDArray[np.bool_] | None) -> None:
        if ok is not None:
            pods *= ok
        if self.bounds is not None:
            pods *= self._inside()

    def _inside(self) -> NDArray[np.bool_]:
        inside = np.ones(self.forest.size, np.bool_)
        if self.bounds is not None:
            inside[: self.bounds.first] = False
            inside[self.bounds.after :] = False
            inside[list(self.bounds.barred)] = False
        return inside

    def _free(self, name: str) -> Column | None:
        """Not to be written to."""
        if name not in self._columns:
            if self.empty:
                column = self.forest.capacity.get(name)
            else:
                column = free_of_all(self.queues, self.forest, name)
            self._columns[name] = self._less_nominated(name, column) if self.nominated else column
        return self._columns[name]

    def _less_nominated(self, name: str, column: Column | None) -> Column | None:
        if column is None:
            return None
        column = column.copy()
        for key, amounts in self.nominated.items():
            leaf = self._leaf(key)
            if leaf is not None:
                column[leaf] -= amounts.get(name, 0)
        return column

    def _key(self, values: tuple[str, ...]) -> object:
        return values[-1] if self.forest.by_host else (self.forest.flavor.name, values)

    def _leaf(self, key: object) -> int | None:
        if isinstance(key, str):
            return self.forest.leaf(self.forest.named_levels, (key,)) if self.forest.by_host else None
        match key:
            case (str(flavor), tuple(values)) if flavor == self.forest.flavor.name:
                return self.forest.leaf(self.forest.levels, values)
        return None


def needs(pod_set: PodSet) -> Amounts:
    """Of one pod on a node, its slot included; what it asks nothing of is left out."""
    amounts = {name: min(amount, MOST) for name, amount in pod_set.on_node.items() if amount > 0 and name != PODS}
    amounts[PODS] = 1
    return amounts


MOST_KEPT = 512
"""Questions; beyond that all are asked anew."""


def suited(forest: FlavorTopology, pod_set: PodSet) -> MatchingLeaves:
    """Looked up, or worked out node by node."""
    asked = (pod_set.tolerations, tuple(sorted(pod_set.selector.items())), pod_set.affinity, pod_set.preferred)
    found = forest.suited.get(asked)
    if found is None:
        if len(forest.suited) >= MOST_KEPT:
            forest.suited.clear()
        found = forest.suited[asked] = _work_out(forest, pod_set)
    return found


def _work_out(forest: FlavorTopology, pod_set: PodSet) -> MatchingLeaves:
    answer = MatchingLeaves(forest.size)
    if not forest.by_host:
        return answer
    ok = np.ones(forest.size, np.bool_)
    for leaf, nodes in enumerate(forest.nodes):
        refusal = _refusal(forest, pod_set, nodes[0])
        if refusal is not None:
            ok[leaf] = False
            answer.refusals[refusal] = answer.refusals.get(refusal, 0) + 1
        elif pod_set.preferred:
            answer.liking[leaf] = sum(
                term.weight for term in pod_set.preferred if term.preference.matches(nodes[0].name, nodes[0].labels)
            )
    if answer.refusals:
        answer.ok = ok
    return answer


def _refusal(forest: FlavorTopology, pod_set: PodSet, node: QueueNode) -> str | None:
    taint = untolerated(node.taints, (*pod_set.tolerations, *forest.flavor.tolerations))
    if taint is not None:
        return f'taint "{taint}"'
    if not pod_set.selector.items() <= node.labels.items():
        return "nodeSelector"
    if pod_set.affinity is not None and not pod_set.affinity.matches(node.name, node.labels):
        return "affinity"
    return None
