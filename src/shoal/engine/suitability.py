"""Which nodes suit an ask for what they are, whatever is on them: labels, taints, names, models, being there at all."""

from __future__ import annotations

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.filters import STATIC_FILTERS
from shoal.engine.filters.rule import Rows, Verdicts


def suits(cluster: Cluster, ask: Ask, rows: Rows) -> Verdicts:
    """A verdict per row."""
    passes: Verdicts = cluster.alive.take(rows)
    for rule in STATIC_FILTERS:
        verdicts = rule.passes(cluster, ask, rows)
        if verdicts is not None:
            passes &= verdicts
    return passes
