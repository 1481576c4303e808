"""Models the GPUs of one simulated node: advertised devices, allocations, programs and faults.

It combines `mig_manager`, `plugin_manager`, `allocation`, `gpu_processes`, `feature_labels` and `node_annotations`.
After every change of layout or configuration the devices are listed again; resources, labels and annotations are
computed from that list, so that they are consistent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from shoal.devices.advertised_devices import Inventory, PhysicalDevice, inventory
from shoal.devices.allocation import AllocationRules, DeviceAllocation, HeldDevices
from shoal.devices.dcgm_holders import ClaimedDevice
from shoal.devices.devices_in_status import held_in_status
from shoal.devices.feature_labels import COMING_AND_GOING, FeatureError, LabelInput, feature_labels
from shoal.devices.gpu_groups import Scores, pair_scores
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Cut, Gpu
from shoal.devices.mps_daemons import MPS_INSIDE, MpsFolders
from shoal.devices.names import OWN_NUMA_POLICY
from shoal.devices.node_annotations import AnnotatedNode, own_words
from shoal.devices.operator_labels import operator_labels
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.pod_refusal import Refused
from shoal.devices.port import DriverVersions, InstalledGpu, UnknownGpuError
from shoal.devices.topology_manager import POLICIES
from shoal.devices.xids import Xid, xid_of
from shoal.embedded.gpus import mig_manager, plugin_manager
from shoal.embedded.gpus.contention import DOCUMENTED, ContentionSettings
from shoal.embedded.gpus.gpu_processes import GpuProcesses
from shoal.embedded.gpus.mig_manager import MigManager
from shoal.embedded.gpus.mig_on_demand import MigOnDemand
from shoal.embedded.gpus.node_gpus import Complaint, ContainerDevices, ExtendedResourceAmounts, Use
from shoal.embedded.gpus.node_software import NodeSoftware, first_software
from shoal.embedded.gpus.plugin_manager import PluginManager
from shoal.embedded.gpus.reported_gpus import reported_gpus
from shoal.embedded.machines.machine import Machine

Obj = dict[str, Any]


class DeviceManager:
    """Implements NodeGpus."""

    def __init__(self, machine: Machine, contention: ContentionSettings = DOCUMENTED) -> None:
        self.machine = machine
        self._mig = MigManager(machine)
        self._plugin = PluginManager(machine)
        self.mig = MigOnDemand(self)
        self._xids: dict[int, Xid] = {}
        self._unhealthy: set[int] = set()
        self._software = first_software(machine.gpu_software)
        self._has_advertised = self._software.has("device-plugin")
        self._allocation = DeviceAllocation(lambda device: self._is_allocatable(device.gpu))
        self._policy = machine.annotations.get(OWN_NUMA_POLICY, "none")
        self.programs = GpuProcesses(lambda: self._plugin.config.sharing, contention)
        self._devices: dict[str, tuple[PhysicalDevice, ...]] = {}
        self._by_id: dict[str, PhysicalDevice] = {}
        self._claimed: dict[str, Mapping[str, ClaimedDevice]] = {}
        self._labels_before: set[str] = set()
        self._words_before: set[str] = set()
        self._found_features: Mapping[str, str] = {}
        self._reported: tuple[InstalledGpu, ...] = ()
        self._reported_for: tuple[Gpu, ...] | None = None
        self._problem = ""
        self._list_devices()

    # resources, labels and annotations

    def resources(self) -> Mapping[str, ExtendedResourceAmounts]:
        """Without its device plugin, a node has the capacity that was advertised before, and nothing allocatable."""
        if not self._has_advertised:
            return {}
        return {
            name: ExtendedResourceAmounts(len(devices), len(self._allocation.healthy(devices)))
            for name, devices in self._devices.items()
        }

    def labels(self) -> Mapping[str, str | None]:
        found = {**self._features()}
        if self.machine.gpus and self._writes_operator_labels:
            is_capable = self.machine.gpus[0].is_mig_capable
            found |= operator_labels(is_mig_capable=is_capable, gives_by_claims=self.machine.gives_by_claims)
        if self._mig.config:
            found |= {mig_manager.LABEL: self._mig.config, mig_manager.STATE: self._mig.state}
        return _with_gone(found, self._labels_before)

    def annotations(self) -> Mapping[str, str | None]:
        if not self._has_advertised:
            return {}
        devices = AnnotatedNode(self.machine.gpus, self._mig.gpus, self._plugin.config)
        return _with_gone(own_words(devices, self._devices, self._unhealthy), self._words_before)

    def configure(self, labels: Mapping[str, str], configs: Mapping[str, Obj]) -> Sequence[str]:
        # An earlier process may have written labels of a former layout.
        if self._software.has("feature-discovery"):
            self._labels_before.update(name for name in labels if name.startswith(COMING_AND_GOING))
        reported = labels.get(OWN_NUMA_POLICY) or self.machine.annotations.get(OWN_NUMA_POLICY, "none")
        self._policy = reported if reported in POLICIES else "none"
        strategy, source = labels.get(plugin_manager.STRATEGY, ""), labels.get(mig_manager.SOURCE, "")
        happened = [self._plugin.follow(labels.get(plugin_manager.LABEL, ""), configs, strategy)]
        wanted = labels.get(mig_manager.LABEL, "")
        # A layout from before the start of this process exists also while no manager runs.
        is_restored = not self._mig.config and labels.get(mig_manager.STATE) == "success"
        if wanted and (self._software.has("mig-manager") or is_restored):
            happened.append(self._mig.follow(wanted, configs, self._allocation.is_used, source))
        if not self.machine.gives_by_claims:
            happened += self.mig.follow(labels)
        if any(happened):
            happened.append(self._list_devices())
        return [words for words in happened if words]

    # The software of the node.

    @property
    def software(self) -> NodeSoftware:
        return self._software

    def begin_with(self, software: NodeSoftware) -> None:
        """The machine has just started with these layers, and has advertised nothing yet."""
        self._software = software
        self._has_advertised = software.has("device-plugin")

    def set_software(self, software: NodeSoftware) -> None:
        self._software = software
        self._has_advertised = self._has_advertised or software.has("device-plugin")

    @property
    def _writes_operator_labels(self) -> bool:
        """Else a GPU operator writes them."""
        return self.machine.gpu_software == "included"

    def _is_allocatable(self, gpu: int) -> bool:
        return gpu not in self._unhealthy and self._software.has("device-plugin")

    # Pods.

    def admit(self, pod: Obj) -> tuple[ContainerDevices, ...] | Refused:
        rules = AllocationRules(self._policy, self._plugin.config, self._scores)
        held = self._allocation.admit(pod, self._devices, rules)
        return held if isinstance(held, Refused) else self._grants(held)

    def restore(self, pod: Obj) -> tuple[ContainerDevices, ...]:
        uid = pod["metadata"]["uid"]
        if not self._allocation.of(uid):
            self._allocation.restore(uid, list(held_in_status(pod, self._by_id)))
        return self._grants(self._allocation.of(uid))

    def hold(self, uid: str, held: Sequence[HeldDevices], claimed: Mapping[str, ClaimedDevice]) -> None:
        """The pod has these devices by its claims. `claimed`: by the ids of the devices."""
        self._allocation.put(uid, held)
        self._claimed[uid] = claimed

    def claimed(self, uid: str) -> Mapping[str, ClaimedDevice]:
        """What the pod has by claims, by the ids of the devices."""
        return self._claimed.get(uid, {})

    def release(self, uid: str) -> None:
        self._claimed.pop(uid, None)
        self.programs.stop_pod(uid)
        self._allocation.release(uid)

    def held(self) -> Iterator[tuple[str, tuple[HeldDevices, ...]]]:
        """The devices of each container, by pod."""
        return self._allocation.items()

    # The MIG layout, changed GPU by GPU.

    def recall(self, annotations: Mapping[str, str]) -> None:
        self.mig.recall(annotations)

    def is_used(self, gpu: int) -> bool:
        return self._allocation.is_used(gpu)

    def is_instance_used(self, uuid: str) -> bool:
        return any(device.physical == uuid for _, held in self.held() for one in held for device in one.devices)

    def change_gpu(self, index: int, gpu: Gpu) -> None:
        self._mig.put(index, gpu)
        self._list_devices()

    # Programs.

    def start(self, uid: str, container: str, use: Use) -> str | None:
        devices = self.devices_of(uid, container)
        lost = next((device.gpu for device in devices if self._is_lost(device.gpu)), None)
        if lost is not None:
            return "RuntimeError: No CUDA GPUs are available"
        return self.programs.start(uid, container, devices, use) if devices else None

    def stop(self, uid: str, container: str) -> None:
        self.programs.stop(uid, container)

    def pace(self, uid: str) -> float:
        return self.programs.pace(uid)

    # Health.

    def fail(self, index: int, xid: int) -> Sequence[str]:
        if not 0 <= index < len(self.machine.gpus):
            return ()
        fault = xid_of(xid)
        self._xids[index] = fault
        if fault.marks_unhealthy():
            self._unhealthy.add(index)
        running = self.programs.on_gpu(index)
        if fault.victims == "none":
            running = []
        elif fault.victims == "newest" and self._plugin.config.sharing != "mps":
            # Clients of MPS share one server process, so a fault ends all of them.
            running = running[-1:]
        return list(dict.fromkeys(program.uid for program in running))

    def mend(self, index: int) -> None:
        self._xids.pop(index, None)
        self._unhealthy.discard(index)

    def is_healthy(self, device_id: str) -> bool:
        device = self._by_id.get(device_id) or self._allocation.held_device(device_id)
        return device is not None and device.gpu not in self._unhealthy

    # for exporters and commands

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The MIG layout of each GPU."""
        return self._mig.gpus

    @property
    def reported(self) -> tuple[InstalledGpu, ...]:
        """The GPUs as their driver reports them while none is lost."""
        layouts = self._mig.gpus
        if self._reported_for is not layouts:
            self._reported_for, self._reported = layouts, reported_gpus(self.machine, layouts)
        return self._reported

    @property
    def config(self) -> PluginConfig:
        return self._plugin.config

    def xid(self, index: int) -> Xid | None:
        return self._xids.get(index)

    def devices_of(self, uid: str, container: str) -> list[PhysicalDevice]:
        return [device for one in self._allocation.of(uid) if one.container == container for device in one.devices]

    def place_of(self, uuid: str) -> tuple[GpuSlot, Cut | None]:
        """The GPU with this UUID, or the GPU of the instance with it, and the instance."""
        for slot, gpu in zip(self.machine.gpus, self._mig.gpus, strict=True):
            if slot.uuid == uuid:
                return slot, None
            for cut in gpu.cuts:
                if cut.uuid == uuid:
                    return slot, cut
        raise UnknownGpuError(uuid)

    # internals

    @cached_property
    def _scores(self) -> Scores:
        """Of the connections between GPUs, which do not change."""
        return pair_scores(self.reported)

    def _features(self) -> Mapping[str, str]:
        """Where feature discovery fails or ends, its labels remain as they were."""
        if not self.machine.gpus or not self._software.has("feature-discovery"):
            return self._found_features
        versions = DriverVersions(self._software.driver, self._software.cuda)
        scene = LabelInput(versions, self.reported, self._plugin.config, self.machine.machine_type)
        with suppress(FeatureError):
            self._found_features = feature_labels(scene)
        return self._found_features

    def _is_lost(self, gpu: int) -> bool:
        fault = self._xids.get(gpu)
        return fault is not None and fault.is_lost

    def _list_devices(self) -> str:
        """List the devices again; returns a fault, if there is one. A resource that was advertised once remains with no
        devices, as in kubelets.
        """
        # On a node whose GPUs are given by claims the plugin does not run.
        is_idle = self.machine.gives_by_claims
        found = Inventory({}) if is_idle else inventory(self.machine.gpus, self._mig.gpus, self._plugin.config)
        self._devices = {**dict.fromkeys(self._devices, ()), **found.devices}
        self._by_id = {device.id: device for devices in self._devices.values() for device in devices}
        problem = f"the device plugin does not start: {found.problem.message}" if found.problem else ""
        if not problem and any(device.cut and device.replicas > 1 for device in self._by_id.values()):
            problem = _SHARED_INSTANCES
        changed, self._problem = problem != self._problem, problem
        return Complaint(problem) if problem and changed else ""

    def _grants(self, held: Sequence[HeldDevices]) -> tuple[ContainerDevices, ...]:
        return tuple(
            ContainerDevices(
                container=one.container,
                resource=one.resource,
                device_ids=tuple(device.id for device in one.devices),
                gpus=tuple(sorted({device.gpu for device in one.devices})),
                environment=environment(one, self._plugin.config.sharing),
            )
            for one in held
        )


_SHARED_INSTANCES = (
    "MIG instances are shared by time-slicing, which is not meant for production: the pods on an instance take turns "
    "and share its memory without protection from each other"
)


def _with_gone(found: Mapping[str, str], before: set[str]) -> dict[str, str | None]:
    """The current values, with None for names that are no longer set."""
    gone: dict[str, str | None] = dict.fromkeys(before - found.keys())
    before.update(found)
    return {**gone, **found}


def environment(held: HeldDevices, sharing: str) -> dict[str, str]:
    """Two replicas of one GPU are one device for the container."""
    found = {"NVIDIA_VISIBLE_DEVICES": ",".join(dict.fromkeys(device.physical for device in held.devices))}
    if sharing == "mps" and any(device.replicas > 1 for device in held.devices):
        found["CUDA_MPS_PIPE_DIRECTORY"] = MpsFolders(MPS_INSIDE, held.resource).pipe
    return found
