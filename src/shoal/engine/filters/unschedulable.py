"""Excludes cordoned nodes, unless a pod tolerates the taint of the cordon."""

from __future__ import annotations

from shoal.api.taints import UNSCHEDULABLE
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.filters.rule import Rows, Verdicts
from shoal.engine.reasons import Code


class Unschedulable:
    code = Code.UNSCHEDULABLE

    def passes(self, cluster: Cluster, ask: Ask, rows: Rows) -> Verdicts | None:
        if any(toleration.tolerates(UNSCHEDULABLE) for toleration in ask.tolerations):
            return None
        return ~cluster.unschedulable.take(rows)

    def detail(self, _cluster: Cluster, _ask: Ask, _row: int) -> str:
        return ""
