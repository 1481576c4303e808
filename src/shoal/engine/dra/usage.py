"""Tracks which devices are allocated, and what is left of shared counters and capacities.

Kept as the list of what was taken from each device, never as running sums: giving back is then exact by construction,
also where facts contradict each other and one device was given away twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.engine.dra.devices import Amounts, pool_of
from shoal.engine.dra.pools import Pools
from shoal.engine.dra.requests import Picks


class Usage:
    """What claims hold."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._shares: dict[str, dict[str, list[Amounts]]] = {}
        """Pool -> device -> one entry per claim that has it."""

    def take(self, picks: Picks) -> None:
        for pick in picks:
            if not pick.admin:
                self._shares.setdefault(pool_of(pick.device), {}).setdefault(pick.device, []).append(pick.share)

    def give(self, picks: Picks) -> None:
        """Exactly undo `take`; the order of entries carries no meaning."""
        for pick in picks:
            if pick.admin:
                continue
            of_pool = self._shares[pool_of(pick.device)]
            shares = of_pool[pick.device]
            shares.remove(pick.share)
            if not shares:
                del of_pool[pick.device]
                if not of_pool:
                    del self._shares[pool_of(pick.device)]

    def shares(self, device: str) -> list[Amounts]:
        """What each of its claims took of a device; empty if it is not allocated."""
        return self._shares.get(pool_of(device), {}).get(device, [])

    def counters_left(self, pool: str) -> dict[tuple[str, str], int]:
        """What devices in use leave of a pool's counters; below zero where facts contradict each other."""
        left = dict(self._pools.counters(pool))
        for taken in self._shares.get(pool, {}):
            device = self._pools.find(taken)
            if device is not None:
                for consumption in device.facts.consumes:
                    for counter, amount in consumption.counters:
                        key = consumption.counter_set, counter
                        left[key] = left.get(key, 0) - amount
        return left

    def in_use(self) -> Mapping[str, list[Amounts]]:
        """A copy for comparison, by device."""
        return {
            device: sorted(shares)
            for _, of_pool in sorted(self._shares.items())
            for device, shares in sorted(of_pool.items())
        }
