"""Determines the sets of devices within which a request for whole GPUs must stay: one island, or what the kubelet
admits.

The kubelet's Topology Manager judges a pod after it was bound, and fails it for good. Its rule is repeated here so that
such a pod is not bound: `single-numa-node` admits what lies on one NUMA node; `restricted` what lies on as few as the
machine could do with, were it empty; the other policies admit everything. Devices and cores whose NUMA node is
unknown are not checked, as in the kubelet. The largest number of cores that one NUMA node has counts,
not how many of them are free: which cores are pinned is known to the kubelet alone.

The same rule is written here twice, for one row in Python and for many in numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from shoal.devices.closeness import closest, grouped, spread
from shoal.devices.layout import Layout
from shoal.engine.device_demand import WholeGpus
from shoal.engine.devices.columns import DeviceColumns, Ints
from shoal.engine.devices.node_devices import NodeDeviceState
from shoal.engine.devices.planes import MOST_NUMA, DevicePlanes


def is_bound_to_places(planes: DevicePlanes, demand: WholeGpus) -> bool:
    """Whether some node may refuse the ask for where its devices lie."""
    if demand.island or demand.numa:
        return demand.count > 1 or bool(demand.cores_milli)
    return bool(planes.strict) and (demand.count > 1 or demand.cores_milli > 0)


def best_connected(bench: NodeDeviceState, units: Sequence[int], demand: WholeGpus) -> tuple[int, ...] | None:
    """The devices to take; of devices that come in several units, those among which to choose."""
    layout = bench.layout
    usable = [device for device, free in enumerate(units) if free > 0]
    levels = (layout.islands, layout.numa)
    chosen = [
        closest(devices, demand.count, levels) if max(units) == 1 else tuple(devices)
        for devices in allowed(layout, bench.count, usable, demand)
        if sum(units[device] for device in devices) >= demand.count
    ]
    if not chosen:
        return None
    return min(chosen, key=lambda devices: (*(spread(devices, labels) for labels in levels), devices))


def allowed(layout: Layout, count: int, usable: Sequence[int], demand: WholeGpus) -> Iterator[Sequence[int]]:
    """The sets of usable devices within which the ask may lie; they may overlap."""
    across = _numa_width(layout, count, demand)
    islands = grouped(usable, layout.islands) if demand.island else [usable]
    for devices in islands:
        if across == 0:
            yield devices
            continue
        for nodes in combinations(_numa_nodes(layout, demand.cores_milli if across == 1 else 0), across):
            yield [device for device in devices if device < len(layout.numa) and layout.numa[device] in nodes]


def _numa_width(layout: Layout, count: int, demand: WholeGpus) -> int:
    """Over how many NUMA nodes the ask may lie at most; zero without a limit."""
    if demand.count == 1 and not (demand.cores_milli and layout.knows_numa()):
        return 0
    if demand.numa or (layout.is_strict() and layout.numa_policy == "single-numa-node"):
        return 1
    if not layout.is_strict():
        return 0
    by_node = [0] * MOST_NUMA
    for device in range(min(count, len(layout.numa))):
        if layout.numa[device] >= 0 and device not in layout.mig_devices and device not in layout.broken:
            by_node[layout.numa[device]] += layout.replicas
    by_node.sort(reverse=True)
    return next((width for width in range(1, MOST_NUMA + 1) if sum(by_node[:width]) >= demand.count), MOST_NUMA)


def _numa_nodes(layout: Layout, cores_milli: int) -> list[int]:
    """The NUMA nodes that have devices, and cores enough where that is known."""
    cores = layout.numa_cores_milli
    return [
        node
        for node in sorted({node for node in layout.numa if node >= 0})
        if node >= len(cores) or cores[node] < 0 or cores[node] >= cores_milli
    ]


def most_together(columns: DeviceColumns, units: Ints, demand: WholeGpus) -> Ints:
    """The most units that each row has in one of the sets in which the ask may lie."""
    planes, rows = columns.planes, columns.rows
    numa = planes.numa.take(rows, axis=0)
    width = _numa_widths(columns, numa, demand)
    best = np.zeros(len(rows), np.int64)
    for inside in _islands(columns, demand):
        there = np.where(inside, units, 0)
        free = width == 0
        if free.any():
            best = np.where(free, np.maximum(best, there.sum(axis=1)), best)
        for across in np.unique(width[~free]).tolist():
            by_node = _by_node(there, numa)
            if across == 1 and demand.cores_milli:
                cores = planes.numa_cores_milli.take(rows, axis=0)
                by_node[(cores >= 0) & (cores < demand.cores_milli)] = 0
            # The fullest nodes together are the best set of that width.
            sums = -np.sort(-by_node, axis=1)[:, :across].sum(axis=1)
            best = np.where(width == across, np.maximum(best, sums), best)
    return best


def _islands(columns: DeviceColumns, demand: WholeGpus) -> Iterator[np.ndarray]:
    """Per island, which devices are on it; one set of all where islands do not matter."""
    islands = columns.planes.islands.take(columns.rows, axis=0)
    if not demand.island:
        yield np.ones(islands.shape, np.bool_)
        return
    for island in range(int(islands.max(initial=-1)) + 1):
        yield islands == island
    if demand.count == 1:
        yield islands < 0


def _numa_widths(columns: DeviceColumns, numa: np.ndarray, demand: WholeGpus) -> Ints:
    """`_numa_width` of every row."""
    planes, rows = columns.planes, columns.rows
    known = (numa >= 0).any(axis=1)
    nothing = np.zeros(len(rows), np.int64)
    if demand.count == 1 and not demand.cores_milli:
        return nothing
    if demand.numa:
        return np.where(known, 1, 1 if demand.count > 1 else 0).astype(np.int64)
    if not planes.strict:
        return nothing
    policies = [(row, layout.numa_policy == "single-numa-node") for row, layout in planes.strict.items()]
    single = np.isin(rows, [row for row, is_single in policies if is_single])
    restricted = np.isin(rows, [row for row, is_single in policies if not is_single])
    if restricted.any():
        capacity = -np.sort(-_by_node(columns.most_units(), numa), axis=1)
        reached = np.cumsum(capacity, axis=1) >= demand.count
        fewest = np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, MOST_NUMA)
        restricted_width = np.where(restricted & known, fewest, 0)
    else:
        restricted_width = nothing
    return np.where(single & known, 1, restricted_width).astype(np.int64)


def _by_node(units: Ints, numa: np.ndarray) -> Ints:
    """Units per NUMA node."""
    result = np.zeros((len(units), MOST_NUMA), np.int64)
    for node in range(int(numa.max(initial=-1)) + 1):
        result[:, node] = np.where(numa == node, units, 0).sum(axis=1)
    return result
