"""Chooses the best node for a pod, or counts how many nodes each reason refused.

The filters run in kube-scheduler's order, and a node counts for the first filter that refuses it. The scores are also
kube-scheduler's: least allocated and balanced allocation, each 0 to 100, plus the preferences of the pod. Fractions of
points count, so that small pods spread over large nodes, and of nodes with equal points the oldest one is chosen: the
same events lead to the same placements. kube-scheduler rounds, and chooses randomly.

Rejected: image locality, because images are not modelled here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.api.resources import CPU, MEMORY
from shoal.api.resources import PODS as POD_SLOTS
from shoal.embedded.scheduler.node_columns import Ints, NodeColumns
from shoal.embedded.scheduler.node_filters import NodeFilterResult, NodeFilters
from shoal.embedded.scheduler.pod_affinity import FilterVerdicts, PodAffinity
from shoal.embedded.scheduler.pod_info import PodInfo
from shoal.embedded.scheduler.reasons import PORTS, TOO_MANY_PODS, NoFeasibleNode, Reason, insufficient

_TAINT_WEIGHT, _AFFINITY_WEIGHT, _POD_AFFINITY_WEIGHT = 3, 2, 2
Points = NDArray[np.float64]
Reserved = dict[str, Ints]
"""Capacity reserved for nominated pods, by resource."""


class FilterResult(NamedTuple):
    """The result of the filters for all rows."""

    rows: Ints
    """Feasible rows."""
    refusal: NoFeasibleNode
    helpable: Ints
    """Rows that may become feasible by preemption."""


class Chooser:
    def __init__(self, columns: NodeColumns, pod_affinity: PodAffinity) -> None:
        self.columns = columns
        self.pod_affinity = pod_affinity
        self.node_filters = NodeFilters(columns)

    def filter(self, pod: PodInfo, more: FilterVerdicts, reserved: Reserved | None = None) -> FilterResult:
        """Runs all filters for all nodes. `more`: the results of volume and device filters."""
        columns, request = self.columns, pod.request
        filtered = self.node_filters.of(request)
        left = filtered.matches.copy()
        counts = {reason.words: number for reason, number in filtered.refused.items()}
        helpable = np.zeros(columns.size, np.bool_)
        for ports_row in columns.ports if request.ports else ():
            if left[ports_row] and not columns.has_free_ports(ports_row, request):
                left[ports_row] = False
                helpable[ports_row] = True
                counts[PORTS.words] = counts.get(PORTS.words, 0) + 1
        if left.any():
            left = self._with_capacity(pod, left, counts, helpable, reserved or {})
        for passes, reason in (*more, *self.pod_affinity.filter_rows(pod, filtered)):
            refused = left & ~passes
            if number := int(np.count_nonzero(refused)):
                counts[reason.words] = counts.get(reason.words, 0) + number
                left &= passes
                if not reason.is_final:
                    helpable |= refused
        return FilterResult(np.flatnonzero(left), NoFeasibleNode(len(columns), counts), np.flatnonzero(helpable))

    def _with_capacity(
        self,
        pod: PodInfo,
        left: NDArray[np.bool_],
        counts: dict[str, int],
        helpable: NDArray[np.bool_],
        reserved: Reserved,
    ) -> NDArray[np.bool_]:
        columns = self.columns
        fits = left.copy()
        hopeless = np.zeros(columns.size, np.bool_)
        for resource, amount in pod.request.requests:
            has, taken = columns.has(resource), columns.taken(resource)
            if resource in reserved:
                taken = taken + reserved[resource]
            lacks = left & (taken + amount > has)
            if number := int(np.count_nonzero(lacks)):
                reason = _insufficient(resource)
                counts[reason.words] = counts.get(reason.words, 0) + number
                fits &= ~lacks
                hopeless |= lacks & (has < amount)
        helpable |= left & ~fits & ~hopeless
        return fits

    def best(self, pod: PodInfo, rows: Ints) -> int:
        """The row with the highest score."""
        if len(rows) == 1:
            return int(rows[0])
        filtered = self.node_filters.of(pod.request)
        return int(rows[int(np.argmax(self.points(pod, filtered, rows)))])

    def points(self, pod: PodInfo, filtered: NodeFilterResult, rows: Ints) -> Points:
        total = self._free_capacity_points(pod, rows)
        preferred, taints = filtered.preferred[rows], filtered.taints[rows]
        if most := int(preferred.max()):
            total += _AFFINITY_WEIGHT * (100 * preferred // most)
        if most := int(taints.max()):
            total += _TAINT_WEIGHT * (100 - 100 * taints // most)
        pod_affinity = self.pod_affinity.points(pod.request, filtered, rows)
        if pod_affinity is not None:
            total += _POD_AFFINITY_WEIGHT * pod_affinity
        return total

    def _free_capacity_points(self, pod: PodInfo, rows: Ints) -> Points:
        """The scores for least allocated and balanced allocation."""
        columns = self.columns
        shares = []
        for place, resource in enumerate((CPU, MEMORY)):
            has = columns.has(resource)[rows]
            taken = columns.scored[place][rows] + pod.request.scored[place]
            shares.append(np.minimum(taken / np.maximum(has, 1), 1.0))
        cpu, memory = shares
        points: Points = 100.0 - 50.0 * (cpu + memory) + 100.0 * (1.0 - np.abs(cpu - memory) / 2)
        return points


def _insufficient(resource: str) -> Reason:
    return TOO_MANY_PODS if resource == POD_SLOTS else insufficient(resource, is_final=False)
