"""Determines which nodes suit a request by their static facts: labels, taints, names, GPU models, existence."""

from __future__ import annotations

from shoal.engine import facts
from shoal.engine.asks import Ask
from shoal.engine.charges import Charge
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


def has_possible_node(cluster: Cluster, charge: Charge) -> bool:
    """Whether some node could take the ask if it were empty. If none could, only a change that `static_changes` records
    can help.

    Of amounts only cores, memory and pod slots are compared; what is free of devices and of resources by name depends
    on how devices are cut and shared.
    """
    every = cluster.all_rows()
    rows = every[suits(cluster, charge.ask, every)]
    plain = slice(facts.CPU, facts.PODS + 1)
    return bool((cluster.total[rows, plain] >= charge.need[plain]).all(axis=1).any())
