"""The GPUs of this machine for the kubelet: what the node advertises, and which pod has which.

Guarantees: a device that is not healthy is given to no pod, and returns when it is healthy again; pods that have it
keep it. A device that a stored pod has is not given to another one, also if the driver lists it only later.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from shoal.agent.mig.held_devices import DevicesInUse
from shoal.devices.advertised_devices import PhysicalDevice, inventory
from shoal.devices.allocation import AllocationRules, DeviceAllocation, HeldDevices
from shoal.devices.device_ids import device_of_replica
from shoal.devices.discovered import layouts_of, slots_of
from shoal.devices.gpu_groups import pair_scores
from shoal.devices.mps_daemons import MpsFolders
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.pod_refusal import Refused
from shoal.devices.port import InstalledGpu

Obj = dict[str, Any]
_log = logging.getLogger("shoal.agent.kubelet")
_FORMER_REPLICAS = 0
"""Of a device that is known by its id of a former configuration only."""
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
    """Whole GPUs, replicas of them and MIG instances, as the device plugin advertises them; none without a driver.

    Pods keep the devices that they have when the configuration changes. A GPU or instance that pods hold under another
    configuration is not healthy for new pods until they have ended, because it would be given away twice.
    """

    def __init__(self, known: KnownGpus | None, config: PluginConfig = CONFIG) -> None:
        self._known = known
        self.config = config
        self.mps_root = ""
        """The folder of MPS daemons."""
        self.is_shared_ready: Callable[[str], bool] = lambda _: True
        """Whether MPS serves a GPU, by UUID."""
        self.problem = ""
        """Why no device is advertised."""
        self._listed: tuple[InstalledGpu, ...] = ()
        self._pool: Mapping[str, tuple[PhysicalDevice, ...]] = {}
        self._names: dict[str, tuple[PhysicalDevice, ...]] = {}
        """All resources that there were, each without devices."""
        self._rules = AllocationRules()
        self._unknown: dict[str, tuple[HeldIds, ...]] = {}
        """What stored pods have, of pods with devices that were not listed yet."""
        self._allocation = DeviceAllocation(self._is_usable)
        self._lock = threading.Lock()
        """No pod gets a device while another thread closes it."""
        self._closed: frozenset[tuple[str, int | None]] = frozenset()
        self._look()

    def attach(self, known: KnownGpus) -> None:
        """The driver came after the start."""
        self._known = known
        self._look()

    def use(self, config: PluginConfig, mps_root: str = "") -> None:
        """From now on."""
        self.config, self.mps_root = config, mps_root
        self._take_over(self._listed)

    def capacity(self) -> dict[str, str]:
        self._look()
        return {name: str(len(devices)) for name, devices in self._pool.items()}

    def allocatable(self) -> dict[str, str]:
        """Without the devices that are not healthy now."""
        self._look()
        return {name: str(len(self._allocation.healthy(devices))) for name, devices in self._pool.items()}

    def admit(self, pod: Obj) -> Refused | None:
        self._look()
        with self._lock:
            found = self._allocation.admit(pod, {**self._names, **self._pool}, self._rules)
        return found if isinstance(found, Refused) else None

    def close(self, uuid: str, instance: int | None = None) -> bool:
        """Give a GPU, or a GPU instance of it, to no pod until `reopen`, because it is about to change. False, and
        without effect, if a pod has it or a part of it. It may be called in any thread."""
        indexes = {gpu.index for gpu in self._listed if gpu.uuid == uuid}
        with self._lock:
            for device in self._held_devices():
                if device.gpu in indexes and (
                    instance is None or device.cut is None or device.cut.instance == instance
                ):
                    return False
            self._closed = self._closed | {(uuid, instance)}
        return True

    def reopen(self) -> None:
        """The layout is as the driver lists it now."""
        self._look()
        self._closed = frozenset()

    def held(self, uid: str) -> tuple[HeldIds, ...]:
        return self._unknown.get(uid) or tuple(
            HeldIds(one.container, one.resource, tuple(device.id for device in one.devices))
            for one in self._allocation.of(uid)
        )

    def in_use(self) -> DevicesInUse:
        """It may be called in any thread."""
        unknown = {device_of_replica(each) for held in [*self._unknown.values()] for one in held for each in one.ids}
        return DevicesInUse(frozenset(unknown | {device.physical for device in self._held_devices()}))

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
        devices = self.devices(uid, container)
        listed = ",".join(dict.fromkeys(device.physical for device in devices))
        found = {"CUDA_VISIBLE_DEVICES": listed, "NVIDIA_VISIBLE_DEVICES": listed or "void"}
        shared = next((one.resource for one in devices if one.replicas > 1), "")
        if shared and self.config.sharing == "mps":
            found["CUDA_MPS_PIPE_DIRECTORY"] = MpsFolders(self.mps_root, shared).pipe
        return found

    def _look(self) -> None:
        """Take over what the driver lists now."""
        listed = () if self._known is None else tuple(sorted(self._known.gpus(), key=lambda gpu: gpu.index))
        if listed != self._listed:
            self._take_over(listed)

    def _take_over(self, listed: tuple[InstalledGpu, ...]) -> None:
        self._listed = listed
        found = inventory(slots_of(listed), layouts_of(listed), self.config)
        problem = f"no GPU is advertised: {found.problem.message}" if found.problem is not None else ""
        if problem and problem != self.problem:
            _log.warning("%s", problem)
        self.problem, self._pool = problem, found.devices
        self._names |= dict.fromkeys(self._pool, ())
        self._rules = AllocationRules(plugin=self.config, scores=pair_scores(listed))
        self._restore_known()

    def _restore_known(self) -> None:
        for uid, held in [*self._unknown.items()]:
            found, is_complete = [], True
            for one in held:
                devices = tuple(device for each in one.ids if (device := self._device(one.resource, each)) is not None)
                is_complete = is_complete and len(devices) == len(one.ids)
                found.append(HeldDevices(one.container, one.resource, devices))
            self._allocation.release(uid)
            self._allocation.restore(uid, found)
            if is_complete:
                del self._unknown[uid]

    def _device(self, resource: str, id_: str) -> PhysicalDevice | None:
        """Under the present configuration, or under the one that it was allocated by."""
        exact = next((one for one in self._pool.get(resource, ()) if one.id == id_), None)
        if exact is not None:
            return exact
        listed = (one for devices in self._pool.values() for one in devices)
        found = next((one for one in listed if one.physical == device_of_replica(id_)), None)
        if found is None:
            return None
        replicas = 1 if found.physical == id_ else _FORMER_REPLICAS
        return msgspec.structs.replace(found, id=id_, resource=resource, replicas=replicas)

    def _held_devices(self) -> Iterator[PhysicalDevice]:
        return (device for _, held in self._allocation.items() for one in held for device in one.devices)

    def _is_usable(self, device: PhysicalDevice) -> bool:
        gpu = next((one for one in self._listed if one.index == device.gpu), None)
        instance = device.cut.instance if device.cut is not None else None
        if gpu is None or self._known is None or not self._known.is_usable(gpu.uuid, instance):
            return False
        if not self._closed.isdisjoint({(gpu.uuid, None), (gpu.uuid, instance)}):
            return False
        if self.config.sharing == "mps" and device.replicas > 1 and not self.is_shared_ready(gpu.uuid):
            return False
        return all(one.replicas == device.replicas for one in self._held_devices() if one.physical == device.physical)
