"""Excludes nodes with taints of effect NoSchedule or NoExecute that a pod does not tolerate.

Nodes share few distinct sets of taints; each set is judged once per ask and looked up for all nodes.
"""

from __future__ import annotations

import numpy as np

from shoal.api.taints import untolerated
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.filters.rule import Rows, Verdicts
from shoal.engine.filters.shared_gpus import tolerations_of
from shoal.engine.reasons import Code


class Taints:
    code = Code.TAINTED

    def passes(self, cluster: Cluster, ask: Ask, rows: Rows) -> Verdicts | None:
        tolerations = tolerations_of(ask)
        tolerated = np.fromiter(
            (untolerated(taints, tolerations) is None for taints in cluster.taints.sets),
            np.bool_,
            len(cluster.taints.sets),
        )
        if tolerated.all():
            return None
        return tolerated.take(cluster.taints.code.take(rows))

    def detail(self, cluster: Cluster, ask: Ask, row: int) -> str:
        taint = untolerated(cluster.taints.of(row), tolerations_of(ask))
        return "" if taint is None else f"{taint.key}: {taint.value}"
