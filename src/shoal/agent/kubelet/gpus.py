"""The GPUs of this machine for the kubelet: what the node advertises, and which pod has which.

Guarantees: a device that is not healthy is given to no pod, and returns when it is healthy again; pods that have it
keep it. A device that a stored pod has is not given to another one, also if the driver lists it only later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from shoal.devices.advertised_devices import PhysicalDevice, inventory
from shoal.devices.allocation import AllocationRules, DeviceAllocation, HeldDevices
from shoal.devices.discovered import layouts_of, slots_of
from shoal.devices.gpu_groups import pair_scores
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.pod_refusal import Refused
from shoal.devices.port import InstalledGpu

Obj = dict[str, Any]
CONFIG = PluginConfig(mig_strategy="mixed")
"""Whole GPUs, and the instances of GPUs in MIG mode. Rejected: the device plugin's usual strategy, by which a pod gets
a GPU in MIG mode, of which programs see one instance."""


class HeldIds(msgspec.Struct, frozen=True):
    """The devices of one container, as they are stored."""

    container: str
    resource: str
    ids: tuple[str, ...]


class KnownGpus(Protocol):
    """The GPUs of a machine with their health."""

    def gpus(self) -> Sequence[InstalledGpu]:
        """As they were listed last, also those that are lost."""
        ...

    def is_usable(self, uuid: str, instance: int | None = None) -> bool: ...


class NodeGpus:
    """Whole GPUs and MIG instances, as the device plugin advertises them with `CONFIG`; none without a driver."""

    def __init__(self, known: KnownGpus | None) -> None:
        self._known = known
        self._listed: tuple[InstalledGpu, ...] = ()
        self._pool: Mapping[str, tuple[PhysicalDevice, ...]] = {}
        self._rules = AllocationRules()
        self._unknown: dict[str, tuple[HeldIds, ...]] = {}
        """What stored pods have, of pods with devices that were not listed yet."""
        self._allocation = DeviceAllocation(self._is_usable)
        self._look()

    def capacity(self) -> dict[str, str]:
        self._look()
        return {name: str(len(devices)) for name, devices in self._pool.items()}

    def allocatable(self) -> dict[str, str]:
        """Without the devices that are not healthy now."""
        self._look()
        return {name: str(len(self._allocation.healthy(devices))) for name, devices in self._pool.items()}

    def admit(self, pod: Obj) -> Refused | None:
        self._look()
        found = self._allocation.admit(pod, self._pool, self._rules)
        return found if isinstance(found, Refused) else None

    def held(self, uid: str) -> tuple[HeldIds, ...]:
        return self._unknown.get(uid) or tuple(
            HeldIds(one.container, one.resource, tuple(device.id for device in one.devices))
            for one in self._allocation.of(uid)
        )

    def restore(self, uid: str, held: Sequence[HeldIds]) -> None:
        """Give a running pod the devices that it has."""
        if held:
            self._unknown[uid] = tuple(held)
            self._restore_known()

    def release(self, uid: str) -> None:
        self._unknown.pop(uid, None)
        self._allocation.release(uid)

    def devices(self, uid: str, container: str) -> tuple[PhysicalDevice, ...]:
        held = (one for one in self._allocation.of(uid) if one.container == container)
        return tuple(device for one in held for device in one.devices)

    def users(self, uuid: str) -> tuple[str, ...]:
        """The UIDs of the pods that have this GPU or one of its instances. It may be called in any thread."""
        indexes = {gpu.index for gpu in self._listed if gpu.uuid == uuid}
        return tuple(
            uid
            for uid, held in self._allocation.items()
            if any(device.gpu in indexes for one in held for device in one.devices)
        )

    def environment(self, uid: str, container: str) -> dict[str, str]:
        """The variables by which CUDA and NVIDIA's tools see the devices of a container, and no others."""
        ids = [device.physical for device in self.devices(uid, container)]
        listed = ",".join(dict.fromkeys(ids))
        return {"CUDA_VISIBLE_DEVICES": listed, "NVIDIA_VISIBLE_DEVICES": listed or "void"}

    def _look(self) -> None:
        """Take over what the driver lists now."""
        listed = () if self._known is None else tuple(sorted(self._known.gpus(), key=lambda gpu: gpu.index))
        if listed == self._listed:
            return
        self._listed = listed
        self._pool = inventory(slots_of(listed), layouts_of(listed), CONFIG).devices
        self._rules = AllocationRules(plugin=CONFIG, scores=pair_scores(listed))
        self._restore_known()

    def _restore_known(self) -> None:
        for uid, held in [*self._unknown.items()]:
            found, is_complete = [], True
            for one in held:
                by_id = {device.id: device for device in self._pool.get(one.resource, ())}
                devices = tuple(by_id[each] for each in one.ids if each in by_id)
                is_complete = is_complete and len(devices) == len(one.ids)
                found.append(HeldDevices(one.container, one.resource, devices))
            self._allocation.release(uid)
            self._allocation.restore(uid, found)
            if is_complete:
                del self._unknown[uid]

    def _is_usable(self, device: PhysicalDevice) -> bool:
        gpu = next((one for one in self._listed if one.index == device.gpu), None)
        instance = device.cut.instance if device.cut is not None else None
        return gpu is not None and self._known is not None and self._known.is_usable(gpu.uuid, instance)
