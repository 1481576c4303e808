"""Finds the nodes that match an ask by labels, taints and cordons, and which of them it prefers.

The result is the same for all pods of one ask until a node changes, so it is computed once. Pods of DaemonSets are the
exception: each names its own node, no two asks are equal, and only that node is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from shoal.api.node_affinity import NodeRule
from shoal.api.taints import UNSCHEDULABLE, Toleration, count_untolerated, untolerated
from shoal.embedded.scheduler.node_columns import Flags, Ints, NodeColumns, NodeInfo
from shoal.embedded.scheduler.pod_info import PodRequest
from shoal.embedded.scheduler.reasons import AFFINITY, CORDONED, NOT_CHOSEN, TAINTED, Reason

_MAX_CACHED = 512
_FEW_NAMES = 8
_NAME_FIELD = "metadata.name"


class NodeFilterResult:
    """The filter results for all rows."""

    __slots__ = ("affinity", "matches", "preferred", "refused", "taints", "tolerated")

    def __init__(self, columns: NodeColumns, request: PodRequest, names: frozenset[str] | None) -> None:
        """`names`: the only nodes that can match, if the ask names nodes."""
        size = columns.size
        self.matches: Flags = np.zeros(size, np.bool_)
        self.affinity: Flags = np.zeros(size, np.bool_)
        self.tolerated: Flags = np.zeros(size, np.bool_)
        self.preferred: Ints = np.zeros(size, np.int64)
        self.taints: Ints = np.zeros(size, np.int64)
        """The number of untolerated PreferNoSchedule taints per row."""
        self.refused: dict[Reason, int] = {}
        """The number of refused rows by the first reason."""
        if names is not None:
            self._refuse(NOT_CHOSEN, len(columns) - sum(name in columns.row_of for name in names))
        for row, place in (
            enumerate(columns.places) if names is None or request.rules.spread else _named(columns, names)
        ):
            if place is None:
                continue
            self.tolerated[row] = untolerated(place.taints, request.tolerations) is None
            if names is not None and place.name not in names:
                continue
            self.affinity[row] = request.nodes.matches(place.name, place.labels)
            reason = self._reason(place, row, request.tolerations)
            if reason is not None:
                self._refuse(reason, 1)
                continue
            self.matches[row] = True
            self.preferred[row] = sum(
                term.weight for term in request.preferred if term.preference.matches(place.name, place.labels)
            )
            self.taints[row] = count_untolerated(place.taints, request.tolerations)

    def _refuse(self, reason: Reason, rows: int) -> None:
        if rows:
            self.refused[reason] = self.refused.get(reason, 0) + rows

    def _reason(self, place: NodeInfo, row: int, tolerations: Sequence[Toleration]) -> Reason | None:
        """The first reason that refuses the node, in kube-scheduler's order."""
        if place.is_cordoned and not any(one.tolerates(UNSCHEDULABLE) for one in tolerations):
            return CORDONED
        if not self.tolerated[row]:
            return TAINTED
        return None if self.affinity[row] else AFFINITY


class NodeFilters:
    """The filter results by ask, computed on first use."""

    def __init__(self, columns: NodeColumns) -> None:
        self._columns = columns
        self._epoch = -1
        self._feasible: dict[PodRequest, NodeFilterResult] = {}

    def of(self, request: PodRequest) -> NodeFilterResult:
        if self._epoch != self._columns.static_epoch:
            self._epoch = self._columns.static_epoch
            self._feasible.clear()
        filtered = self._feasible.get(request)
        if filtered is not None:
            return filtered
        names = _names(request.nodes)
        filtered = NodeFilterResult(self._columns, request, names)
        if names is None or len(names) > _FEW_NAMES:
            while len(self._feasible) >= _MAX_CACHED:
                del self._feasible[next(iter(self._feasible))]
            self._feasible[request] = filtered
        return filtered


def _named(columns: NodeColumns, names: Iterable[str]) -> Iterator[tuple[int, NodeInfo | None]]:
    for name in names:
        row = columns.row_of.get(name)
        if row is not None:
            yield row, columns.places[row]


def _names(rule: NodeRule) -> frozenset[str] | None:
    """The nodes that all terms name, as in pods of DaemonSets; None if a term names none."""
    if not rule.terms:
        return None
    found: set[str] = set()
    for term in rule.terms:
        named = [one for one in term.match_fields if one.key == _NAME_FIELD and one.operator == "In"]
        if not named:
            return None
        found |= set.intersection(*(set(one.values) for one in named))
    return frozenset(found)
