"""Reads and sets compute modes by NVIDIA's management library, which is given and initialized."""

from __future__ import annotations

from typing import Protocol, cast

from shoal.agent import nvml_library
from shoal.agent.nvml_library import Handle, NvmlLibrary, code_of, complete
from shoal.devices.compute_mode import COMPUTE_MODES, ComputeMode, ComputeModeError

_REASONS = {
    nvml_library.NOT_SUPPORTED: "the GPU or its driver does not support it",
    nvml_library.NO_PERMISSION: "no permission; run as root",
    nvml_library.NOT_FOUND: "there is no such GPU",
    nvml_library.GPU_IS_LOST: "the GPU does not respond",
}


class NvmlModeLibrary(NvmlLibrary, Protocol):
    """What is called in addition to the functions that only read."""

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Handle: ...
    def nvmlDeviceGetComputeMode(self, handle: Handle) -> int: ...
    def nvmlDeviceSetComputeMode(self, handle: Handle, mode: int) -> None: ...


class NvmlComputeModes:
    """Implements ComputeModes."""

    def __init__(self, library: NvmlModeLibrary) -> None:
        self._library = cast("NvmlModeLibrary", complete(library))

    def mode(self, uuid: str) -> ComputeMode:
        library = self._library
        try:
            number = library.nvmlDeviceGetComputeMode(library.nvmlDeviceGetHandleByUUID(uuid))
        except library.NVMLError as error:
            raise _failure(f"cannot read the compute mode of {uuid}", error) from error
        if number >= len(COMPUTE_MODES):
            raise ComputeModeError(f"cannot read the compute mode of {uuid}: the driver reports the number {number}")
        return COMPUTE_MODES[number]

    def set_mode(self, uuid: str, mode: ComputeMode) -> None:
        library = self._library
        try:
            handle = library.nvmlDeviceGetHandleByUUID(uuid)
            library.nvmlDeviceSetComputeMode(handle, COMPUTE_MODES.index(mode))
        except library.NVMLError as error:
            raise _failure(f"cannot set the compute mode of {uuid} to {mode}", error) from error


def _failure(what: str, error: Exception) -> ComputeModeError:
    return ComputeModeError(f"{what}: {_REASONS.get(code_of(error), str(error))}")
