"""Prefers nodes whose power rises least by the placement, alone (PWR) or beside Shoal's own loss.

Points are minus the rise in watts, on a fixed scale: PWR as published rescales over the nodes that fit, so one node's
change would change them all. A share counts as free of charge where it fits beside others on a GPU in use.

Beside the loss a watt has a price in worth: 1 milli of GPU while half of the fleet or more is free, and from there in
proportion to what is free. While there is plenty, waking the wrong machine is what hurts, and later moves cannot undo
it; near full every machine runs anyway and packing is what matters. A constant price saves no more and costs half a
point of allocation. The price follows the worth tables' own renewals, so that within an epoch keys stay valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from shoal.engine import facts
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import FULL_MILLI, GpuShare, WholeGpus
from shoal.engine.power import (
    GPU_WATTS,
    SOCKET_ACTIVE_WATTS,
    SOCKET_IDLE_WATTS,
    NodePower,
    Watts,
    active_sockets,
)
from shoal.engine.scores.rule import NodeRule, Points, Rows
from shoal.engine.scores.worth import LeastLoss
from shoal.engine.window import Window
from shoal.engine.worth.tables import UNIT_BITS, UNITS


class PowerRise:
    """Minus the watts that the placement adds, times `units_per_watt` / 1024."""

    def __init__(self, cluster: Cluster, table: Mapping[str, Watts] = GPU_WATTS) -> None:
        self._power = NodePower(cluster, table)
        self.units_per_watt = UNITS

    def compiled(self, cluster: Cluster, ask: Ask) -> NodeRule | None:
        cpu_milli = ask.request("cpu")
        if cpu_milli == 0 and ask.devices is None:
            return None

        def points(window: Window) -> Points:
            used = cluster.total[window.rows, facts.CPU] - cluster.free[window.rows, facts.CPU]
            watts: Points = active_sockets(used + cpu_milli) - active_sockets(used)
            watts *= SOCKET_ACTIVE_WATTS - SOCKET_IDLE_WATTS
            match ask.devices:
                case WholeGpus(count):
                    watts += count * self._power.rise(window.rows)
                case GpuShare(milli):
                    watts += self._power.rise(window.rows) * _opens(window, milli)
            watts *= -self.units_per_watt
            watts += UNITS // 2
            result: Points = watts >> UNIT_BITS
            return result

        return points


def _opens(window: Window, milli: int) -> Rows:
    """1 where the share fits on no GPU in use, so that an idle one wakes."""
    compute = window.compute
    beside = (compute >= milli) & (compute < FULL_MILLI)
    opens: Rows = np.equal(np.count_nonzero(beside, axis=1), 0).astype(np.int64)
    return opens


@dataclass(frozen=True, slots=True)
class PowerPrice:
    """What a watt is worth in thousandths of a GPU, and the free share of the fleet below which it falls."""

    milli_per_watt: float = 1.0
    falls_below_free: float = 0.5


class PricedPower:
    """`loss` and the rise in power, both in the loss's steps; the price is set anew with the loss's tables."""

    def __init__(self, cluster: Cluster, loss: LeastLoss, price: PowerPrice | None = None) -> None:
        self.loss = loss
        self.rise = PowerRise(cluster)
        self._cluster = cluster
        self._price = price or PowerPrice()
        self._epoch = 0

    def renewed(self) -> int:
        """Follow the fleet; the number changes when keys made before are stale."""
        epoch = self.loss.renewed()
        if epoch != self._epoch:
            self._epoch = epoch
            self.rise.units_per_watt = self._units_per_watt()
        return epoch

    def _units_per_watt(self) -> int:
        cluster = self._cluster
        capacity = int(cluster.total[: cluster.rows, facts.GPU_MILLI].sum())
        free = cluster.gpu_free_milli / capacity if capacity else 0.0
        price = self._price
        milli = price.milli_per_watt * min(max(free, 0.0) / price.falls_below_free, 1.0)
        return round(milli * self.loss.tables.units_per_milli)
