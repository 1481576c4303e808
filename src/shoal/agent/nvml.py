"""Reports the GPUs of this machine by NVIDIA's management library.

Guarantees: a value that the library does not report is None; a GPU that the library calls lost is a `LostGpu`, also in
the middle of a report; an error about one GPU does not affect the reports about others. Nothing is changed on a GPU.
The library is given, so that another object with the same functions can take its place.

NUMA nodes come from sysfs, because the library reports those of the GPU's memory, which few GPUs have; so do PCI
classes, because only new versions of the library report them.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from shoal.agent import nvml_library
from shoal.agent.nvml_counters import brand_name
from shoal.agent.nvml_library import Handle, NvmlLibrary, code_of, complete, identity, initialize
from shoal.agent.nvml_profiling import NvmlProfiling
from shoal.agent.nvml_readings import NvmlReadings
from shoal.devices.pci_ids import PciId
from shoal.devices.port import (
    LINK_STATUSES,
    DriverVersions,
    Fabric,
    GpuList,
    GpuReadings,
    InstalledGpu,
    InstanceReadings,
    LostGpu,
    MigAttributes,
    MigInstance,
    NvlinkPeer,
    NvlinkStatus,
    PciePeer,
    PcieRelation,
    UnknownGpuError,
    XidEvent,
)
from shoal.units.errors import TemporaryError

T = TypeVar("T")
_LOST = frozenset({nvml_library.GPU_IS_LOST, nvml_library.RESET_REQUIRED, nvml_library.GPU_NOT_FOUND})
_MOST_LINKS = 36
_TO_GPU, _TO_SWITCH = 0, 2
_MIG_ENABLED = 1
_MIG_IN_NAME = " MIG "
_XID_EVENT = 0x8
_NO_INSTANCE = 0xFFFFFFFF
_MIB = 2**20
_RETRY_S = 5.0
_FABRIC_COMPLETED = 3
_P2P_BY_NVLINK = 2
_RELATIONS: Mapping[int, PcieRelation] = {
    0: "same-board",
    10: "single-switch",
    20: "multi-switch",
    30: "host-bridge",
    40: "same-cpu",
    50: "cross-cpu",
}


class _LostError(Exception):
    """The GPU was lost during a report about it."""


class NvmlDriver:
    """Implements GpuDriver."""

    def __init__(
        self, library: NvmlLibrary, sysfs: Path = Path("/sys"), seconds: Callable[[], float] = monotonic
    ) -> None:
        """Raises `UserError` if the machine has no driver that responds."""
        self._library, self._sysfs = complete(library), sysfs
        initialize(library)
        self._readings = NvmlReadings(self._library, self._value, seconds)
        self._profiling = NvmlProfiling(self._library, self._value)
        self._handles: dict[str, tuple[int, Handle]] = {}
        self._uuids: dict[int, str] = {}
        """By index; what is known of GPUs that are lost later."""
        self._events: Handle | None = None
        self._watched: set[str] = set()

    def versions(self) -> DriverVersions:
        cuda = self._value(self._library.nvmlSystemGetCudaDriverVersion)
        spelled = None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}"
        return DriverVersions(self._required(self._library.nvmlSystemGetDriverVersion), spelled)

    def gpus(self) -> GpuList:
        found: list[tuple[int, Handle, InstalledGpu]] = []
        lost: list[LostGpu] = []
        for index in range(self._required(self._library.nvmlDeviceGetCount)):
            try:
                handle = self._library.nvmlDeviceGetHandleByIndex(index)
                found.append((index, handle, self._gpu(index, handle)))
            except (self._library.NVMLError, _LostError) as error:
                lost.append(LostGpu(index, self._uuids.get(index), str(error)))
        for index, handle, gpu in found:
            self._handles[gpu.uuid] = (index, handle)
            self._uuids[index] = gpu.uuid
        return GpuList(tuple(self._connected(found, lost)), tuple(sorted(lost, key=lambda one: one.index)))

    def read(self, uuid: str) -> GpuReadings | LostGpu:
        if uuid not in self._handles:
            self.gpus()
        if uuid not in self._handles:
            raise UnknownGpuError(uuid)
        index, handle = self._handles[uuid]
        try:
            readings = self._readings.read(handle)
            instances = tuple(self._instance_readings(uuid, handle))
            profiling = self._profiling.read(uuid, handle)
        except _LostError as error:
            return LostGpu(index, uuid, str(error))
        return msgspec.structs.replace(readings, profiling=profiling, instances=instances)

    def next_xid(self, timeout_s: float) -> XidEvent | None:
        """GPUs that do not support events are left out. Raises `TemporaryError` if the driver reports no events."""
        events = self._watch()
        try:
            event = self._library.nvmlEventSetWait(events, round(timeout_s * 1000))
        except self._library.NVMLError as error:
            if code_of(error) == nvml_library.TIMEOUT:
                return None
            # The set is created again, because a set with a lost GPU can fail at every call.
            self._forget_events()
            raise _silent(error) from error
        # The library gives no UUID of a GPU that has fallen off the bus, so GPUs are compared by their handles.
        ids = (uuid for uuid, (_, handle) in tuple(self._handles.items()) if identity(handle) == identity(event.device))
        uuid = next(ids, None)
        if uuid is None or event.eventType != _XID_EVENT:
            return None
        instance = event.gpuInstanceId
        return XidEvent(uuid, int(event.eventData), None if instance == _NO_INSTANCE else instance)

    def close(self) -> None:
        self._forget_events()
        with suppress(_LostError):
            self._profiling.forget()
        self._value(self._library.nvmlShutdown)

    def _required(self, get: Callable[[], T]) -> T:
        try:
            return get()
        except self._library.NVMLError as error:
            raise _silent(error) from error

    def _value(self, get: Callable[..., T], *given: Any) -> T | None:
        """The value of a function, None if the library has none; a lost GPU ends the report."""
        try:
            return get(*given)
        except self._library.NVMLError as error:
            if code_of(error) in _LOST:
                raise _LostError(str(error)) from error
            return None

    def _gpu(self, index: int, handle: Handle) -> InstalledGpu:
        library = self._library
        address = library.nvmlDeviceGetPciInfo(handle)
        pci = _text(address.busId)
        capability = self._value(library.nvmlDeviceGetCudaComputeCapability, handle)
        memory = self._value(library.nvmlDeviceGetMemoryInfo, handle)
        mode = self._value(library.nvmlDeviceGetMigMode, handle)
        is_mig = None if mode is None else mode[0] == _MIG_ENABLED
        return InstalledGpu(
            index=index,
            uuid=library.nvmlDeviceGetUUID(handle),
            name=self._value(library.nvmlDeviceGetName, handle) or "",
            pci=pci,
            memory_mib=None if memory is None else memory.total // _MIB,
            compute_capability=None if capability is None else f"{capability[0]}.{capability[1]}",
            minor=self._value(library.nvmlDeviceGetMinorNumber, handle),
            numa=self._numa(pci),
            pci_id=_pci_id(address),
            pci_class=self._pci_class(pci),
            fabric=self._fabric(handle),
            serial=self._value(library.nvmlDeviceGetSerial, handle),
            brand=brand_name(self._value(library.nvmlDeviceGetBrand, handle)),
            vbios=self._value(library.nvmlDeviceGetVbiosVersion, handle),
            is_mig=is_mig,
            instances=tuple(self._instances(handle)) if is_mig else (),
        )

    def _numa(self, pci: str) -> int | None:
        """-1 in sysfs means that the machine does not know."""
        try:
            node = int(self._sysfs_text(pci, "numa_node"))
        except ValueError:
            return None
        return node if node >= 0 else None

    def _pci_class(self, pci: str) -> int | None:
        try:
            return int(self._sysfs_text(pci, "class"), 16)
        except ValueError:
            return None

    def _sysfs_text(self, pci: str, name: str) -> str:
        """Empty if there is no such file. Domains have four digits in sysfs."""
        domain, _, rest = pci.lower().partition(":")
        try:
            return (self._sysfs / "bus/pci/devices" / f"{domain[-4:]}:{rest}" / name).read_text()
        except (OSError, UnicodeDecodeError):
            return ""

    def _fabric(self, handle: Handle) -> Fabric | None:
        """A GPU whose NVLink domain is its own machine has a cluster of zeros."""
        info = self._value(self._fabric_info, handle)
        if info is None:
            return None
        cluster = bytes(info.clusterUuid)
        if info.state != _FABRIC_COMPLETED or info.status or not any(cluster):
            return None
        return Fabric(str(UUID(bytes=cluster)), str(info.cliqueId))

    def _fabric_info(self, handle: Handle) -> Any:
        info = self._library.c_nvmlGpuFabricInfo_t()
        self._library.nvmlDeviceGetGpuFabricInfo(handle, ctypes.byref(info))
        return info

    def _mig_devices(self, handle: Handle) -> Iterator[tuple[str, Handle]]:
        library = self._library
        for position in range(self._value(library.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
            device = self._value(library.nvmlDeviceGetMigDeviceHandleByIndex, handle, position)
            uuid = None if device is None else self._value(library.nvmlDeviceGetUUID, device)
            if uuid is not None:
                yield uuid, device

    def _instance_readings(self, gpu: str, handle: Handle) -> Iterator[InstanceReadings]:
        mode = self._value(self._library.nvmlDeviceGetMigMode, handle)
        for uuid, device in self._mig_devices(handle) if mode is not None and mode[0] == _MIG_ENABLED else ():
            readings = self._readings.instance(uuid, device)
            number = self._value(self._library.nvmlDeviceGetGpuInstanceId, device)
            profiling = None if number is None else self._profiling.read(gpu, handle, number)
            yield msgspec.structs.replace(readings, profiling=profiling)

    def _instances(self, handle: Handle) -> Iterator[MigInstance]:
        library = self._library
        for uuid, device in self._mig_devices(handle):
            name = self._value(library.nvmlDeviceGetName, device) or ""
            attributes = self._value(library.nvmlDeviceGetAttributes, device)
            number = self._value(library.nvmlDeviceGetGpuInstanceId, device)
            place = None if number is None else self._placement(handle, number)
            yield MigInstance(
                uuid=uuid,
                profile=name.partition(_MIG_IN_NAME)[2],
                instance=number,
                start=None if place is None else place.start,
                width=None if place is None else place.size,
                memory_mib=None if attributes is None else attributes.memorySizeMB,
                compute_instance=self._value(library.nvmlDeviceGetComputeInstanceId, device),
                attributes=None if attributes is None else _attributes(attributes),
            )

    def _placement(self, handle: Handle, number: int) -> Any | None:
        instance = self._value(self._library.nvmlDeviceGetGpuInstanceById, handle, number)
        info = None if instance is None else self._value(self._library.nvmlGpuInstanceGetInfo, instance)
        return None if info is None else info.placement

    def _connected(self, found: list[tuple[int, Handle, InstalledGpu]], lost: list[LostGpu]) -> Iterator[InstalledGpu]:
        """The GPUs with their NVLink peers. GPUs with links to switches are connected with each other."""
        by_pci = {gpu.pci.upper(): gpu.uuid for _, _, gpu in found}
        links: dict[str, Counter[str]] = {}
        switched: dict[str, int] = {}
        for index, handle, gpu in found:
            try:
                links[gpu.uuid], switched[gpu.uuid] = self._links(handle, by_pci)
            except _LostError as error:
                lost.append(LostGpu(index, gpu.uuid, str(error)))
        for _, handle, gpu in found:
            if gpu.uuid in links:
                others = [(other, far) for _, far, other in found if other.uuid in links and other is not gpu]
                connected = _with_peers(gpu, links[gpu.uuid], switched, tuple(self._pcie_peers(handle, others)))
                statuses = tuple(self._nvlink_statuses(handle, others))
                yield msgspec.structs.replace(connected, nvlink_statuses=statuses)

    def _pcie_peers(self, handle: Handle, others: list[tuple[InstalledGpu, Handle]]) -> Iterator[PciePeer]:
        for gpu, other in others:
            with suppress(_LostError):
                level = self._value(self._library.nvmlDeviceGetTopologyCommonAncestor, handle, other)
                relation = _RELATIONS.get(-1 if level is None else level)
                if relation is not None:
                    yield PciePeer(gpu.uuid, relation)

    def _nvlink_statuses(self, handle: Handle, others: list[tuple[InstalledGpu, Handle]]) -> Iterator[NvlinkStatus]:
        for gpu, other in others:
            with suppress(_LostError):
                number = self._value(self._library.nvmlDeviceGetP2PStatus, handle, other, _P2P_BY_NVLINK)
                if number is not None:
                    yield NvlinkStatus(gpu.index, LINK_STATUSES[number if number < len(LINK_STATUSES) else -1])

    def _links(self, handle: Handle, by_pci: Mapping[str, str]) -> tuple[Counter[str], int]:
        """The active links to each other GPU, and the number of those to switches."""
        library = self._library
        direct: Counter[str] = Counter()
        to_switches = 0
        for link in range(_MOST_LINKS):
            if not self._value(library.nvmlDeviceGetNvLinkState, handle, link):
                continue
            kind = self._value(library.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link)
            to_switches += kind == _TO_SWITCH
            remote = self._value(library.nvmlDeviceGetNvLinkRemotePciInfo, handle, link) if kind == _TO_GPU else None
            uuid = None if remote is None else by_pci.get(_text(remote.busId).upper())
            if uuid is not None:
                direct[uuid] += 1
        return direct, to_switches

    def _watch(self) -> Handle:
        """The set of events, with all listed GPUs that support them."""
        if not self._handles:
            self.gpus()
        if self._events is None:
            self._events = self._required(self._library.nvmlEventSetCreate)
        for uuid, (_, handle) in tuple(self._handles.items()):
            if uuid not in self._watched:
                self._watched.add(uuid)
                with suppress(_LostError):
                    self._value(self._library.nvmlDeviceRegisterEvents, handle, _XID_EVENT, self._events)
        return self._events

    def _forget_events(self) -> None:
        events, self._events = self._events, None
        self._watched.clear()
        if events is not None:
            with suppress(_LostError):
                self._value(self._library.nvmlEventSetFree, events)


def _attributes(found: Any) -> MigAttributes:
    return MigAttributes(
        multiprocessors=found.multiprocessorCount,
        gpu_slices=found.gpuInstanceSliceCount,
        compute_slices=found.computeInstanceSliceCount,
        copy_engines=found.sharedCopyEngineCount,
        decoders=found.sharedDecoderCount,
        encoders=found.sharedEncoderCount,
        jpeg_engines=found.sharedJpegCount,
        optical_flow_engines=found.sharedOfaCount,
    )


def _with_peers(
    gpu: InstalledGpu, direct: Mapping[str, int], switched: Mapping[str, int], pcie_peers: tuple[PciePeer, ...]
) -> InstalledGpu:
    through = {uuid: min(count, switched[gpu.uuid]) for uuid, count in switched.items() if uuid != gpu.uuid and count}
    found = Counter(direct)
    if switched[gpu.uuid]:
        found.update(through)
    peers = tuple(NvlinkPeer(uuid, count) for uuid, count in sorted(found.items()))
    return msgspec.structs.replace(gpu, peers=peers, pcie_peers=pcie_peers)


def _silent(error: Exception) -> TemporaryError:
    return TemporaryError(f"NVIDIA's driver does not respond: {error}", _RETRY_S)


def _pci_id(address: Any) -> str | None:
    device = getattr(address, "pciDeviceId", 0)
    return str(PciId(device, getattr(address, "pciSubSystemId", 0) or None)) if device else None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
