"""Reads the opaque configuration of claims for NVIDIA's driver (`resource.nvidia.com/v1beta1`), strictly.

A field that does not exist, or a value that is not allowed, is an error and never ignored. What is allowed but not
supported is refused by name: containers would otherwise run with other settings than the claim asks for. What a
supported configuration means for each device is computed by `claim_sharing`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from shoal.units.errors import UserError, Where
from shoal.units.quantity import Quantity

API_VERSION = "resource.nvidia.com/v1beta1"
Interval = Literal["Default", "Short", "Medium", "Long"]
DeviceType = Literal["gpu", "mig"]
_DEVICE_KEY = re.compile(r"[0-9]+|GPU-[0-9A-Fa-f-]+")


class _Strict(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    pass


class TimeSlicingConfig(_Strict, frozen=True):
    interval: Interval | None = None


class MpsConfig(_Strict, frozen=True):
    default_active_thread_percentage: Annotated[int, Meta(ge=0, le=100)] | None = None
    default_pinned_device_memory_limit: str | None = None
    default_per_device_pinned_memory_limit: dict[str, str] = {}


class GpuSharing(_Strict, frozen=True):
    strategy: Literal["TimeSlicing", "MPS"]
    time_slicing_config: TimeSlicingConfig | None = None
    mps_config: MpsConfig | None = None


class MigSharing(_Strict, frozen=True):
    strategy: Literal["TimeSlicing", "MPS"]
    mps_config: MpsConfig | None = None


class GpuConfig(_Strict, frozen=True, tag_field="kind", tag="GpuConfig"):
    api_version: Literal["resource.nvidia.com/v1beta1"]
    sharing: GpuSharing | None = None


class MigDeviceConfig(_Strict, frozen=True, tag_field="kind", tag="MigDeviceConfig"):
    api_version: Literal["resource.nvidia.com/v1beta1"]
    sharing: MigSharing | None = None


ClaimableConfig = GpuConfig | MigDeviceConfig


def read_claim_config(parameters: Mapping[str, Any], where: Where) -> ClaimableConfig:
    """Raises `UserError` for what the driver would refuse."""
    try:
        found: ClaimableConfig = msgspec.convert(dict(parameters), GpuConfig | MigDeviceConfig)
    except msgspec.ValidationError as error:
        fix = f"write a GpuConfig or MigDeviceConfig of {API_VERSION}"
        raise UserError(str(error), where=where, fix=fix) from error
    sharing = found.sharing
    if sharing is not None:
        _check_sharing(sharing, where.below("sharing"))
    return found


def check_supported(config: ClaimableConfig, device: DeviceType, where: Where) -> None:
    """Raises `UserError` if the configuration is for another type of device, or needs what this agent does not do."""
    wanted = "GpuConfig" if device == "gpu" else "MigDeviceConfig"
    if type(config).__name__ != wanted:
        given = type(config).__name__
        raise UserError(f"a {given} does not apply to a device of type {device}", where=where, fix=f"use a {wanted}")
    sharing = config.sharing
    if sharing is None:
        return
    if sharing.strategy == "MPS" and device == "mig":
        here = where.below("sharing").below("strategy")
        fix = "leave sharing out: the containers of the claim share the instance by time-slicing"
        raise UserError("MPS is not supported for MIG instances", where=here, fix=fix)


def _check_sharing(sharing: GpuSharing | MigSharing, where: Where) -> None:
    has_slices = isinstance(sharing, GpuSharing) and sharing.time_slicing_config is not None
    if sharing.strategy == "MPS" and has_slices:
        raise UserError("is only allowed with the strategy TimeSlicing", where=where.below("timeSlicingConfig"))
    mps = sharing.mps_config
    if mps is None:
        return
    here = where.below("mpsConfig")
    if sharing.strategy != "MPS":
        raise UserError("is only allowed with the strategy MPS", where=here)
    limits = {"defaultPinnedDeviceMemoryLimit": mps.default_pinned_device_memory_limit}
    for name, text in limits.items():
        if text is not None:
            _check_limit(text, here.below(name))
    there = here.below("defaultPerDevicePinnedMemoryLimit")
    for key, text in mps.default_per_device_pinned_memory_limit.items():
        if not _DEVICE_KEY.fullmatch(key):
            raise UserError("is neither the index nor the UUID of a GPU", where=there.key(key))
        _check_limit(text, there.key(key))


def _check_limit(text: str, where: Where) -> None:
    try:
        amount = Quantity.parse(text)
    except UserError as error:
        raise error.at(where) from error
    if amount.nano <= 0:
        raise UserError(f"must be greater than zero, got {text}", where=where)
