"""The GPUs of this machine for the kubelet: what the node advertises, and which pod has which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.devices.advertised_devices import PhysicalDevice, inventory
from shoal.devices.allocation import AllocationRules, DeviceAllocation, HeldDevices
from shoal.devices.discovered import layouts_of, slots_of
from shoal.devices.gpu_groups import pair_scores
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.pod_refusal import Refused
from shoal.devices.port import GpuDriver

Obj = dict[str, Any]


class HeldIds(msgspec.Struct, frozen=True):
    """The devices of one container, as they are stored."""

    container: str
    resource: str
    ids: tuple[str, ...]


class NodeGpus:
    """Whole GPUs or MIG instances of a driver, as the device plugin advertises them without a configuration; none
    without a driver."""

    def __init__(self, driver: GpuDriver | None) -> None:
        self._pool: Mapping[str, tuple[PhysicalDevice, ...]] = {}
        self._rules = AllocationRules()
        lost: frozenset[int] = frozenset()
        if driver is not None:
            listed = driver.gpus()
            lost = frozenset(one.index for one in listed.lost)
            slots = slots_of(listed.gpus)
            self._pool = inventory(slots, layouts_of(listed.gpus), PluginConfig()).devices
            self._rules = AllocationRules(scores=pair_scores(listed.gpus))
        self._allocation = DeviceAllocation(lambda gpu: gpu not in lost)

    def amounts(self) -> dict[str, str]:
        return {name: str(len(devices)) for name, devices in self._pool.items()}

    def admit(self, pod: Obj) -> Refused | None:
        found = self._allocation.admit(pod, self._pool, self._rules)
        return found if isinstance(found, Refused) else None

    def held(self, uid: str) -> tuple[HeldIds, ...]:
        return tuple(
            HeldIds(one.container, one.resource, tuple(device.id for device in one.devices))
            for one in self._allocation.of(uid)
        )

    def restore(self, uid: str, held: Sequence[HeldIds]) -> None:
        """Give a running pod the devices that it has."""
        found = []
        for one in held:
            by_id = {device.id: device for device in self._pool.get(one.resource, ())}
            devices = tuple(by_id[each] for each in one.ids if each in by_id)
            found.append(HeldDevices(one.container, one.resource, devices))
        if found:
            self._allocation.restore(uid, found)

    def release(self, uid: str) -> None:
        self._allocation.release(uid)

    def devices(self, uid: str, container: str) -> tuple[PhysicalDevice, ...]:
        held = (one for one in self._allocation.of(uid) if one.container == container)
        return tuple(device for one in held for device in one.devices)

    def environment(self, uid: str, container: str) -> dict[str, str]:
        """The variables by which CUDA and NVIDIA's tools see the devices of a container, and no others."""
        ids = [device.physical for device in self.devices(uid, container)]
        listed = ",".join(dict.fromkeys(ids))
        return {"CUDA_VISIBLE_DEVICES": listed, "NVIDIA_VISIBLE_DEVICES": listed or "void"}
