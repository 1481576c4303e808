"""Fits requests for whole GPUs, the most common ones, and for replicas, where a node advertises its GPUs more than
once.

On a plain node the empty devices of lowest number will do. Where the wiring is known the best-connected set is taken,
and conditions about islands and NUMA nodes hold (`wiring`).
"""

from __future__ import annotations

from shoal.engine.device_demand import FULL_MILLI, DeviceGrant, WholeGpus, compute_grant
from shoal.engine.devices.columns import DeviceColumns, Ints
from shoal.engine.devices.interconnect import best_connected, most_together
from shoal.engine.devices.kind import DevicePositions
from shoal.engine.devices.node_devices import NodeDeviceState
from shoal.engine.devices.replicas import forced_replicas, held_replicas, spread_replicas
from shoal.engine.facts import GPU_MILLI, GPU_WHOLE


def first_empty(compute: list[int], count: int) -> DeviceGrant | None:
    """So many empty devices of lowest number."""
    if count == 1:
        return compute_grant((compute.index(FULL_MILLI),), FULL_MILLI) if FULL_MILLI in compute else None
    empty = [device for device, left in enumerate(compute) if left == FULL_MILLI]
    return compute_grant(tuple(empty[:count]), FULL_MILLI) if len(empty) >= count else None


class Whole:
    def least(self, demand: WholeGpus) -> dict[int, int]:
        return {GPU_WHOLE: demand.count}

    def charged(self, demand: WholeGpus) -> dict[int, int]:
        return {GPU_MILLI: demand.count * FULL_MILLI}

    def tightest(self, bench: NodeDeviceState, demand: WholeGpus) -> DeviceGrant | None:
        count = demand.count
        if bench.is_plain and not (demand.island or demand.numa):
            return first_empty(bench.compute, count)
        layout = bench.layout
        if layout.renamed or (layout.one_per_request and count > 1):
            return None
        chosen = best_connected(bench, bench.units(), demand)
        if chosen is None:
            return None
        return spread_replicas(bench, chosen, count) if bench.is_replicated else compute_grant(chosen, FULL_MILLI)

    def forced(self, bench: NodeDeviceState, demand: WholeGpus) -> DeviceGrant:
        if bench.is_replicated:
            return forced_replicas(bench, range(bench.count), demand.count)
        return compute_grant(bench.emptiest(demand.count), FULL_MILLI)

    def held(self, bench: NodeDeviceState, demand: WholeGpus, positions: DevicePositions) -> DeviceGrant | None:
        devices = tuple(sorted({device for device, _ in positions}))
        if bench.is_replicated:
            return held_replicas(bench, positions, demand.count)
        return compute_grant(devices, FULL_MILLI) if len(devices) == demand.count else None

    def asked(self, demand: WholeGpus) -> int:
        return demand.count

    def capacity(self, columns: DeviceColumns, demand: WholeGpus) -> Ints:
        return most_together(columns, columns.units(), demand)

    def most(self, columns: DeviceColumns, demand: WholeGpus) -> Ints:
        return most_together(columns, columns.most_units(), demand)

    def lack(self, demand: WholeGpus) -> tuple[str, str]:
        place = "one island" if demand.island else "one NUMA node" if demand.numa else "NUMA nodes as the kubelet wants"
        return f"{demand.count} empty GPUs together on {place}", f"empty GPUs on {place}"
