"""Excludes nodes whose kubelet refused a pod, for pods that request as much, for a while (see `admission_failures`)."""

from __future__ import annotations

import numpy as np

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.filters.rule import Rows, Verdicts
from shoal.engine.reasons import Code


class KubeletRefusals:
    code = Code.REFUSING

    def passes(self, cluster: Cluster, ask: Ask, rows: Rows) -> Verdicts | None:
        against = cluster.refusing.rows_against(ask)
        return ~np.isin(rows, against) if against else None

    def detail(self, _cluster: Cluster, _ask: Ask, _row: int) -> str:
        return ""
