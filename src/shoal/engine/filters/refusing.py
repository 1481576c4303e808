"""A node whose kubelet refused a pod that was bound to it takes no new pods until something is seen to change there.

The kubelet knew more than the facts did: another scheduler filled the node, or its devices do not work. Pod after pod
would fail on it for good.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.filters.rule import Rows, Verdicts
from shoal.engine.reasons import Code


class Refusing:
    code = Code.REFUSING

    def passes(self, cluster: Cluster, _ask: Ask, rows: Rows) -> Verdicts | None:
        return ~np.isin(rows, list(cluster.refusing)) if cluster.refusing else None

    def detail(self, _cluster: Cluster, _ask: Ask, _row: int) -> str:
        return ""
