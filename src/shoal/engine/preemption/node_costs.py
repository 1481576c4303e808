"""Computes the cost of freeing capacity for one more pod on each node, for all nodes at once: a lower bound, exact
where all relevant candidates of a node must be evicted.

On a node, a candidate is *forced* when even without all the others the pod would not fit beside it. Every way to make
room there contains the forced ones, so they and their company cost no more than any; and if the pod fits once they are
gone, nothing is cheaper. If whole nodes are requested, all are forced. A bound only rises while victims are chosen,
except on rows that victims leave, which are looked at again; so the cheapest row is found without visiting the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.cluster import Cluster
from shoal.engine.preemption.candidates import Mask
from shoal.engine.preemption.capacity_bounds import PodCapacity, Rows
from shoal.engine.preemption.least_cost import at_least
from shoal.engine.preemption.node_victims import NodeVictims
from shoal.engine.preemption.victims import Victims

Floats = NDArray[np.float64]

_NEVER = np.inf
_MOST_LOOKED_AT = 128
"""Nodes tried for one pod where counting does not tell what it costs: then the cheapest so far will do."""


class _Crowd(NamedTuple):
    """Candidates, the order of each, and what each holds."""

    on: Rows
    place: Rows
    amounts: NDArray[np.int64]


class RowBounds:
    """Lower bounds per row for one ask, over the candidates that are eligible."""

    def __init__(
        self,
        cluster: Cluster,
        victims: Victims,
        capacity: PodCapacity,
        eligible: Mask,
        rows: Rows,
        *,
        counting: bool = True,
    ) -> None:
        """`counting`: room for one more than there is; otherwise for one that has been found not to fit."""
        self._cluster = cluster
        self._victims = victims
        self._candidates = victims.candidates
        self._capacity = capacity
        self._counting = counting
        self.eligible = eligible
        self.within = np.zeros(cluster.rows, np.bool_)
        self.within[rows] = True
        self._columns = self._candidates.amounts(capacity.columns)
        self.slots = np.zeros(cluster.rows, np.int64)
        self.at_once = np.ones(cluster.rows, np.int64)
        """How many more pods capacity is made for on a row, if it is the one; prices are per pod."""
        self.broken = np.zeros(cluster.rows, np.float64)
        self.weight = np.full(cluster.rows, _NEVER)
        self.late = np.full(cluster.rows, _NEVER)

    def look(self, rows: Rows, most: int = 1) -> None:
        """Compute the bounds of rows anew, for as many pods at once as a row could take, up to a number."""
        rows = rows[self.within[rows]]
        if len(rows) == 0:
            return
        capacity, candidates = self._capacity, self._candidates
        if self._counting:
            self.slots[rows] = capacity.slots(rows)
        slots = self.slots[rows]
        place_of = np.zeros(self._cluster.rows, np.int64)
        place_of[rows] = np.arange(len(rows))
        on = candidates.on(rows)
        on = on[self._victims.now(self.eligible)[on]] if len(on) else on
        place = place_of[candidates.row[on]]
        amounts = self._columns[on]
        slack = capacity.free(rows)
        for column in range(slack.shape[1]):
            slack[:, column] += _sums(place, amounts[:, column], len(rows)).astype(np.int64)
        if most > 1:
            self.at_once[rows] = np.clip((slack // capacity.taken).min(axis=1) - slots, 1, most)
        at_once = self.at_once[rows]
        slack -= capacity.taken * (slots + at_once)[:, None]
        enough: Mask = np.logical_and.reduce(slack >= 0, axis=1)
        forced = (amounts > slack[place]).any(axis=1) & enough[place]
        weight, late = self._prices(on[forced], place[forced], len(rows))
        unforced = (enough & (weight == 0)).nonzero()[0]
        if len(unforced):
            weight[unforced], late[unforced] = self._counted(_Crowd(on, place, amounts), unforced, slack)
        self.weight[rows] = np.where(enough, weight / at_once, _NEVER)
        self.late[rows] = late / at_once
        self.broken[rows] = 0

    def _counted(self, crowd: _Crowd, lines: Rows, slack: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Bounds for rows without forced candidates, all of whose candidates together leave this slack."""
        at = np.full(len(slack), -1)
        at[lines] = np.arange(len(lines))
        place = at[crowd.place]
        here = place >= 0
        on, place, amounts = crowd.on[here], place[here], crowd.amounts[here]
        given = np.zeros((len(lines), amounts.shape[1]), np.int64)
        np.add.at(given, place, amounts)
        candidates = self._candidates
        unit = candidates.unit[on]
        own = candidates.weight[on].astype(np.float64)
        alone = own.copy()
        members = (unit >= 0).nonzero()[0]
        firm = members[candidates.unit_spare[unit[members]] == 0]
        alone[firm] = candidates.unit_weight[unit[firm]]
        return at_least(place, amounts, given - slack[lines], own, alone, candidates.late_of[on])

    def cheapest(self) -> int:
        """The row with the lowest bound, or -1."""
        rows = (self.weight < _NEVER).nonzero()[0]
        for values in (self.broken, self.weight, self.late, self._cluster.rank):
            if len(rows) < 2:
                break
            of_rows = values[rows]
            rows = rows[of_rows == of_rows.min()]
        return int(rows[0]) if len(rows) else -1

    def on(self, row: int) -> list[int]:
        """The candidates on a row that may be chosen now."""
        on = self._candidates.on(np.array([row]))
        return [int(index) for index in on[self._victims.now(self.eligible)[on]]]

    def forced(self, row: int, on: list[int]) -> list[int]:
        """The candidates of a row without which there is no way to make room there."""
        amounts = self._columns[on]
        slack = self._capacity.free(np.array([row]))[0] - self._capacity.taken * self.goal(row)
        slack = slack + amounts.sum(axis=0)
        return [index for index, must in zip(on, (amounts > slack).any(axis=1).tolist(), strict=True) if must]

    def may_fit(self, row: int, on: list[int], spared: set[int]) -> bool:
        """Whether there could be room on a row if all on it yielded but these."""
        free = self._capacity.free(np.array([row]))[0]
        left = free + self._columns[[index for index in on if index not in spared]].sum(axis=0)
        return bool((left >= self._capacity.taken * self.goal(row)).all())

    def goal(self, row: int) -> int:
        """How many pods the row is to have slots for."""
        return int(self.slots[row] + self.at_once[row])

    def free_capacity(self, fits: Callable[[int], bool], most: int = 1) -> list[int] | None:
        """Room for more on the row where a pod costs least, as far as `fits` sees; its victims are taken."""
        victims = self._victims
        known: dict[int, list[int]] = {}
        looked_at = 0
        while (row := self.cheapest()) >= 0:
            going = known.get(row)
            if going is None and looked_at == _MOST_LOOKED_AT:
                row = min(known, key=lambda row: (self.broken[row], self.weight[row], self.late[row]), default=-1)
                if row < 0:
                    return None
                going = known[row]
            if going is None:
                looked_at += 1
                bound = self.broken.item(row), self.weight.item(row), self.late.item(row)
                going = NodeVictims(victims, self, row, fits).free_capacity()
                if going is None:
                    self.weight[row] = _NEVER
                    continue
                known[row] = going
                price = victims.price(going)
                each = int(self.at_once[row])
                real = price.broken / each, price.weight / each, price.late / each
                self.broken[row], self.weight[row], self.late[row] = real
                if real > bound:
                    victims.spare(going)
                    continue
            else:
                victims.take(going)
            self.look(victims.rows_touched(going), most)
            return going
        return None

    def most_slots(self, rows: Rows) -> NDArray[np.int64]:
        """How many pods each row could take at most if all eligible pods were evicted."""
        capacity, candidates = self._capacity, self._candidates
        on = candidates.on(rows)
        on = on[self._victims.now(self.eligible)[on]] if len(on) else on
        free = capacity.free(rows)
        place_of = np.zeros(self._cluster.rows, np.int64)
        place_of[rows] = np.arange(len(rows))
        place = place_of[candidates.row[on]]
        for column in range(free.shape[1]):
            free[:, column] += _sums(place, self._columns[on, column], len(rows)).astype(np.int64)
        slots: NDArray[np.int64] = np.maximum((free // capacity.taken).min(axis=1), 0)
        return slots

    def _prices(self, forced: NDArray[np.int64], place: NDArray[np.int64], count: int) -> tuple[Floats, Floats]:
        """Weight and running time of the forced per row, with their company where it must come along."""
        candidates = self._candidates
        unit = candidates.unit[forced]
        single = unit < 0
        own_weight: Floats = candidates.weight[forced].astype(np.float64)
        own_late: Floats = candidates.late_of[forced]
        weight = _sums(place[single], own_weight[single], count)
        late = _sums(place[single], own_late[single], count)
        if single.all():
            return weight, late
        gang = ~single
        size = len(candidates.units)
        pairs, which, members = np.unique(place[gang] * size + unit[gang], return_inverse=True, return_counts=True)
        which_unit = pairs % size
        whole = members > candidates.unit_spare[which_unit]
        pair_weight = _sums(which, own_weight[gang], len(pairs))
        pair_weight = np.where(whole, candidates.unit_weight[which_unit], pair_weight)
        # What a gang can spare counts for its number only.
        pair_late = _sums(which, forced[gang], len(pairs))
        pair_late = np.where(whole, candidates.unit_late[which_unit], pair_late)
        weight += _sums(pairs // size, pair_weight, count)
        late += _sums(pairs // size, pair_late, count)
        return weight, late


def _sums(place: NDArray[np.int64], amounts: NDArray[np.int64] | Floats, count: int) -> Floats:
    """Amounts added up per place. They stay far below 2^53, where doubles are whole numbers."""
    return np.asarray(np.bincount(place, amounts, count), np.float64)
