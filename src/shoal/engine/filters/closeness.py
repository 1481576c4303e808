"""Excludes nodes where whole GPUs cannot be together on one island or NUMA node, as the pod or the kubelet requires.

Nodes with too few GPUs in the first place are none of its business: the fused record turns those away.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import WholeGpus
from shoal.engine.devices.columns import DeviceColumns
from shoal.engine.devices.interconnect import is_bound_to_places, most_together
from shoal.engine.devices.kinds import kind_of
from shoal.engine.filters.device_capacity import measured
from shoal.engine.filters.rule import Measure, Rows, Verdicts
from shoal.engine.reasons import Code
from shoal.engine.window import Window


class Closeness:
    code = Code.FAR_APART

    def compiled(self, cluster: Cluster, ask: Ask) -> Callable[[Window], Verdicts | None] | None:
        demand = ask.devices
        if not isinstance(demand, WholeGpus) or (demand.count == 1 and not demand.cores_milli):
            return None
        devices = cluster.devices

        def passes(window: Window) -> Verdicts | None:
            # Kubelets that insist may come and go while the rule stays.
            if not is_bound_to_places(devices, demand):
                return None
            columns = DeviceColumns(devices, window.rows)
            units = columns.units()
            verdicts: Verdicts = most_together(columns, units, demand) >= demand.count
            verdicts |= units.sum(axis=1) < demand.count
            return verdicts

        return passes

    def detail(self, _cluster: Cluster, ask: Ask, _row: int) -> str:
        return "" if ask.devices is None else kind_of(ask.devices).lack(ask.devices)[0]

    def measure(self, cluster: Cluster, ask: Ask, rows: Rows) -> Measure | None:
        return None if ask.devices is None else measured(cluster, ask.devices, rows)
