"""Computes how much of each GPU and MIG device the pods of its processes use."""

from __future__ import annotations

from collections.abc import Callable

from shoal.agent.exporter.process_owners import PodOfProcess
from shoal.devices.dcgm_exposition import PodUse, PodUses
from shoal.devices.port import GpuReadings, InstalledGpu


def pod_uses(gpu: InstalledGpu, readings: GpuReadings, pod_of: Callable[[int], PodOfProcess | None]) -> PodUses | None:
    """None if the driver does not list the processes."""
    if readings.processes is None:
        return None
    instances = {one.instance: one.uuid for one in gpu.instances}
    found: dict[tuple[str, str, str], PodUse] = {}
    is_complete = True
    for process in readings.processes:
        pod = pod_of(process.pid)
        device = gpu.uuid if process.instance is None else instances.get(process.instance)
        if pod is None or device is None:
            is_complete = False
            continue
        key = (device, pod.namespace, pod.name)
        before = found.get(key, PodUse())
        found[key] = PodUse(
            util_percent=_sum(before.util_percent, process.util_percent),
            used_mib=_sum(before.used_mib, process.memory_mib),
        )
    return PodUses(found, is_complete)


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
