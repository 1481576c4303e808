"""Reads the performance counters of GPUs and MIG instances by NVIDIA's management library (GPM, Hopper and later).

A value is the activity between two samples of a device, so the first reading of each has none. Samples that are too
near to each other are not compared, and the result of the last comparison remains. A value that the library does not
report, or that is not a number, is None.

Guarantees: each sample is freed once, also if several threads read one device: the second one gets the last result,
because it would compare and free the sample that the first one uses.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

import msgspec

from shoal.agent.nvml_library import Handle, NvmlLibrary
from shoal.devices.port import Profiling

_VERSION = 1
_SHORTEST_S = 0.1
"""The library compares no samples that are nearer to each other."""
_MIB = 2**20
_PERCENT: Mapping[str, int] = {
    "graphics": 1,
    "sm": 2,
    "sm_occupancy": 3,
    "integer": 4,
    "tensor": 5,
    "tensor_dfma": 6,
    "tensor_hmma": 7,
    "tensor_imma": 9,
    "dram": 10,
    "fp64": 11,
    "fp32": 12,
    "fp16": 13,
}
_MIB_PER_S: Mapping[str, int] = {
    "pcie_tx_bytes_s": 20,
    "pcie_rx_bytes_s": 21,
    "nvlink_rx_bytes_s": 60,
    "nvlink_tx_bytes_s": 61,
}
_METRICS = {**_PERCENT, **_MIB_PER_S}


class _Sampled(msgspec.Struct):
    sample: Any
    at_s: float
    result: Profiling | None = None


class NvmlProfiling:
    def __init__(
        self, library: NvmlLibrary, value: Callable[..., Any], seconds: Callable[[], float] = monotonic
    ) -> None:
        """`value` calls a function of the library and handles its errors."""
        self._library, self._value, self._seconds = library, value, seconds
        self._supported: dict[str, bool] = {}
        self._last: dict[tuple[str, int | None], _Sampled] = {}
        self._in_use: dict[tuple[str, int | None], threading.Lock] = {}

    def read(self, uuid: str, handle: Handle, instance: int | None = None) -> Profiling | None:
        """`instance`: the number of the GPU instance; None: the whole GPU."""
        if not self._is_supported(uuid, handle):
            return None
        device = uuid, instance
        lock = self._in_use.setdefault(device, threading.Lock())
        if not lock.acquire(blocking=False):
            last = self._last.get(device)
            return None if last is None else last.result
        try:
            return self._sampled(device, handle)
        finally:
            lock.release()

    def _sampled(self, device: tuple[str, int | None], handle: Handle) -> Profiling | None:
        last, now_s = self._last.get(device), self._seconds()
        if last is not None and now_s - last.at_s < _SHORTEST_S:
            return last.result
        sample = self._value(self._library.nvmlGpmSampleAlloc)
        if sample is None:
            return None
        unused = sample
        try:
            if self._is_taken(device[1], handle, sample):
                result = None if last is None else self._compared(last.sample, sample)
                self._last[device] = _Sampled(sample, now_s, result)
                unused = None if last is None else last.sample
                return result
            return None
        finally:
            if unused is not None:
                self._value(self._library.nvmlGpmSampleFree, unused)

    def _is_taken(self, instance: int | None, handle: Handle, sample: Any) -> bool:
        if instance is None:
            return self._value(self._library.nvmlGpmSampleGet, handle, sample) is not None
        return self._value(self._library.nvmlGpmMigSampleGet, handle, instance, sample) is not None

    def forget(self) -> None:
        for sampled in self._last.values():
            self._value(self._library.nvmlGpmSampleFree, sampled.sample)
        self._last.clear()

    def _is_supported(self, uuid: str, handle: Handle) -> bool:
        if uuid not in self._supported:
            support = self._value(self._library.nvmlGpmQueryDeviceSupport, handle)
            self._supported[uuid] = support is not None and bool(support.isSupportedDevice)
        return self._supported[uuid]

    def _compared(self, first: Any, second: Any) -> Profiling | None:
        request = self._value(self._library.c_nvmlGpmMetricsGet_t)
        if request is None:
            return None
        request.version, request.numMetrics = _VERSION, len(_METRICS)
        request.sample1, request.sample2 = first, second
        for place, number in enumerate(_METRICS.values()):
            request.metrics[place].metricId = number
        if self._value(self._library.nvmlGpmMetricsGet, request) is None:
            return None
        found = {name: _number(request.metrics[place]) for place, name in enumerate(_METRICS)}
        return Profiling(
            **{name: _scaled(found[name], 0.01) for name in _PERCENT},
            **{name: _scaled(found[name], _MIB) for name in _MIB_PER_S},
        )


def _number(metric: Any) -> float | None:
    value = float(metric.value)
    return value if metric.nvmlReturn == 0 and math.isfinite(value) else None


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
