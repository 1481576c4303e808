"""Which nodes suit an ask for what they are (labels, taints, cordons), and which of them it prefers.

This is the same for all pods of one ask until a node changes, so it is worked out once and kept. Not so for pods of
DaemonSets: each names a node of its own, no two ask alike, and only that node is to be looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from shoal.api.node_affinity import NodeRule
from shoal.api.taints import UNSCHEDULABLE, Toleration, count_untolerated, untolerated
from shoal.controllers.default_scheduler.asks import Ask
from shoal.controllers.default_scheduler.fleet import Flags, Fleet, Ints, Place
from shoal.controllers.default_scheduler.reasons import AFFINITY, CORDONED, NOT_CHOSEN, TAINTED, Reason

_MOST_KEPT = 512
_FEW_NAMES = 8
_NAME_FIELD = "metadata.name"


class Suit:
    """The verdicts about all rows."""

    __slots__ = ("affinity", "preferred", "refused", "suits", "taints", "tolerated")

    def __init__(self, fleet: Fleet, ask: Ask, names: frozenset[str] | None) -> None:
        """`names`: of the only nodes that may do, where the ask says so."""
        size = fleet.size
        self.suits: Flags = np.zeros(size, np.bool_)
        self.affinity: Flags = np.zeros(size, np.bool_)
        self.tolerated: Flags = np.zeros(size, np.bool_)
        self.preferred: Ints = np.zeros(size, np.int64)
        self.taints: Ints = np.zeros(size, np.int64)
        """Soft ones that it does not tolerate."""
        self.refused: dict[Reason, int] = {}
        """How many rows do not suit, by the first rule that turns them away."""
        if names is not None:
            self._refuse(NOT_CHOSEN, len(fleet) - sum(name in fleet.row_of for name in names))
        for row, place in enumerate(fleet.places) if names is None or ask.rules.spread else _named(fleet, names):
            if place is None:
                continue
            self.tolerated[row] = untolerated(place.taints, ask.tolerations) is None
            if names is not None and place.name not in names:
                continue
            self.affinity[row] = ask.nodes.matches(place.name, place.labels)
            reason = self._reason(place, row, ask.tolerations)
            if reason is not None:
                self._refuse(reason, 1)
                continue
            self.suits[row] = True
            self.preferred[row] = sum(
                term.weight for term in ask.preferred if term.preference.matches(place.name, place.labels)
            )
            self.taints[row] = count_untolerated(place.taints, ask.tolerations)

    def _refuse(self, reason: Reason, rows: int) -> None:
        if rows:
            self.refused[reason] = self.refused.get(reason, 0) + rows

    def _reason(self, place: Place, row: int, tolerations: Sequence[Toleration]) -> Reason | None:
        """The first rule that turns the node away, in kube-scheduler's order."""
        if place.is_cordoned and not any(one.tolerates(UNSCHEDULABLE) for one in tolerations):
            return CORDONED
        if not self.tolerated[row]:
            return TAINTED
        return None if self.affinity[row] else AFFINITY


class Suits:
    """Suits by ask, made on first sight."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._epoch = -1
        self._kept: dict[Ask, Suit] = {}

    def of(self, ask: Ask) -> Suit:
        if self._epoch != self._fleet.static_epoch:
            self._epoch = self._fleet.static_epoch
            self._kept.clear()
        suit = self._kept.get(ask)
        if suit is not None:
            return suit
        names = _names(ask.nodes)
        suit = Suit(self._fleet, ask, names)
        if names is None or len(names) > _FEW_NAMES:
            while len(self._kept) >= _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[ask] = suit
        return suit


def _named(fleet: Fleet, names: Iterable[str]) -> Iterator[tuple[int, Place | None]]:
    for name in names:
        row = fleet.row_of.get(name)
        if row is not None:
            yield row, fleet.places[row]


def _names(rule: NodeRule) -> frozenset[str] | None:
    """The nodes that every term names, as the pods of DaemonSets have it; None where some term names none."""
    if not rule.terms:
        return None
    found: set[str] = set()
    for term in rule.terms:
        named = [one for one in term.match_fields if one.key == _NAME_FIELD and one.operator == "In"]
        if not named:
            return None
        found |= set.intersection(*(set(one.values) for one in named))
    return frozenset(found)
