"""Filters and scores nodes by other pods: affinity, anti-affinity and topology spread, with pod counts per node.

For each set of pods that a rule selects, the number of its pods per row is kept from the first use, so that the cost of
a placement depends on the number of rules and not of pods.

Left out, of kube-scheduler's scores: the preferences of existing pods about the new pod, and the default spreading for
pods of Services.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.api.selectors import Selector
from shoal.embedded.scheduler.node_columns import Flags, Ints, NodeColumns
from shoal.embedded.scheduler.node_filters import NodeFilterResult
from shoal.embedded.scheduler.pod_info import PodInfo, PodRequest
from shoal.embedded.scheduler.reasons import (
    AFFINITY_NOT_MET,
    ANTI_AFFINITY_NOT_MET,
    EXISTING_ANTI_AFFINITY,
    SPREAD,
    SPREAD_LABEL,
    Reason,
)
from shoal.engine.pod_rules import SelectedPods, Spread, Term

FilterVerdicts = list[tuple[Flags, Reason]]
"""The rows that pass each filter, and the reason for the others, in the order of the filters."""
_MAX_COUNTS = 256


class _CountedTerms(NamedTuple):
    meant: tuple[SelectedPods, ...]
    """The pods that all these terms select."""
    is_for_spread: bool
    """Terminating pods do not count."""


class PodAffinity:
    def __init__(self, columns: NodeColumns, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._columns = columns
        self._namespaces = namespaces
        self._counts: dict[_CountedTerms, Ints] = {}
        self._keepers: dict[Term, Ints] = {}
        """The anti-affinity terms of existing pods, and their number per row."""
        self._codes: dict[str, Ints] = {}
        self._epoch = -1
        self._size = columns.size

    # -- keeping count ----------------------------------------------------------------------------------------------

    def add(self, node: str, pod: PodInfo, sign: int) -> None:
        """Adds a pod to a node, or removes it (`sign` -1); must be called with `take` and `give` of the columns."""
        row = self._columns.row_of.get(node)
        if row is None:
            return
        self._fit_size()
        for counted, counts in self._counts.items():
            if self._is_meant(counted, pod):
                counts[row] += sign
        for term in pod.request.rules.anti:
            keepers = self._anti_affinity_counts(term)
            keepers[row] += sign
            if sign < 0 and not keepers.any():
                # Each decision reads all counts.
                del self._keepers[term]

    def node_added(self, node: str) -> None:
        """Counts pods that were known before their node."""
        if self._size != self._columns.size:
            self._fit_size()
            return
        for pod in self._columns.pods_on(node):
            self.add(node, pod, 1)

    def node_removed(self, node: str) -> None:
        """Must be called while the node still has its row."""
        for pod in self._columns.pods_on(node):
            self.add(node, pod, -1)

    def namespace_changed(self, name: str) -> None:
        """Drops the counts that depend on the labels of the namespace."""
        by_label = [one for one in self._counts if any(m.namespace_selector != Selector.NOTHING for m in one.meant)]
        if by_label and any(pod.namespace == name for _, pod in self._columns.pods()):
            self._counts = {one: counts for one, counts in self._counts.items() if one not in by_label}

    def _anti_affinity_counts(self, term: Term) -> Ints:
        counts = self._keepers.get(term)
        if counts is None:
            counts = self._keepers[term] = np.zeros(self._columns.size, np.int64)
        return counts

    def _count(self, meant: tuple[SelectedPods, ...], *, is_for_spread: bool = False) -> Ints:
        self._fit_size()
        counted = _CountedTerms(meant, is_for_spread)
        counts = self._counts.get(counted)
        if counts is None:
            if len(self._counts) >= _MAX_COUNTS:
                del self._counts[next(iter(self._counts))]
            counts = self._counts[counted] = np.zeros(self._columns.size, np.int64)
            for row, pod in self._columns.pods():
                if self._is_meant(counted, pod):
                    counts[row] += 1
        return counts

    def _is_meant(self, counted: _CountedTerms, pod: PodInfo) -> bool:
        if counted.is_for_spread and pod.is_terminating:
            return False
        return all(self._includes(meant, pod) for meant in counted.meant)

    def _includes(self, meant: SelectedPods, pod: PodInfo) -> bool:
        return meant.includes(pod.namespace, pod.labels, self._namespaces.get(pod.namespace, {}))

    def _fit_size(self) -> None:
        """Drops the counts if the number of rows grew."""
        if self._size == self._columns.size:
            return
        self._size = self._columns.size
        self._counts.clear()
        self._keepers.clear()
        for row, pod in self._columns.pods():
            for term in pod.request.rules.anti:
                self._anti_affinity_counts(term)[row] += 1

    # -- domains ----------------------------------------------------------------------------------------------------

    def _domains(self, key: str) -> Ints:
        """The domain number of each row for a label; -1 without the label."""
        columns = self._columns
        if self._epoch != columns.static_epoch:
            self._epoch = columns.static_epoch
            self._codes.clear()
        codes = self._codes.get(key)
        if codes is None:
            numbers: dict[str, int] = {}
            found = []
            for row in range(columns.size):
                value = columns.labels(row).get(key) if row < len(columns.places) else None
                found.append(-1 if value is None else numbers.setdefault(value, len(numbers)))
            codes = self._codes[key] = np.array(found, np.int64)
        return codes

    def _domain_counts(self, key: str, counts: Ints) -> Ints:
        """The count of the domain of each row; 0 without a domain."""
        codes = self._domains(key)
        has = codes >= 0
        if not has.any():
            return np.zeros(len(codes), np.int64)
        sums = np.bincount(codes[has], weights=counts[has]).astype(np.int64)
        return np.where(has, sums[codes], 0)

    # -- filters ----------------------------------------------------------------------------------------------------

    def filter_rows(self, pod: PodInfo, filtered: NodeFilterResult) -> FilterVerdicts:
        """The filter results for all rows, by the rules of this pod and of existing pods."""
        rules = pod.request.rules
        found: FilterVerdicts = []
        hard = [one for one in rules.spread if one.hard]
        if hard:
            found += self._spread(pod, hard, filtered)
        if rules.affinity:
            found.append((self._meets_affinity(pod), AFFINITY_NOT_MET))
        for term in rules.anti:
            found.append((self._domain_counts(term.key, self._count((term.selected,))) == 0, ANTI_AFFINITY_NOT_MET))
        for term, counts in self._keepers.items():
            if self._includes(term.selected, pod):
                found.append((self._domain_counts(term.key, counts) == 0, EXISTING_ANTI_AFFINITY))
        return found

    def _meets_affinity(self, pod: PodInfo) -> Flags:
        terms = pod.request.rules.affinity
        counts = self._count(tuple(term.selected for term in terms))
        passes, labelled = np.ones(self._columns.size, np.bool_), np.ones(self._columns.size, np.bool_)
        is_alone = True
        for term in terms:
            near = self._domain_counts(term.key, counts)
            passes &= near > 0
            labelled &= self._domains(term.key) >= 0
            is_alone = is_alone and not near.any()
        if is_alone and all(self._includes(term.selected, pod) for term in terms):
            # The first pod of a group with affinity to itself may be anywhere.
            return labelled
        return passes

    def _spread(self, pod: PodInfo, spreads: list[Spread], filtered: NodeFilterResult) -> FilterVerdicts:
        labelled: Flags = np.ones(self._columns.size, np.bool_)
        for spread in spreads:
            labelled &= self._domains(spread.key) >= 0
        found: FilterVerdicts = [(labelled, SPREAD_LABEL)]
        for spread in spreads:
            counting = labelled & self._counts_for(spread, filtered)
            codes = self._domains(spread.key)
            sums = self._sums(spread, counting)
            present = np.unique(codes[counting])
            least = int(sums[present].min()) if len(present) >= max(spread.min_domains, 1) else 0
            more = int(self._includes(spread.selected, pod))
            skew = np.where(labelled, sums[codes] + more - least, 0)
            found.append((skew <= spread.max_skew, SPREAD))
        return found

    def _sums(self, spread: Spread, counting: Flags) -> Ints:
        codes = self._domains(spread.key)
        most = int(codes.max(initial=-1)) + 1
        counts = self._count((spread.selected,), is_for_spread=True)
        found: Ints = np.bincount(codes[counting], weights=counts[counting], minlength=max(most, 1)).astype(np.int64)
        return found

    def _counts_for(self, spread: Spread, filtered: NodeFilterResult) -> Flags:
        counting = self._columns.is_there.copy()
        if spread.honors_affinity:
            counting &= filtered.affinity
        if spread.honors_taints:
            counting &= filtered.tolerated
        return counting

    # -- scores -----------------------------------------------------------------------------------------------------

    def points(self, request: PodRequest, filtered: NodeFilterResult, rows: Ints) -> NDArray[np.float64] | None:
        """The scores for preferred affinity and for even spread, each 0 to 100; None without preferences."""
        soft = [one for one in request.rules.spread if not one.hard]
        if not request.rules.weighted and not soft:
            return None
        total = np.zeros(len(rows))
        if request.rules.weighted:
            raw = np.zeros(self._columns.size)
            for weighted in request.rules.weighted:
                raw += weighted.weight * self._domain_counts(weighted.term.key, self._count((weighted.term.selected,)))
            total += _normalized(raw[rows])
        if soft:
            cost = np.zeros(self._columns.size)
            labelled: Flags = np.ones(self._columns.size, np.bool_)
            for spread in soft:
                cost += self._spread_scores(spread, self._counts_for(spread, filtered), rows)
                labelled &= self._domains(spread.key) >= 0
            own = cost[rows]
            most, least = own.max(), own.min()
            even = np.full(len(rows), 100.0) if most == 0 else 100.0 * (most + least - own) / most
            total += np.where(labelled[rows], even, 0.0)
        return total

    def _spread_scores(self, spread: Spread, counting: Flags, rows: Ints) -> NDArray[np.float64]:
        codes = self._domains(spread.key)
        domains = len(np.unique(codes[rows][codes[rows] >= 0]))
        sums = self._sums(spread, counting & (codes >= 0))
        weight = np.log(domains + 2)
        found: NDArray[np.float64] = np.where(codes >= 0, sums[codes] * weight + (spread.max_skew - 1), 0.0)
        return found


def _normalized(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    least, most = raw.min(), raw.max()
    return np.zeros(len(raw)) if most == least else 100.0 * (raw - least) / (most - least)
