"""Counts how many pods with one request each node takes: for all nodes at once, never too low.

The count divides what is free by what one pod takes, column by column, and lets the least decide. Where devices are
shared it is only a bound, because pieces on several devices do not add up to one; what a count promises is therefore
always tried on the ledger. It serves to leave out domains that are too small and to put the others in order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine import facts
from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.placement import Placement
from shoal.engine.suitability import suits

Counts = NDArray[np.int64]

_ENDLESS = 1 << 31


def capacity_now(placement: Placement, charge: Charge) -> Counts:
    """Per row, how many more pods of this ask it takes at most as things are."""
    cluster = placement.cluster
    rows = placement.shape(charge).feasible()
    counts = np.zeros(cluster.capacity, np.int64)
    # A row that passes every rule takes one, whatever the division says.
    counts[rows] = np.maximum(_per_row(cluster, charge, rows, cluster.free), 1)
    return counts


def capacity_when_empty(cluster: Cluster, charge: Charge) -> Counts:
    """Per row, how many it would take at most if nothing else ran."""
    rows = cluster.all_rows()
    rows = rows[suits(cluster, charge.ask, rows)]
    counts = np.zeros(cluster.capacity, np.int64)
    counts[rows] = _per_row(cluster, charge, rows, cluster.total)
    return counts


def _per_row(cluster: Cluster, charge: Charge, rows: Counts, record: Counts) -> Counts:
    amounts = record.take(rows, axis=0)
    # Two pods of one ask cannot both have its ports.
    counts = np.full(len(rows), 1 if charge.ask.host_ports else _ENDLESS, np.int64)
    need, taken = charge.need, charge.taken
    for column in (need > 0).nonzero()[0].tolist():
        here = amounts[:, column]
        if taken[column] > 0:
            np.minimum(counts, here // taken[column], out=counts)
        else:
            counts[here < need[column]] = 0
    by_device = np.full(len(rows), _ENDLESS, np.int64)
    for column, each in ((facts.GPU_WHOLE, int(need[facts.GPU_WHOLE])), (facts.GPU_MILLI, int(taken[facts.GPU_MILLI]))):
        if each > 0:
            np.minimum(by_device, amounts[:, column] // each, out=by_device)
    # Where devices are replicated or cut, their columns speak of one more pod, not of several.
    if cluster.devices.odd:
        by_device[np.isin(rows, list(cluster.devices.odd))] = _ENDLESS
    return np.clip(np.minimum(counts, by_device), 0, None)
