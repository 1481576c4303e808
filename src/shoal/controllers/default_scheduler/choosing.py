"""One decision: the best node for a pod now, or how many nodes each reason turned away.

Rules are asked in kube-scheduler's order and a node counts for the first that refuses it. Points are its own too: room
left over and balance between processor and memory, each 0 to 100, plus what the pod prefers. Fractions of a point
count, so that small pods spread over large nodes, and equal points go to the node that was there first: the same events
lead to the same places. kube-scheduler rounds, and draws a lot.

Rejected: image locality, as images are not modelled here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.api.resources import CPU, MEMORY
from shoal.api.resources import PODS as POD_SLOTS
from shoal.controllers.default_scheduler.asks import PodFacts
from shoal.controllers.default_scheduler.company import Company, Verdicts
from shoal.controllers.default_scheduler.fleet import Fleet, Ints
from shoal.controllers.default_scheduler.reasons import MANY_PODS, PORTS, Reason, Refusal, insufficient
from shoal.controllers.default_scheduler.suiting import Suit, Suits

_TAINT_WEIGHT, _AFFINITY_WEIGHT, _COMPANY_WEIGHT = 3, 2, 2
Points = NDArray[np.float64]
Reserved = dict[str, Ints]
"""Room promised to others, by resource."""


class Look(NamedTuple):
    """What the rules say of all rows."""

    rows: Ints
    """Those that take the pod."""
    refusal: Refusal
    helpable: Ints
    """Rows that might take it if others left."""


class Chooser:
    def __init__(self, fleet: Fleet, company: Company) -> None:
        self.fleet = fleet
        self.company = company
        self.suits = Suits(fleet)

    def look(self, pod: PodFacts, more: Verdicts, reserved: Reserved | None = None) -> Look:
        """Ask all rules about all nodes. `more` are verdicts about volumes and devices."""
        fleet, ask = self.fleet, pod.ask
        suit = self.suits.of(ask)
        left = suit.suits.copy()
        counts = {reason.words: number for reason, number in suit.refused.items()}
        helpable = np.zeros(fleet.size, np.bool_)
        for ports_row in fleet.ports if ask.ports else ():
            if left[ports_row] and not fleet.has_free_ports(ports_row, ask):
                left[ports_row] = False
                helpable[ports_row] = True
                counts[PORTS.words] = counts.get(PORTS.words, 0) + 1
        if left.any():
            left = self._with_room(pod, left, counts, helpable, reserved or {})
        for passes, reason in (*more, *self.company.verdicts(pod, suit)):
            refused = left & ~passes
            if number := int(np.count_nonzero(refused)):
                counts[reason.words] = counts.get(reason.words, 0) + number
                left &= passes
                if not reason.is_final:
                    helpable |= refused
        return Look(np.flatnonzero(left), Refusal(len(fleet), counts), np.flatnonzero(helpable))

    def _with_room(
        self,
        pod: PodFacts,
        left: NDArray[np.bool_],
        counts: dict[str, int],
        helpable: NDArray[np.bool_],
        reserved: Reserved,
    ) -> NDArray[np.bool_]:
        fleet = self.fleet
        fits = left.copy()
        hopeless = np.zeros(fleet.size, np.bool_)
        for resource, amount in pod.ask.requests:
            has, taken = fleet.has(resource), fleet.taken(resource)
            if resource in reserved:
                taken = taken + reserved[resource]
            lacks = left & (taken + amount > has)
            if number := int(np.count_nonzero(lacks)):
                reason = _lack(resource)
                counts[reason.words] = counts.get(reason.words, 0) + number
                fits &= ~lacks
                hopeless |= lacks & (has < amount)
        helpable |= left & ~fits & ~hopeless
        return fits

    def best(self, pod: PodFacts, rows: Ints) -> int:
        """The row with the most points."""
        if len(rows) == 1:
            return int(rows[0])
        suit = self.suits.of(pod.ask)
        return int(rows[int(np.argmax(self.points(pod, suit, rows)))])

    def points(self, pod: PodFacts, suit: Suit, rows: Ints) -> Points:
        total = self._room_points(pod, rows)
        preferred, taints = suit.preferred[rows], suit.taints[rows]
        if most := int(preferred.max()):
            total += _AFFINITY_WEIGHT * (100 * preferred // most)
        if most := int(taints.max()):
            total += _TAINT_WEIGHT * (100 - 100 * taints // most)
        company = self.company.points(pod.ask, suit, rows)
        if company is not None:
            total += _COMPANY_WEIGHT * company
        return total

    def _room_points(self, pod: PodFacts, rows: Ints) -> Points:
        """Least allocated, and balanced allocation."""
        fleet = self.fleet
        shares = []
        for place, resource in enumerate((CPU, MEMORY)):
            has = fleet.has(resource)[rows]
            taken = fleet.scored[place][rows] + pod.ask.scored[place]
            shares.append(np.minimum(taken / np.maximum(has, 1), 1.0))
        cpu, memory = shares
        points: Points = 100.0 - 50.0 * (cpu + memory) + 100.0 * (1.0 - np.abs(cpu - memory) / 2)
        return points


def _lack(resource: str) -> Reason:
    return MANY_PODS if resource == POD_SLOTS else insufficient(resource, is_final=False)
