"""Fits requests for virtual GPUs as HAMi defines them: a slot on a device, some of its memory, and optionally a limit
of its cores.

Slots, memory and cores are counted apart. HAMi's two odd rules hold: all cores means the device to oneself, and a pod
without a limit of cores does not join a device whose cores are all given away.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.device_demand import CORES, FULL_MILLI, MEMORY, SLOTS, DeviceGrant, VirtualGpus, plane_grant
from shoal.engine.devices.columns import DeviceColumns, Ints, Verdicts, how_many, parts
from shoal.engine.devices.kind import DevicePositions
from shoal.engine.devices.node_devices import NodeDeviceState, memory_fits, tightest


class VirtualKind:
    def least(self, _demand: VirtualGpus) -> dict[int, int]:
        return {}

    def charged(self, _demand: VirtualGpus) -> dict[int, int]:
        return {}

    def tightest(self, bench: NodeDeviceState, demand: VirtualGpus) -> DeviceGrant | None:
        layout = bench.layout
        mib = memory_of(demand, layout.memory_mib)
        cores_milli = demand.cores_percent * 10
        memory, cores = bench.taken(MEMORY), bench.taken(CORES)
        compute, unshared = bench.compute, bench.unshared()
        slots = bench.free_slots()
        fitting = [
            device
            for device in range(bench.count)
            if slots[device] > 0
            and memory_fits(unshared[device], memory[device], mib, layout.memory_mib)
            and cores[device] + max(cores_milli, 1) <= unshared[device]
            and (cores_milli < FULL_MILLI or compute[device] == FULL_MILLI)
        ]
        devices = tightest(compute, fitting, demand.count)
        return None if devices is None else _grant(devices, mib, cores_milli)

    def forced(self, bench: NodeDeviceState, demand: VirtualGpus) -> DeviceGrant:
        mib = memory_of(demand, bench.layout.memory_mib)
        return _grant(bench.emptiest(demand.count), mib, demand.cores_percent * 10)

    def held(self, bench: NodeDeviceState, demand: VirtualGpus, positions: DevicePositions) -> DeviceGrant | None:
        devices = tuple(sorted({device for device, _ in positions}))
        if len(devices) != demand.count:
            return None
        return _grant(devices, memory_of(demand, bench.layout.memory_mib), demand.cores_percent * 10)

    def asked(self, demand: VirtualGpus) -> int:
        return demand.count

    def capacity(self, columns: DeviceColumns, demand: VirtualGpus) -> Ints:
        whole = columns.memory_mib
        compute, unshared = columns.compute, columns.unshared()
        cores = columns.taken(CORES)
        cores_milli = demand.cores_percent * 10
        fits: Verdicts = parts(columns.taken(MEMORY) + _memory(demand, whole), whole) <= unshared
        fits &= (whole > 0) & (columns.free_slots() > 0)
        fits &= cores + max(cores_milli, 1) <= unshared
        if cores_milli >= FULL_MILLI:
            fits &= compute == FULL_MILLI
        return how_many(fits & columns.exists)

    def most(self, columns: DeviceColumns, demand: VirtualGpus) -> Ints:
        whole = columns.memory_mib
        fits = (columns.empty == FULL_MILLI) & (whole > 0) & (_memory(demand, whole) <= whole)
        return how_many(fits)

    def lack(self, demand: VirtualGpus) -> tuple[str, str]:
        memory = f"{demand.mib} MiB" if demand.mib else f"{demand.percent} % of the memory"
        cores = f", {demand.cores_percent} % of the cores" if demand.cores_percent else ""
        what = f"{memory}{cores} and a slot free"
        unit = f"GPUs with {what}"
        return f"a GPU with {what}" if demand.count == 1 else f"{demand.count} {unit}", unit


def memory_of(demand: VirtualGpus, memory_mib: int) -> int:
    """MiB that the demand takes of a device of this size."""
    return demand.mib or memory_mib * demand.percent // 100


def _memory(demand: VirtualGpus, memory_mib: Ints) -> Ints:
    return np.full_like(memory_mib, demand.mib) if demand.mib else memory_mib * demand.percent // 100


def _grant(devices: tuple[int, ...], mib: int, cores_milli: int) -> DeviceGrant:
    each = [(SLOTS, 1), *([(MEMORY, mib)] if mib else []), *([(CORES, cores_milli)] if cores_milli else [])]
    return plane_grant(tuple((device, plane, amount) for device in devices for plane, amount in each))
