"""Filters nodes by device capacity, for requests of which the record has only a part.

Fractions on several devices, memory, virtual GPUs, renamed replicas, several MIG profiles at once: each kind says how
much it asks for and how much a row has. Plain whole-GPU and share asks have no rule here, and pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import Demand, WholeGpus
from shoal.engine.devices.columns import DeviceColumns
from shoal.engine.devices.kinds import kind_of
from shoal.engine.filters.rule import Measure, Rows, Verdicts
from shoal.engine.reasons import Code
from shoal.engine.window import Window


class DeviceCapacity:
    code = Code.NO_DEVICE

    def compiled(self, cluster: Cluster, ask: Ask) -> Callable[[Window], Verdicts] | None:
        demand = ask.devices
        if demand is None or isinstance(demand, WholeGpus):
            return None
        kind = kind_of(demand)
        asked = kind.asked(demand)
        if asked == 0:
            return None
        devices = cluster.devices
        return lambda window: kind.capacity(DeviceColumns(devices, window.rows), demand) >= asked

    def detail(self, _cluster: Cluster, ask: Ask, _row: int) -> str:
        return "" if ask.devices is None else kind_of(ask.devices).lack(ask.devices)[0]

    def measure(self, cluster: Cluster, ask: Ask, rows: Rows) -> Measure | None:
        return None if ask.devices is None else measured(cluster, ask.devices, rows)


def measured(cluster: Cluster, demand: Demand, rows: Rows) -> Measure:
    """What the rows have of what the demand asks for."""
    kind = kind_of(demand)
    columns = DeviceColumns(cluster.devices, rows)
    return Measure(kind.lack(demand)[1], kind.asked(demand), kind.capacity(columns, demand), kind.most(columns, demand))
