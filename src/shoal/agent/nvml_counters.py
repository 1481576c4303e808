"""Reads counters of one GPU by NVIDIA's management library: NVLink, reduced clocks, retired pages, use per process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shoal.agent.nvml_library import Handle, NvmlLibrary
from shoal.devices.port import NvlinkCounters, RetiredPages, Violations

_KIB = 1024
_ALL_LINKS = 0xFFFFFFFF
_LINK_FIELDS: Mapping[str, tuple[int, int]] = {
    "tx_bytes": (138, _ALL_LINKS),
    "rx_bytes": (139, _ALL_LINKS),
    "crc_flit_errors": (38, 0),
    "crc_data_errors": (45, 0),
    "replay_errors": (52, 0),
    "recovery_errors": (59, 0),
}
"""The field, and the link of which it is read."""
_POLICIES = ("power_ns", "thermal_ns", "sync_boost_ns", "board_limit_ns", "low_utilization_ns", "reliability_ns")
"""In the order of the library's numbers."""
_SINGLE_BIT, _DOUBLE_BIT = 0, 1
_BRANDS = {1: "Quadro", 2: "Tesla", 3: "NVS", 4: "GRID", 5: "GeForce", 6: "Titan", 14: "NVIDIA"}


class NvmlCounters:
    def __init__(self, library: NvmlLibrary, value: Callable[..., Any]) -> None:
        """`value` calls a function of the library and handles its errors."""
        self._library, self._value = library, value

    def engine(self, get: Callable[..., Any], handle: Handle) -> int | None:
        """The use of an encoder or decoder in percent."""
        found = self._value(get, handle)
        return None if found is None else int(found[0])

    def nvlink(self, handle: Handle) -> NvlinkCounters | None:
        """None for a GPU whose first link does not exist."""
        if self._value(self._library.nvmlDeviceGetNvLinkState, handle, 0) is None:
            return None
        # The library fills a list of pairs of a field and its link.
        fields: Any = list(_LINK_FIELDS.values())
        found = self._value(self._library.nvmlDeviceGetFieldValues, handle, fields)
        if found is None:
            return None
        values = {
            name: int(one.value.ullVal) if one.nvmlReturn == 0 else None
            for name, one in zip(_LINK_FIELDS, found, strict=True)
        }
        for name in ("tx_bytes", "rx_bytes"):
            kib = values[name]
            values[name] = None if kib is None else kib * _KIB
        return NvlinkCounters(**values)

    def violations(self, handle: Handle) -> Violations | None:
        found = {}
        for policy, name in enumerate(_POLICIES):
            status = self._value(self._library.nvmlDeviceGetViolationStatus, handle, policy)
            found[name] = None if status is None else int(status.violationTime)
        violations = Violations(**found)
        return None if violations == Violations() else violations

    def retired_pages(self, handle: Handle) -> RetiredPages | None:
        """None for GPUs that remap rows instead."""
        single, double = (
            self._value(self._library.nvmlDeviceGetRetiredPages, handle, cause) for cause in (_SINGLE_BIT, _DOUBLE_BIT)
        )
        if single is None or double is None:
            return None
        pending = self._value(self._library.nvmlDeviceGetRetiredPagesPendingStatus, handle)
        return RetiredPages(len(single), len(double), None if pending is None else bool(pending))

    def is_vgpu_licensed(self, handle: Handle) -> bool | None:
        found = self._value(self._library.nvmlDeviceGetGridLicensableFeatures, handle)
        if found is None:
            return None
        features = found.gridLicensableFeatures[: found.licensableFeaturesCount]
        return any(bool(feature.featureState) for feature in features)

    def process_utils(self, handle: Handle) -> Mapping[int, int] | None:
        """The last use of the multiprocessors in percent, by process."""
        found = self._value(self._library.nvmlDeviceGetProcessUtilization, handle, 0)
        if found is None:
            return None
        return {one.pid: one.smUtil for one in sorted(found, key=lambda one: int(one.timeStamp))}


def brand_name(number: int | None) -> str | None:
    return None if number is None else _BRANDS.get(number)
