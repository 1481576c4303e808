"""Uses one GPU by the driver's library, without a CUDA toolkit and without a framework.

The library is called by ctypes. The kernel is in PTX, which the driver compiles for its GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_LIBRARIES = ("libcuda.so.1", "libcuda.so")
_NO_DEVICE = 100
_MAJOR, _MINOR = 75, 76
_NEWEST_TARGET = (7, 5)
_BLOCK = 256
_NAME_BYTES = 128
# Each thread computes x = x / 2 + 1 repeatedly, which leads to 2 from any x.
_KERNEL = """
.version 6.3
.target sm_{target}
.address_size 64
.visible .entry work(.param .u64 data, .param .u32 count, .param .u32 rounds)
{{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [count];
  ld.param.u32 %r2, [rounds];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r3, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r3, %r1;
  @%p1 bra END;
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd2, %r3, 4;
  add.s64 %rd1, %rd1, %rd2;
  ld.global.f32 %f1, [%rd1];
  mov.u32 %r6, 0;
NEXT:
  setp.ge.u32 %p2, %r6, %r2;
  @%p2 bra STORE;
  fma.rn.f32 %f1, %f1, 0f3F000000, 0f3F800000;
  add.u32 %r6, %r6, 1;
  bra NEXT;
STORE:
  st.global.f32 [%rd1], %f1;
END:
  ret;
}}
"""
KERNEL_RESULT = 2.0
"""After 32 rounds or more."""


class GpuError(Exception):
    """There is no GPU to use, or a call failed."""


class CudaGpu:
    """The first visible GPU or MIG instance. All methods raise `GpuError`."""

    def __init__(self, load: Callable[[str], Any] = ctypes.CDLL) -> None:
        self._library = _library(load)
        self._device = ctypes.c_int()
        context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(self._device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)
        capability = (self._attribute(_MAJOR), self._attribute(_MINOR))
        major, minor = min(capability, _NEWEST_TARGET)
        text = _KERNEL.format(target=f"{major}{minor}").encode()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(text))
        self._call("cuModuleGetFunction", ctypes.byref(kernel), module, b"work")
        self._kernel = kernel

    @property
    def name(self) -> str:
        text = ctypes.create_string_buffer(_NAME_BYTES)
        self._call("cuDeviceGetName", text, _NAME_BYTES, self._device)
        return text.value.decode()

    def allocate(self, size: int) -> ctypes.c_uint64:
        """Memory of the GPU, filled with zeros."""
        memory = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
        self._call("cuMemsetD8_v2", memory, ctypes.c_ubyte(0), ctypes.c_size_t(size))
        return memory

    def to_gpu(self, memory: ctypes.c_uint64, data: Any) -> None:
        self._call("cuMemcpyHtoD_v2", memory, data, ctypes.c_size_t(ctypes.sizeof(data)))

    def from_gpu(self, data: Any, memory: ctypes.c_uint64) -> None:
        """Returns after all that was started before has ended."""
        self._call("cuMemcpyDtoH_v2", data, memory, ctypes.c_size_t(ctypes.sizeof(data)))

    def clear(self, memory: ctypes.c_uint64, size: int) -> None:
        self._call("cuMemsetD8_v2", memory, ctypes.c_ubyte(0), ctypes.c_size_t(size))

    def start(self, memory: ctypes.c_uint64, count: int, rounds: int) -> None:
        """Start the kernel with one thread for each of `count` numbers."""
        given = (ctypes.c_uint64(memory.value), ctypes.c_uint32(count), ctypes.c_uint32(rounds))
        parameters = (ctypes.c_void_p * len(given))(*(ctypes.addressof(one) for one in given))
        blocks = -(-count // _BLOCK)
        self._call("cuLaunchKernel", self._kernel, blocks, 1, 1, _BLOCK, 1, 1, 0, None, parameters, None)

    def close(self) -> None:
        self._call("cuDevicePrimaryCtxRelease_v2", self._device)

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
        return value.value

    def _call(self, name: str, *given: Any) -> None:
        code = getattr(self._library, name)(*given)
        if code == _NO_DEVICE:
            raise GpuError("no GPU is visible to this process: check CUDA_VISIBLE_DEVICES and nvidia-smi")
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            raise GpuError(f"{name} failed: {text.value.decode() if text.value else 'unknown error'} ({code})")


def _library(load: Callable[[str], Any]) -> Any:
    for name in _LIBRARIES:
        try:
            return load(name)
        except OSError:
            continue
    raise GpuError("libcuda.so.1 was not found: install NVIDIA's driver, or run this on a machine with a GPU")
