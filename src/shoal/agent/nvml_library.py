"""Opens NVIDIA's management library, and defines the functions of it that Shoal calls.

The library is the module `pynvml` of the package nvidia-ml-py. It reads only; no function here changes a GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from shoal.units.errors import UserError

NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, DRIVER_NOT_LOADED, TIMEOUT = 3, 4, 6, 9, 10
LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH, GPU_NOT_FOUND, UNKNOWN = (
    12,
    13,
    15,
    16,
    18,
    28,
    999,
)

Handle = Any
"""A GPU, a MIG device or an event set, as the library refers to it."""


class NvmlLibrary(Protocol):
    @property
    def NVMLError(self) -> type[Exception]:
        """Every function raises it; its `value` is the code."""
        ...

    def nvmlInit(self) -> None: ...
    def nvmlShutdown(self) -> None: ...
    def nvmlSystemGetDriverVersion(self) -> str: ...
    def nvmlSystemGetCudaDriverVersion(self) -> int: ...
    def nvmlDeviceGetCount(self) -> int: ...
    def nvmlDeviceGetHandleByIndex(self, index: int) -> Handle: ...
    def nvmlDeviceGetUUID(self, handle: Handle) -> str: ...
    def nvmlDeviceGetName(self, handle: Handle) -> str: ...
    def nvmlDeviceGetSerial(self, handle: Handle) -> str: ...
    def nvmlDeviceGetMinorNumber(self, handle: Handle) -> int: ...
    def nvmlDeviceGetPciInfo(self, handle: Handle) -> Any: ...
    def nvmlDeviceGetCudaComputeCapability(self, handle: Handle) -> tuple[int, int]: ...
    def nvmlDeviceGetMemoryInfo(self, handle: Handle, version: int | None = None) -> Any: ...
    def nvmlDeviceGetUtilizationRates(self, handle: Handle) -> Any: ...
    def nvmlDeviceGetTemperature(self, handle: Handle, sensor: int) -> int: ...
    def nvmlDeviceGetPowerUsage(self, handle: Handle) -> int: ...
    def nvmlDeviceGetEnforcedPowerLimit(self, handle: Handle) -> int: ...
    def nvmlDeviceGetClockInfo(self, handle: Handle, kind: int) -> int: ...
    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Handle) -> int: ...
    def nvmlDeviceGetTotalEccErrors(self, handle: Handle, kind: int, counter: int) -> int: ...
    def nvmlDeviceGetRemappedRows(self, handle: Handle) -> tuple[int, int, int, int]: ...
    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: Handle) -> int: ...
    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Handle) -> int: ...
    def nvmlDeviceGetComputeRunningProcesses(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetFieldValues(self, handle: Handle, fields: Sequence[int]) -> Sequence[Any]: ...
    def nvmlDeviceGetNvLinkState(self, device: Handle, link: int) -> int: ...
    def nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: Handle, link: int) -> int: ...
    def nvmlDeviceGetNvLinkRemotePciInfo(self, device: Handle, link: int) -> Any: ...
    def nvmlDeviceGetTopologyCommonAncestor(self, device1: Handle, device2: Handle) -> int: ...
    def c_nvmlGpuFabricInfo_t(self) -> Any:
        """The structure that the next function fills."""
        ...

    def nvmlDeviceGetGpuFabricInfo(self, device: Handle, info: Any) -> None: ...
    def nvmlDeviceGetMigMode(self, device: Handle) -> Sequence[int]: ...
    def nvmlDeviceGetMaxMigDeviceCount(self, device: Handle) -> int: ...
    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Handle, index: int) -> Handle: ...
    def nvmlDeviceGetGpuInstanceId(self, device: Handle) -> int: ...
    def nvmlDeviceGetComputeInstanceId(self, device: Handle) -> int: ...
    def nvmlDeviceGetAttributes(self, device: Handle) -> Any: ...
    def nvmlDeviceGetGpuInstanceById(self, device: Handle, number: int) -> Handle: ...
    def nvmlGpuInstanceGetInfo(self, instance: Handle) -> Any: ...
    def nvmlEventSetCreate(self) -> Handle: ...
    def nvmlDeviceRegisterEvents(self, handle: Handle, types: int, events: Handle) -> None: ...
    def nvmlEventSetWait(self, events: Handle, timeout_ms: int) -> Any: ...
    def nvmlEventSetFree(self, events: Handle) -> None: ...


class _Complete:
    """A module in which a function that it lacks fails, as one does that the driver lacks."""

    def __init__(self, library: NvmlLibrary) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._library, name, None)
        return self._fail if found is None else found

    def _fail(self, *_: object) -> None:
        raise self._library.NVMLError(FUNCTION_NOT_FOUND)


def complete(library: NvmlLibrary) -> NvmlLibrary:
    """The library with all functions: older versions of its module have fewer."""
    return cast("NvmlLibrary", _Complete(library))


def code_of(error: Exception) -> int:
    """The library's code of an error."""
    value = getattr(error, "value", UNKNOWN)
    return value if isinstance(value, int) else UNKNOWN


def identity(handle: Handle) -> object:
    """Equal for two handles of one GPU: the library gives a new pointer object at each call."""
    return ctypes.cast(handle, ctypes.c_void_p).value


def nvml_library() -> NvmlLibrary:
    """The library of this Python environment, not yet initialized."""
    try:
        return cast("NvmlLibrary", import_module("pynvml"))
    except ImportError as error:
        raise UserError(
            "the Python package nvidia-ml-py is not installed", fix="install it with: pip install 'shoal[agent]'"
        ) from error


def initialize(library: NvmlLibrary) -> None:
    """Connect to the driver; without one, a `UserError` says why and what to do."""
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        what, fix = _NO_DRIVER.get(code_of(error), (f"NVIDIA's driver does not respond: {error}", _LOOK))
        raise UserError(what, fix=fix) from error


_LOOK = "run nvidia-smi on this machine and correct what it reports"
_NO_DRIVER = {
    LIBRARY_NOT_FOUND: (
        "no NVIDIA driver was found: libnvidia-ml.so.1 does not exist on this machine",
        "install NVIDIA's driver; start a container with NVIDIA's runtime and NVIDIA_DRIVER_CAPABILITIES=utility",
    ),
    DRIVER_NOT_LOADED: (
        "NVIDIA's driver is installed but its kernel module is not loaded",
        "load it with: modprobe nvidia; if this fails, see dmesg",
    ),
    VERSION_MISMATCH: (
        "the versions of NVIDIA's library and of its loaded kernel module differ",
        "restart the machine or reload the module; this is usual after an update of the driver",
    ),
    NO_PERMISSION: (
        "no permission to use NVIDIA's driver",
        "run as root, or grant read and write permission on /dev/nvidiactl and /dev/nvidia*",
    ),
}
