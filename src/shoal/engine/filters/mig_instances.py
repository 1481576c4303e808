"""Filters nodes for requests of parts of GPUs: MIG instances under the name of whole GPUs cannot be divided."""

from __future__ import annotations

import numpy as np

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import PARTS
from shoal.engine.filters.rule import Rows, Verdicts
from shoal.engine.reasons import Code


class MigInstances:
    code = Code.INSTANCES

    def passes(self, cluster: Cluster, ask: Ask, rows: Rows) -> Verdicts | None:
        if not cluster.devices.mig_single or not isinstance(ask.devices, PARTS):
            return None
        return ~np.isin(rows, list(cluster.devices.mig_single))

    def detail(self, _cluster: Cluster, _ask: Ask, _row: int) -> str:
        return ""
