"""Builds an object with the functions of NVIDIA's management library, over GPUs that a test describes."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from build.fake_nvml_mig import MigFunctions

NOT_SUPPORTED, NOT_FOUND, TIMEOUT, GPU_IS_LOST, UNKNOWN = 3, 6, 10, 15, 999
MIB = 2**20
NO_INSTANCE = 0xFFFFFFFF


class FakeError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


class _FabricInfo(ctypes.Structure):
    _fields_ = [
        ("clusterUuid", ctypes.c_uint8 * 16),
        ("status", ctypes.c_uint32),
        ("cliqueId", ctypes.c_uint32),
        ("state", ctypes.c_uint8),
    ]


class _Cell(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int)]


@dataclass
class FakeInstance:
    number: int
    profile: str
    start: int
    width: int
    memory_mib: int
    compute: list[int] = field(default_factory=list)
    """The slices of each compute instance."""

    @property
    def uuid(self) -> str:
        return f"MIG-{self.number:08d}-0000-4000-8000-000000000000"


@dataclass
class FakeGpu:
    index: int
    links: list[str] = field(default_factory=list)
    """What each active NVLink leads to: the PCI address of a GPU, or `switch`."""
    is_mig: bool = False
    instances: list[FakeInstance] = field(default_factory=list)
    processes: list[tuple[int, int, int]] = field(default_factory=list)
    """Process, bytes, and GPU instance."""
    needs_reset: bool = False
    """Whether a change of MIG mode waits for a reset."""
    pending_mode: bool | None = None
    refuse_profile: str = ""
    """No instance of this profile can be created."""
    memory_temperature: int = 52
    process_utils: list[tuple[int, int, int]] = field(default_factory=list)
    """Process, time in microseconds, and percent."""
    activity: float = 50.0
    """Of all performance counters, in percent or MiB/s."""
    has_performance_counters: bool = True
    throttling: int = 0
    recovery_action: int | None = None
    switch: int = 0
    """GPUs with the same number are behind one PCIe switch."""
    fabric: tuple[bytes, int, int] = (bytes(16), 0, 3)
    """Cluster, clique and state."""
    compute_mode: int = 0
    energy_mj: int = 8_123_456_789
    p2p_status: int = 0
    """Of NVLink towards all other GPUs."""

    @property
    def uuid(self) -> str:
        return f"GPU-{self.index:08d}-0000-4000-8000-000000000000"

    @property
    def pci(self) -> str:
        return pci_of(self.index)

    def new_instance(self, number: int, profile: str, start: int, width: int, memory_mib: int) -> FakeInstance:
        return FakeInstance(number, profile, start, width, memory_mib)


def pci_of(index: int) -> str:
    return f"00000000:{0x18 + index:02X}:00.0"


_LINK_COUNTERS = {(138, 0xFFFFFFFF): 3_000, (139, 0xFFFFFFFF): 5_000, (38, 0): 1, (45, 0): 2, (52, 0): 3, (59, 0): 4}


def _field_value(gpu: FakeGpu, field: int | tuple[int, int]) -> Any:
    if isinstance(field, int):
        value = {82: gpu.memory_temperature, 230: gpu.recovery_action}[field]
        code = NOT_SUPPORTED if value is None else 0
        return SimpleNamespace(nvmlReturn=code, value=SimpleNamespace(uiVal=value))
    found = _LINK_COUNTERS.get(field)
    code = 0 if found is not None else NOT_SUPPORTED
    return SimpleNamespace(nvmlReturn=code, value=SimpleNamespace(ullVal=found or 0))


class FakeNvml(MigFunctions):
    """Like the library, it gives a new pointer object for a GPU at each call."""

    NVMLError = FakeError

    def __init__(self, gpus: list[FakeGpu]) -> None:
        self.gpus = gpus
        self._cells = [_Cell(gpu.index) for gpu in gpus]
        self._faults: dict[str, tuple[int, int | None]] = {}
        self._events: list[SimpleNamespace] = []
        self._watched: set[int] = set()
        self.open_event_sets = self.created_event_sets = self.open_samples = self.freed_twice = 0
        self.is_open = False

    # What tests do to it.

    def fail(self, function: str, code: int, gpu: int | None = None) -> None:
        """Let a function fail, for one GPU or for all."""
        self._faults[function] = (code, gpu)

    def lose(self, gpu: int) -> None:
        for name in dir(self):
            if name.startswith("nvmlDevice") and name != "nvmlDeviceGetCount":
                self.fail(name, GPU_IS_LOST, gpu)

    def report_xid(self, gpu: int, xid: int, instance: int = NO_INSTANCE) -> None:
        device = self._pointer(gpu)
        self._events.append(SimpleNamespace(device=device, eventType=8, eventData=xid, gpuInstanceId=instance))

    # The library's functions.

    def nvmlInit(self) -> None:
        self._check("nvmlInit")
        self.is_open = True

    def nvmlShutdown(self) -> None:
        self._check("nvmlShutdown")
        self.is_open = False

    def nvmlSystemGetDriverVersion(self) -> str:
        self._check("nvmlSystemGetDriverVersion")
        return "580.95.05"

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        self._check("nvmlSystemGetCudaDriverVersion")
        return 12080

    def nvmlDeviceGetCount(self) -> int:
        self._check("nvmlDeviceGetCount")
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        self._check("nvmlDeviceGetHandleByIndex", index)
        return self._pointer(index)

    def nvmlDeviceGetComputeMode(self, device: Any) -> int:
        return self._gpu("nvmlDeviceGetComputeMode", device).compute_mode

    def nvmlDeviceSetComputeMode(self, device: Any, mode: int) -> None:
        self._gpu("nvmlDeviceSetComputeMode", device).compute_mode = mode

    def nvmlDeviceGetUUID(self, handle: Any) -> str:
        if isinstance(handle, FakeInstance):
            return handle.uuid
        return self._gpu("nvmlDeviceGetUUID", handle).uuid

    def nvmlDeviceGetName(self, handle: Any) -> str:
        if isinstance(handle, FakeInstance):
            return f"NVIDIA H100 80GB HBM3 MIG {handle.profile}"
        self._gpu("nvmlDeviceGetName", handle)
        return "NVIDIA H100 80GB HBM3"

    def nvmlDeviceGetSerial(self, handle: Any) -> str:
        return str(1650000000000 + self._gpu("nvmlDeviceGetSerial", handle).index)

    def nvmlDeviceGetMinorNumber(self, handle: Any) -> int:
        return self._gpu("nvmlDeviceGetMinorNumber", handle).index

    def nvmlDeviceGetPciInfo(self, handle: Any) -> Any:
        bus = self._gpu("nvmlDeviceGetPciInfo", handle).pci.encode()
        return SimpleNamespace(busId=bus, pciDeviceId=0x233010DE, pciSubSystemId=0x16C110DE)

    def nvmlDeviceGetCudaComputeCapability(self, handle: Any) -> tuple[int, int]:
        self._gpu("nvmlDeviceGetCudaComputeCapability", handle)
        return 9, 0

    def nvmlDeviceGetMemoryInfo(self, handle: Any, version: int | None = None) -> Any:
        if isinstance(handle, FakeInstance):
            total, used = handle.memory_mib * MIB, 100 * MIB
            return SimpleNamespace(total=total, used=used, reserved=16 * MIB, free=total - used - 16 * MIB)
        gpu = self._gpu("nvmlDeviceGetMemoryInfo", handle)
        total, reserved, used = 81559 * MIB, 560 * MIB, sum(size for _, size, _ in gpu.processes)
        if version is None:
            return SimpleNamespace(total=total, used=used + reserved, free=total - used - reserved)
        return SimpleNamespace(total=total, used=used, reserved=reserved, free=total - used - reserved)

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Any:
        if self._gpu("nvmlDeviceGetUtilizationRates", handle).is_mig:
            raise FakeError(NOT_SUPPORTED)
        return SimpleNamespace(gpu=80, memory=35)

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: int) -> int:
        self._gpu("nvmlDeviceGetTemperature", handle)
        return 44

    def nvmlDeviceGetPowerUsage(self, handle: Any) -> int:
        self._gpu("nvmlDeviceGetPowerUsage", handle)
        return 412_500

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: Any) -> int:
        self._gpu("nvmlDeviceGetEnforcedPowerLimit", handle)
        return 700_000

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: int) -> int:
        self._gpu("nvmlDeviceGetClockInfo", handle)
        return {1: 1980, 2: 2619}[kind]

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any) -> int:
        return self._gpu("nvmlDeviceGetTotalEnergyConsumption", handle).energy_mj

    def nvmlDeviceGetTotalEccErrors(self, handle: Any, kind: int, counter: int) -> int:
        self._gpu("nvmlDeviceGetTotalEccErrors", handle)
        return {0: 5, 1: 1}[kind]

    def nvmlDeviceGetRemappedRows(self, handle: Any) -> tuple[int, int, int, int]:
        self._gpu("nvmlDeviceGetRemappedRows", handle)
        return 2, 1, 1, 0

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: Any) -> int:
        return self._gpu("nvmlDeviceGetCurrentClocksEventReasons", handle).throttling

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any) -> int:
        return self._gpu("nvmlDeviceGetCurrentClocksThrottleReasons", handle).throttling

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> list[Any]:
        gpu = self._gpu("nvmlDeviceGetComputeRunningProcesses", handle)
        return [
            SimpleNamespace(pid=pid, usedGpuMemory=size, gpuInstanceId=instance)
            for pid, size, instance in gpu.processes
        ]

    def nvmlDeviceGetFieldValues(self, handle: Any, fields: Any) -> list[Any]:
        gpu = self._gpu("nvmlDeviceGetFieldValues", handle)
        return [_field_value(gpu, field) for field in fields]

    def nvmlDeviceGetNvLinkState(self, device: Any, link: int) -> int:
        gpu = self._gpu("nvmlDeviceGetNvLinkState", device)
        if link >= 18:
            raise FakeError(2)
        return int(link < len(gpu.links))

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: Any, link: int) -> int:
        gpu = self._gpu("nvmlDeviceGetNvLinkRemoteDeviceType", handle)
        return 2 if gpu.links[link] == "switch" else 0

    def nvmlDeviceGetNvLinkRemotePciInfo(self, device: Any, link: int) -> Any:
        gpu = self._gpu("nvmlDeviceGetNvLinkRemotePciInfo", device)
        return SimpleNamespace(busId=gpu.links[link].encode())

    def nvmlDeviceGetTopologyCommonAncestor(self, device1: Any, device2: Any) -> int:
        one = self._gpu("nvmlDeviceGetTopologyCommonAncestor", device1)
        other = self._gpu("nvmlDeviceGetTopologyCommonAncestor", device2)
        return 10 if one.switch == other.switch else 50

    def nvmlDeviceGetP2PStatus(self, device1: Any, device2: Any, p2pIndex: int) -> int:  # noqa: N803 - NVIDIA's
        """Over NVLink, which has index 2."""
        one = self._gpu("nvmlDeviceGetP2PStatus", device1)
        self._gpu("nvmlDeviceGetP2PStatus", device2)
        return one.p2p_status if p2pIndex == 2 else 6

    def c_nvmlGpuFabricInfo_t(self) -> Any:
        self._check("c_nvmlGpuFabricInfo_t")
        return _FabricInfo()

    def nvmlDeviceGetGpuFabricInfo(self, device: Any, info: Any) -> None:
        cluster, clique, state = self._gpu("nvmlDeviceGetGpuFabricInfo", device).fabric
        found = info._obj
        found.clusterUuid = (ctypes.c_uint8 * 16)(*cluster)
        found.cliqueId, found.state = clique, state

    def nvmlDeviceGetMigMode(self, device: Any) -> list[int]:
        gpu = self._gpu("nvmlDeviceGetMigMode", device)
        return [int(gpu.is_mig), int(gpu.is_mig if gpu.pending_mode is None else gpu.pending_mode)]

    def nvmlDeviceGetMaxMigDeviceCount(self, device: Any) -> int:
        self._gpu("nvmlDeviceGetMaxMigDeviceCount", device)
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Any, index: int) -> Any:
        gpu = self._gpu("nvmlDeviceGetMigDeviceHandleByIndex", device)
        if index >= len(gpu.instances):
            raise FakeError(NOT_FOUND)
        return gpu.instances[index]

    def nvmlDeviceGetGpuInstanceId(self, device: Any) -> int:
        assert isinstance(device, FakeInstance)
        return device.number

    def nvmlDeviceGetComputeInstanceId(self, device: Any) -> int:
        assert isinstance(device, FakeInstance)
        return 0

    def nvmlDeviceGetAttributes(self, device: Any) -> Any:
        assert isinstance(device, FakeInstance)
        return SimpleNamespace(
            memorySizeMB=device.memory_mib,
            multiprocessorCount=16 * device.width,
            gpuInstanceSliceCount=device.width,
            computeInstanceSliceCount=device.width,
            sharedCopyEngineCount=device.width,
            sharedDecoderCount=1,
            sharedEncoderCount=0,
            sharedJpegCount=1,
            sharedOfaCount=0,
        )

    def nvmlDeviceGetGpuInstanceById(self, device: Any, number: int) -> Any:
        gpu = self._gpu("nvmlDeviceGetGpuInstanceById", device)
        return next(one for one in gpu.instances if one.number == number)

    def nvmlGpuInstanceGetInfo(self, instance: Any) -> Any:
        self._check("nvmlGpuInstanceGetInfo")
        one = instance if isinstance(instance, FakeInstance) else self._instance("nvmlGpuInstanceGetInfo", instance)[1]
        return SimpleNamespace(id=one.number, placement=SimpleNamespace(start=one.start, size=one.width))

    def nvmlDeviceGetEncoderUtilization(self, handle: Any) -> list[int]:
        self._gpu("nvmlDeviceGetEncoderUtilization", handle)
        return [7, 100_000]

    def nvmlDeviceGetDecoderUtilization(self, handle: Any) -> list[int]:
        self._gpu("nvmlDeviceGetDecoderUtilization", handle)
        return [9, 100_000]

    def nvmlDeviceGetPcieReplayCounter(self, handle: Any) -> int:
        self._gpu("nvmlDeviceGetPcieReplayCounter", handle)
        return 3

    def nvmlDeviceGetRetiredPages(self, device: Any, cause: int) -> list[int]:
        self._gpu("nvmlDeviceGetRetiredPages", device)
        return [[0x1000, 0x2000], [0x3000]][cause]

    def nvmlDeviceGetRetiredPagesPendingStatus(self, device: Any) -> int:
        self._gpu("nvmlDeviceGetRetiredPagesPendingStatus", device)
        return 1

    def nvmlDeviceGetViolationStatus(self, device: Any, policy: int) -> Any:
        self._gpu("nvmlDeviceGetViolationStatus", device)
        if policy == 5:
            raise FakeError(NOT_SUPPORTED)
        return SimpleNamespace(referenceTime=1, violationTime=1_000 * (policy + 1))

    def nvmlDeviceGetGridLicensableFeatures(self, handle: Any) -> Any:
        self._gpu("nvmlDeviceGetGridLicensableFeatures", handle)
        features = [SimpleNamespace(featureState=0), SimpleNamespace(featureState=1)]
        return SimpleNamespace(licensableFeaturesCount=1, gridLicensableFeatures=features)

    def nvmlDeviceGetProcessUtilization(self, handle: Any, since_us: int) -> list[Any]:
        gpu = self._gpu("nvmlDeviceGetProcessUtilization", handle)
        if not gpu.process_utils:
            raise FakeError(NOT_FOUND)
        return [SimpleNamespace(pid=pid, timeStamp=at_us, smUtil=util) for pid, at_us, util in gpu.process_utils]

    def nvmlDeviceGetBrand(self, handle: Any) -> int:
        self._gpu("nvmlDeviceGetBrand", handle)
        return 14

    def nvmlDeviceGetVbiosVersion(self, handle: Any) -> str:
        self._gpu("nvmlDeviceGetVbiosVersion", handle)
        return "96.00.A5.00.1A"

    def c_nvmlGpmMetricsGet_t(self) -> Any:
        return SimpleNamespace(metrics=[SimpleNamespace(metricId=0, nvmlReturn=999, value=0.0) for _ in range(100)])

    def nvmlGpmQueryDeviceSupport(self, device: Any) -> Any:
        gpu = self._gpu("nvmlGpmQueryDeviceSupport", device)
        return SimpleNamespace(isSupportedDevice=int(gpu.has_performance_counters))

    def nvmlGpmSampleAlloc(self) -> Any:
        self._check("nvmlGpmSampleAlloc")
        self.open_samples += 1
        return SimpleNamespace(gpu=None, instance=None, is_open=True)

    def nvmlGpmSampleFree(self, sample: Any) -> None:
        self._check("nvmlGpmSampleFree")
        self.open_samples -= 1
        # The real library ends the process then.
        self.freed_twice += not sample.is_open
        sample.is_open = False

    def nvmlGpmSampleGet(self, device: Any, sample: Any) -> Any:
        sample.gpu = self._gpu("nvmlGpmSampleGet", device)
        return sample

    def nvmlGpmMigSampleGet(self, device: Any, instance: int, sample: Any) -> Any:
        sample.gpu, sample.instance = self._gpu("nvmlGpmMigSampleGet", device), instance
        return sample

    def nvmlGpmMetricsGet(self, request: Any) -> Any:
        """Metric 11 is not a number and metric 12 is not supported."""
        self._check("nvmlGpmMetricsGet")
        first, second = request.sample1, request.sample2
        assert (first.gpu, first.instance) == (second.gpu, second.instance)
        assert request.version == 1
        for metric in request.metrics[: request.numMetrics]:
            metric.nvmlReturn = NOT_SUPPORTED if metric.metricId == 12 else 0
            metric.value = math.nan if metric.metricId == 11 else second.gpu.activity + (first.instance or 0)
        return request

    def nvmlEventSetCreate(self) -> Any:
        self._check("nvmlEventSetCreate")
        self.open_event_sets += 1
        self.created_event_sets += 1
        return object()

    def nvmlDeviceRegisterEvents(self, handle: Any, types: int, events: Any) -> None:
        self._watched.add(self._gpu("nvmlDeviceRegisterEvents", handle).index)

    def nvmlEventSetWait(self, events: Any, timeout_ms: int) -> Any:
        self._check("nvmlEventSetWait")
        for event in self._events:
            if event.device.contents.number in self._watched:
                self._events.remove(event)
                return event
        raise FakeError(TIMEOUT)

    def nvmlEventSetFree(self, events: Any) -> None:
        self._check("nvmlEventSetFree")
        self.open_event_sets -= 1
        self._watched.clear()

    def _pointer(self, index: int) -> Any:
        return ctypes.pointer(self._cells[index])

    def _gpu(self, function: str, handle: Any) -> FakeGpu:
        index: int = handle.contents.number
        self._check(function, index)
        found: FakeGpu = self.gpus[index]
        return found

    def _check(self, function: str, gpu: int | None = None) -> None:
        code, only = self._faults.get(function, (0, None))
        if code and only in (None, gpu):
            raise FakeError(code)
