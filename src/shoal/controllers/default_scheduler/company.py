"""Rules about other pods: affinity, anti-affinity and spread, over counts of pods per node.

For each set of pods that some rule means, the number of them per row is kept from the first time it is asked for, so
that placing a pod costs the rules there are and not the pods there are.

Left out, of kube-scheduler's scores: what pods that stand somewhere would prefer about the newcomer, and the spreading
that it applies to pods of Services by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.api.selectors import Selector
from shoal.controllers.default_scheduler.asks import Ask, PodFacts
from shoal.controllers.default_scheduler.fleet import Flags, Fleet, Ints
from shoal.controllers.default_scheduler.reasons import KEPT_AWAY, NOT_NEAR, SPREAD, SPREAD_LABEL, TOO_NEAR, Reason
from shoal.controllers.default_scheduler.suiting import Suit
from shoal.engine.domains.rules import Meant, Spread, Term

Verdicts = list[tuple[Flags, Reason]]
"""Rows that pass, and why the others do not; in the order of the rules."""
_MOST_COUNTS = 256


class _Counted(NamedTuple):
    meant: tuple[Meant, ...]
    """Pods that all of these mean."""
    is_for_spread: bool
    """Pods that are leaving do not count."""


class Company:
    def __init__(self, fleet: Fleet, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._fleet = fleet
        self._namespaces = namespaces
        self._counts: dict[_Counted, Ints] = {}
        self._keepers: dict[Term, Ints] = {}
        """Anti-affinity of pods that stand somewhere, and how many of them stand where."""
        self._codes: dict[str, Ints] = {}
        self._epoch = -1
        self._size = fleet.size

    # -- keeping count ----------------------------------------------------------------------------------------------

    def add(self, node: str, pod: PodFacts, sign: int) -> None:
        """A pod came to a node, or left it (`sign` -1); call it beside the fleet's `take` and `give`."""
        row = self._fleet.row_of.get(node)
        if row is None:
            return
        self._fit_size()
        for counted, counts in self._counts.items():
            if self._is_meant(counted, pod):
                counts[row] += sign
        for term in pod.ask.rules.anti:
            keepers = self._keeper(term)
            keepers[row] += sign
            if sign < 0 and not keepers.any():
                # Every decision asks all that are kept.
                del self._keepers[term]

    def node_came(self, node: str) -> None:
        """Pods that were there before their node count from now on."""
        if self._size != self._fleet.size:
            self._fit_size()
            return
        for pod in self._fleet.pods_on(node):
            self.add(node, pod, 1)

    def node_leaves(self, node: str) -> None:
        """Call it while the node still has its row."""
        for pod in self._fleet.pods_on(node):
            self.add(node, pod, -1)

    def namespace_changed(self, name: str) -> None:
        """It has other labels, and so its pods may be meant by others than before."""
        by_label = [one for one in self._counts if any(m.namespace_selector != Selector.NOTHING for m in one.meant)]
        if by_label and any(pod.namespace == name for _, pod in self._fleet.pods()):
            self._counts = {one: counts for one, counts in self._counts.items() if one not in by_label}

    def _keeper(self, term: Term) -> Ints:
        counts = self._keepers.get(term)
        if counts is None:
            counts = self._keepers[term] = np.zeros(self._fleet.size, np.int64)
        return counts

    def _count(self, meant: tuple[Meant, ...], *, is_for_spread: bool = False) -> Ints:
        self._fit_size()
        counted = _Counted(meant, is_for_spread)
        counts = self._counts.get(counted)
        if counts is None:
            if len(self._counts) >= _MOST_COUNTS:
                del self._counts[next(iter(self._counts))]
            counts = self._counts[counted] = np.zeros(self._fleet.size, np.int64)
            for row, pod in self._fleet.pods():
                if self._is_meant(counted, pod):
                    counts[row] += 1
        return counts

    def _is_meant(self, counted: _Counted, pod: PodFacts) -> bool:
        if counted.is_for_spread and pod.is_leaving:
            return False
        return all(self._includes(meant, pod) for meant in counted.meant)

    def _includes(self, meant: Meant, pod: PodFacts) -> bool:
        return meant.includes(pod.namespace, pod.labels, self._namespaces.get(pod.namespace, {}))

    def _fit_size(self) -> None:
        """With more rows than before, count anew when asked."""
        if self._size == self._fleet.size:
            return
        self._size = self._fleet.size
        self._counts.clear()
        self._keepers.clear()
        for row, pod in self._fleet.pods():
            for term in pod.ask.rules.anti:
                self._keeper(term)[row] += 1

    # -- domains ----------------------------------------------------------------------------------------------------

    def _domains(self, key: str) -> Ints:
        """A number per row for the node's value of a label; -1 where it has none."""
        fleet = self._fleet
        if self._epoch != fleet.static_epoch:
            self._epoch = fleet.static_epoch
            self._codes.clear()
        codes = self._codes.get(key)
        if codes is None:
            numbers: dict[str, int] = {}
            found = []
            for row in range(fleet.size):
                value = fleet.labels(row).get(key) if row < len(fleet.places) else None
                found.append(-1 if value is None else numbers.setdefault(value, len(numbers)))
            codes = self._codes[key] = np.array(found, np.int64)
        return codes

    def _near(self, key: str, counts: Ints) -> Ints:
        """Per row, how many are counted in its domain; 0 where it has none."""
        codes = self._domains(key)
        has = codes >= 0
        if not has.any():
            return np.zeros(len(codes), np.int64)
        sums = np.bincount(codes[has], weights=counts[has]).astype(np.int64)
        return np.where(has, sums[codes], 0)

    # -- filters ----------------------------------------------------------------------------------------------------

    def verdicts(self, pod: PodFacts, suit: Suit) -> Verdicts:
        """What the rules of this pod, and of those that stand somewhere, say of all rows."""
        rules = pod.ask.rules
        found: Verdicts = []
        hard = [one for one in rules.spread if one.hard]
        if hard:
            found += self._spread(pod, hard, suit)
        if rules.affinity:
            found.append((self._is_near(pod), NOT_NEAR))
        for term in rules.anti:
            found.append((self._near(term.key, self._count((term.meant,))) == 0, TOO_NEAR))
        for term, counts in self._keepers.items():
            if self._includes(term.meant, pod):
                found.append((self._near(term.key, counts) == 0, KEPT_AWAY))
        return found

    def _is_near(self, pod: PodFacts) -> Flags:
        terms = pod.ask.rules.affinity
        counts = self._count(tuple(term.meant for term in terms))
        passes, labelled = np.ones(self._fleet.size, np.bool_), np.ones(self._fleet.size, np.bool_)
        is_alone = True
        for term in terms:
            near = self._near(term.key, counts)
            passes &= near > 0
            labelled &= self._domains(term.key) >= 0
            is_alone = is_alone and not near.any()
        if is_alone and all(self._includes(term.meant, pod) for term in terms):
            # The first of pods that want to be together may be anywhere.
            return labelled
        return passes

    def _spread(self, pod: PodFacts, spreads: list[Spread], suit: Suit) -> Verdicts:
        labelled: Flags = np.ones(self._fleet.size, np.bool_)
        for spread in spreads:
            labelled &= self._domains(spread.key) >= 0
        found: Verdicts = [(labelled, SPREAD_LABEL)]
        for spread in spreads:
            counting = labelled & self._counts_for(spread, suit)
            codes = self._domains(spread.key)
            sums = self._sums(spread, counting)
            present = np.unique(codes[counting])
            least = int(sums[present].min()) if len(present) >= max(spread.min_domains, 1) else 0
            more = int(self._includes(spread.meant, pod))
            skew = np.where(labelled, sums[codes] + more - least, 0)
            found.append((skew <= spread.max_skew, SPREAD))
        return found

    def _sums(self, spread: Spread, counting: Flags) -> Ints:
        codes = self._domains(spread.key)
        most = int(codes.max(initial=-1)) + 1
        counts = self._count((spread.meant,), is_for_spread=True)
        found: Ints = np.bincount(codes[counting], weights=counts[counting], minlength=max(most, 1)).astype(np.int64)
        return found

    def _counts_for(self, spread: Spread, suit: Suit) -> Flags:
        counting = self._fleet.is_there.copy()
        if spread.honors_affinity:
            counting &= suit.affinity
        if spread.honors_taints:
            counting &= suit.tolerated
        return counting

    # -- scores -----------------------------------------------------------------------------------------------------

    def points(self, ask: Ask, suit: Suit, rows: Ints) -> NDArray[np.float64] | None:
        """0 to 100 for company that is preferred, and 0 to 100 for even spread, added up; None without preferences."""
        soft = [one for one in ask.rules.spread if not one.hard]
        if not ask.rules.wished and not soft:
            return None
        total = np.zeros(len(rows))
        if ask.rules.wished:
            raw = np.zeros(self._fleet.size)
            for wished in ask.rules.wished:
                raw += wished.weight * self._near(wished.term.key, self._count((wished.term.meant,)))
            total += _stretched(raw[rows])
        if soft:
            cost = np.zeros(self._fleet.size)
            labelled: Flags = np.ones(self._fleet.size, np.bool_)
            for spread in soft:
                cost += self._unevenness(spread, self._counts_for(spread, suit), rows)
                labelled &= self._domains(spread.key) >= 0
            own = cost[rows]
            most, least = own.max(), own.min()
            even = np.full(len(rows), 100.0) if most == 0 else 100.0 * (most + least - own) / most
            total += np.where(labelled[rows], even, 0.0)
        return total

    def _unevenness(self, spread: Spread, counting: Flags, rows: Ints) -> NDArray[np.float64]:
        codes = self._domains(spread.key)
        domains = len(np.unique(codes[rows][codes[rows] >= 0]))
        sums = self._sums(spread, counting & (codes >= 0))
        weight = np.log(domains + 2)
        found: NDArray[np.float64] = np.where(codes >= 0, sums[codes] * weight + (spread.max_skew - 1), 0.0)
        return found


def _stretched(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    least, most = raw.min(), raw.max()
    return np.zeros(len(raw)) if most == least else 100.0 * (raw - least) / (most - least)
