"""Excludes all nodes except the one that a pod names outright (older DaemonSet pods, debugging)."""

from __future__ import annotations

import numpy as np

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.filters.rule import Rows, Verdicts
from shoal.engine.reasons import Code


class NodeName:
    code = Code.NODE_NAME

    def passes(self, cluster: Cluster, ask: Ask, rows: Rows) -> Verdicts | None:
        if not ask.node_name:
            return None
        return np.equal(rows, cluster.row_of.get(ask.node_name, -1))

    def detail(self, _cluster: Cluster, ask: Ask, _row: int) -> str:
        return ask.node_name
