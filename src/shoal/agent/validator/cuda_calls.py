"""A CUDA program that uses each visible GPU: it writes memory on the GPU, copies it back and compares it.

It prints one JSON document, the fields of `CudaResult`. It calls the driver's library by ctypes, so it needs no CUDA
toolkit.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from typing import Any

_BYTES = 2**20
_PATTERN = 0x5A
_LIBRARIES = ("libcuda.so.1", "libcuda.so")
_NO_DEVICE, _UNKNOWN, _SYSTEM_NOT_READY = 100, 999, 802
_FIXES = {
    _NO_DEVICE: "no GPU is visible to this process: check NVIDIA_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES",
    _SYSTEM_NOT_READY: "the NVLink switches are not ready: start the service nvidia-fabricmanager",
    _UNKNOWN: "load the module nvidia-uvm (nvidia-modprobe -u), and see dmesg for Xids",
}


class _CallError(Exception):
    def __init__(self, name: str, code: int) -> None:
        super().__init__(name)
        self.name, self.code = name, code


def main(load: Callable[[str], Any] = ctypes.CDLL) -> int:
    sys.stdout.write(json.dumps(_result(load)) + "\n")
    return 0


def _result(load: Callable[[str], Any]) -> dict[str, str]:
    library = _library(load)
    if library is None:
        return {
            "error": "libcuda.so.1 was not found",
            "fix": "install the CUDA library of the driver; in a container, NVIDIA_DRIVER_CAPABILITIES needs compute",
        }
    try:
        count = _used(library)
    except _CallError as error:
        return {"error": f"{error.name} failed: {_name(library, error.code)}", "fix": _FIXES.get(error.code, "")}
    return {"message": f"memory of {count} GPUs was written and read back"}


def _library(load: Callable[[str], Any]) -> Any:
    for name in _LIBRARIES:
        try:
            return load(name)
        except OSError:
            continue
    return None


def _used(library: Any) -> int:
    """Uses every GPU; returns their number."""
    count = ctypes.c_int()
    _call(library, "cuInit", 0)
    _call(library, "cuDeviceGetCount", ctypes.byref(count))
    if not count.value:
        raise _CallError("cuDeviceGetCount", _NO_DEVICE)
    for index in range(count.value):
        device, context = ctypes.c_int(), ctypes.c_void_p()
        _call(library, "cuDeviceGet", ctypes.byref(device), index)
        _call(library, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        try:
            _call(library, "cuCtxSetCurrent", context)
            _write_and_read(library)
        finally:
            _call(library, "cuDevicePrimaryCtxRelease_v2", device)
    return count.value


def _write_and_read(library: Any) -> None:
    memory, copy = ctypes.c_uint64(), ctypes.create_string_buffer(_BYTES)
    _call(library, "cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(_BYTES))
    try:
        _call(library, "cuMemsetD8_v2", memory, ctypes.c_ubyte(_PATTERN), ctypes.c_size_t(_BYTES))
        _call(library, "cuMemcpyDtoH_v2", copy, memory, ctypes.c_size_t(_BYTES))
    finally:
        _call(library, "cuMemFree_v2", memory)
    if copy.raw != bytes([_PATTERN]) * _BYTES:
        raise _CallError("the comparison of the copied memory", _UNKNOWN)


def _call(library: Any, name: str, *given: Any) -> None:
    code = getattr(library, name)(*given)
    if code:
        raise _CallError(name, code)


def _name(library: Any, code: int) -> str:
    text = ctypes.c_char_p()
    if library.cuGetErrorName(code, ctypes.byref(text)) == 0 and text.value:
        return f"{text.value.decode(errors='replace')} ({code})"
    return f"error {code}"


if __name__ == "__main__":
    sys.exit(main())
