"""Finds what is broken on the nodes that the conditions of a pod allow: nodes that are not ready, and unhealthy GPUs.

The taints of a node that is not ready keep pods off as other taints do, but tolerating them does not help: the node has
to be repaired.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shoal.data.mig import RESOURCE_PREFIX
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_notation.gpu_health import gpu_health
from shoal.engine.evidence import feasible_rows
from shoal.engine.repelling_taints import tolerating
from shoal.sim.remedies.objects import Objects
from shoal.sim.remedies.unready_nodes import UNREADY, is_unready
from shoal.views.remedies import health_words, not_ready_words

_MOST_NODES = 4


def unhealthy_lines(cluster: Cluster, ask: Ask, objects: Objects) -> list[str]:
    """Of nodes that the rules about nodes do not exclude."""
    unready = {name: node for name, node in objects.nodes.items() if is_unready(node)}
    words = [not_ready_words(unready[name]) for name in _allowed(cluster, tolerating(ask, UNREADY), unready)]
    more = len(words) - _MOST_NODES
    lines = [*words[:_MOST_NODES], f"and {more:,} more nodes that are not ready" if more > 0 else ""]
    if ask.devices is None and not any(name.startswith(RESOURCE_PREFIX) for name, _ in ask.requests):
        return lines
    broken = {
        name: health
        for name, node in objects.nodes.items()
        if (health := gpu_health(node)) is not None and (health.total or not _gives_to_claims(cluster, name))
    }
    words = [health_words(name, broken[name]) for name in _allowed(cluster, ask, broken)]
    more = len(words) - _MOST_NODES
    return [*lines, *words[:_MOST_NODES], f"and {more:,} more nodes with unhealthy GPUs" if more > 0 else ""]


def _gives_to_claims(cluster: Cluster, name: str) -> bool:
    """Whether a driver publishes devices of the node: its GPUs are then given to resource claims."""
    row = cluster.row_of.get(name)
    return row is not None and bool(cluster.dra.pools.on(row))


def _allowed(cluster: Cluster, ask: Ask, names: Iterable[str]) -> list[str]:
    rows = {cluster.row_of[name]: name for name in names if name in cluster.row_of}
    return [rows[row] for row in feasible_rows(cluster, ask, np.array(sorted(rows), np.int64)).tolist()] if rows else []
