"""Selects the domains that are worth a search: those where counting finds enough capacity, the probably cheapest first.

The likely price is that of the cheapest nodes one by one. It says too much where nodes share victims, so it only puts
domains in order; and only on large fleets are those at the end of the order not searched.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.preemption.candidates import Mask
from shoal.engine.preemption.capacity_bounds import FeasibleRows, PodCapacity, Rows
from shoal.engine.preemption.node_costs import RowBounds
from shoal.engine.preemption.victims import Victims

_SMALL = 256
"""Nodes of a fleet where every domain is searched."""
_MOST_DOMAINS = 4


class DomainEstimates:
    """What counting says of one ask, over the candidates that are eligible."""

    def __init__(
        self, cluster: Cluster, victims: Victims, charge: Charge, reaches: FeasibleRows, eligible: Mask
    ) -> None:
        self._cluster = cluster
        self._rows = reaches.of(charge)
        self._bounds = RowBounds(cluster, victims, PodCapacity(cluster, charge), eligible, self._rows)

    def most_slots(self, rows: Rows) -> int:
        """How many such pods could be there if all the eligible yielded; never too few."""
        return int(self._bounds.most_slots(rows).sum())

    def best(self, domains: list[Rows], pods: int) -> list[Rows]:
        """The domains to search, of those that might hold so many pods."""
        most = np.zeros(self._cluster.rows, np.int64)
        most[self._rows] = self._bounds.most_slots(self._rows)
        usable = np.zeros(self._cluster.rows, np.bool_)
        usable[self._rows] = True
        spacious = [rows[usable[rows]] for rows in domains if int(most[rows].sum()) >= pods]
        if len(spacious) <= _MOST_DOMAINS or len(self._rows) <= _SMALL:
            return spacious
        self._bounds.look(self._rows)
        return sorted(spacious, key=lambda rows: self._likely_price(rows, most, pods))[:_MOST_DOMAINS]

    def _likely_price(self, rows: Rows, most: Rows, pods: int) -> float:
        gained = np.maximum(most[rows], 1)
        each = np.where(self._bounds.slots[rows] > 0, 0.0, self._bounds.weight[rows] / gained)
        order = np.argsort(each, kind="stable")
        needed = int(np.searchsorted(np.cumsum(gained[order]), pods)) + 1
        return float((each * gained)[order][:needed].sum())
