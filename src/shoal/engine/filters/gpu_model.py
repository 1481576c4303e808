"""Excludes nodes without one of the GPU models that a pod accepts. A model that no node has matches nothing; it is no
error.
"""

from __future__ import annotations

from shoal.api.requirement import Requirement
from shoal.engine.asks import Ask
from shoal.engine.cluster import GPU_MODEL_LABEL, Cluster
from shoal.engine.filters.rule import Rows, Verdicts
from shoal.engine.reasons import Code


class GpuModel:
    code = Code.GPU_MODEL

    def passes(self, cluster: Cluster, ask: Ask, rows: Rows) -> Verdicts | None:
        if not ask.gpu_models:
            return None
        wanted = Requirement(key=GPU_MODEL_LABEL, operator="In", values=tuple(sorted(ask.gpu_models)))
        return cluster.labels.satisfies(wanted, rows)

    def detail(self, _cluster: Cluster, ask: Ask, _row: int) -> str:
        return "|".join(sorted(ask.gpu_models))
