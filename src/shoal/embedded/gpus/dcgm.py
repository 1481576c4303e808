"""Writes the exposition text of a simulated node's DCGM exporter, for Prometheus.

The text is that of a node agent, computed from what the simulated driver reports. The rows of an allocated GPU have the
pod's name. On a shared GPU every pod has its own rows, which differ in the label `vgpu`; load and memory also have a
row for the whole GPU. A GPU that has fallen off the bus shows only its Xid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from shoal.devices.claimable_gpus import PoolOfNode
from shoal.devices.dcgm_exposition import Exposition, GpuState, NodeNames, PodUse, PodUses, mig_devices
from shoal.devices.dcgm_fields import DEFAULT
from shoal.devices.dcgm_holders import ContainerHolding, DeviceHolders, HolderOptions
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.names import GPU, MIG_PREFIX
from shoal.devices.port import GpuReadings
from shoal.embedded.gpus.simulated_driver import SimulatedDriver
from shoal.embedded.gpus.usage_counters import UsageCounters

_PROFILED_BY_DCGM = 7
"""DCGM reads the performance counters of Volta and later."""


class PodName(NamedTuple):
    namespace: str
    name: str


class DcgmExporter(UsageCounters):
    """The counters of the node, and its exporter."""

    def text(self, pods: Mapping[str, PodName], at_s: float) -> str:
        """`pods`: by uid; the rows of other pods have no name."""
        driver = SimulatedDriver(self._device_manager, self, lambda: at_s, profiled_from=_PROFILED_BY_DCGM)
        states = [self._state(driver, slot, pods) for slot in self._device_manager.machine.gpus]
        holdings = list(self._holdings(pods))
        shared = {
            one.resource
            for one in holdings
            if one.resource and one.resource != GPU and not one.resource.startswith(MIG_PREFIX)
        }
        options = HolderOptions(has_virtual_gpus=True, resource_names=tuple(sorted(shared)))
        mig = mig_devices(state.gpu for state in states)
        names = NodeNames(self._device_manager.machine.name, self._device_manager.software.driver)
        pool = PoolOfNode(self._device_manager.machine.name, self._device_manager.reported)
        holders = DeviceHolders(holdings, options, mig, pool.find)
        lines = Exposition(states, holders, options, names, DEFAULT).lines()
        return "".join(f"{line}\n" for line in lines)

    def _holdings(self, pods: Mapping[str, PodName]) -> Iterator[ContainerHolding]:
        for uid, held in self._device_manager.held():
            pod = pods.get(uid)
            if pod is None:
                continue
            for one in held:
                by_claims = self._device_manager.claimed(uid)
                ids = tuple(device.id for device in one.devices if device.id not in by_claims)
                claimed = tuple(by_claims[device.id] for device in one.devices if device.id in by_claims)
                resource = one.resource if ids else ""
                yield ContainerHolding(pod.name, pod.namespace, one.container, resource, ids, uid, claimed=claimed)

    def _state(self, driver: SimulatedDriver, slot: GpuSlot, pods: Mapping[str, PodName]) -> GpuState:
        readings = driver.read(slot.uuid)
        fault = self._device_manager.xid(slot.index)
        return GpuState(
            gpu=self._device_manager.reported[slot.index],
            readings=readings if isinstance(readings, GpuReadings) else None,
            xid=fault.number if fault is not None else 0,
            uses=PodUses(dict(self._uses(slot, pods))),
        )

    def _uses(self, slot: GpuSlot, pods: Mapping[str, PodName]) -> Iterator[tuple[tuple[str, str, str], PodUse]]:
        """The part of each pod with one program on the GPU or an instance of it."""
        programs = self._device_manager.programs
        for uuid in (slot.uuid, *(one.uuid for one in self._device_manager.gpus[slot.index].cuts)):
            for uid in dict.fromkeys(program.uid for program in programs.on(uuid)):
                own = [program for program in programs.on(uuid) if program.uid == uid]
                memory = (part.memory_mib for one in own for part in one.slots if part.device.physical == uuid)
                util = sum(programs.share(one, uuid) for one in own)
                if uid in pods:
                    yield (uuid, *pods[uid]), PodUse(round(100 * util), sum(memory))
