"""Brings zones up to date with the nodes: which row lies in which domain of a scope.

Only changes of labels, taints or existence matter, and those have a log of their own; a query costs nothing while that
is unchanged. When the values of the label were numbered anew, all rows are looked at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.domain_counts.domain_count import OUTSIDE, Scope, Zones
from shoal.engine.filters.node_affinity import NodeAffinity
from shoal.engine.filters.taints import Taints
from shoal.engine.growth import grown
from shoal.engine.labels import ABSENT

_AFFINITY = NodeAffinity()
_TAINTS = Taints()


def follow(cluster: Cluster, zones: Zones) -> None:
    """Look at the rows that changed since the last time."""
    log = cluster.static_changes
    if zones.cursor == log.end and len(zones.codes) == cluster.capacity:
        return
    column = cluster.labels.column(zones.scope.key)
    rows = log.since(zones.cursor) if zones.epoch == column.epoch else None
    zones.cursor, zones.epoch = log.end, column.epoch
    rows = cluster.all_rows() if rows is None else np.unique(rows)
    domains = len(column.values)
    codes = grown(zones.codes, cluster.capacity)
    fresh = domain_of(cluster, zones.scope, rows)
    if len(codes) == len(zones.codes) and domains == len(zones.nodes) and np.array_equal(fresh, codes.take(rows)):
        return
    codes = codes.copy()
    codes[rows] = fresh
    zones.divide(codes, domains)


def domain_of(cluster: Cluster, scope: Scope, rows: NDArray[np.int64]) -> NDArray[np.intp]:
    """The domain of each row, by the code of its label's value."""
    codes = cluster.labels.column(scope.key).codes.take(rows).astype(np.intp)
    counted = cluster.alive.take(rows)
    for key in scope.also:
        counted &= cluster.labels.column(key).codes.take(rows) != ABSENT
    ask = Ask(nodes=scope.nodes, tolerations=scope.tolerations or ())
    affine = _AFFINITY.passes(cluster, ask, rows)
    if affine is not None:
        counted &= affine
    tolerated = _TAINTS.passes(cluster, ask, rows) if scope.tolerations is not None else None
    if tolerated is not None:
        counted &= tolerated
    codes[~counted] = OUTSIDE
    return codes
