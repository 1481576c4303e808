"""Parses the flags of the device plugin and of feature discovery, and lists the values with which neither starts.

A value of the command line or environment comes before one of the file, and that before the default. The values are
checked when a program starts, as the originals do, because the file of a node may be completed by its environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.devices.plugin_resources import PluginConfigError, Refusal, whole
from shoal.units.durations import DurationError, nanoseconds

INFINITE = "infinite"
_NS = 10**9


class FeatureFlags(msgspec.Struct, frozen=True):
    """Of GPU feature discovery: `flags.gfd`."""

    oneshot: bool = False
    no_timestamp: bool = False
    sleep_interval_ns: int | None = 60 * _NS
    """None: infinite."""
    output_file: str = "/etc/kubernetes/node-feature-discovery/features.d/gfd"
    machine_type_file: str = "/sys/class/dmi/id/product_name"


class PluginFlags(msgspec.Struct, frozen=True):
    """All flags, with the originals' defaults: `flags` and `flags.plugin`."""

    mig_strategy: str = "none"
    fail_on_init_error: bool = True
    mps_root: str = ""
    driver_root: str = "/"
    dev_root: str = ""
    """Empty: the driver's root."""
    gdrcopy_enabled: bool = False
    gds_enabled: bool = False
    mofed_enabled: bool = False
    use_node_feature_api: bool = True
    device_discovery_strategy: str = "auto"
    pass_device_specs: bool = False
    device_list_strategy: tuple[str, ...] = ("envvar",)
    device_id_strategy: str = "uuid"
    cdi_annotation_prefix: str = "cdi.k8s.io/"
    nvidia_ctk_path: str = "/usr/bin/nvidia-ctk"
    container_driver_root: str = "/driver-root"
    shared_devices_allocation_policy: str = "distributed"
    features: FeatureFlags = FeatureFlags()


_COMMON = {
    "migStrategy": "mig_strategy",
    "failOnInitError": "fail_on_init_error",
    "mpsRoot": "mps_root",
    "nvidiaDriverRoot": "driver_root",
    "nvidiaDevRoot": "dev_root",
    "gdrcopyEnabled": "gdrcopy_enabled",
    "gdsEnabled": "gds_enabled",
    "mofedEnabled": "mofed_enabled",
    "useNodeFeatureAPI": "use_node_feature_api",
    "deviceDiscoveryStrategy": "device_discovery_strategy",
}
_PLUGIN = {
    "passDeviceSpecs": "pass_device_specs",
    "deviceListStrategy": "device_list_strategy",
    "deviceIDStrategy": "device_id_strategy",
    "cdiAnnotationPrefix": "cdi_annotation_prefix",
    "nvidiaCTKPath": "nvidia_ctk_path",
    "containerDriverRoot": "container_driver_root",
    "sharedDevicesAllocationPolicy": "shared_devices_allocation_policy",
}
_FEATURES = {
    "oneshot": "oneshot",
    "noTimestamp": "no_timestamp",
    "sleepInterval": "sleep_interval_ns",
    "outputFile": "output_file",
    "machineTypeFile": "machine_type_file",
}
_CDI = frozenset({"cdi-annotations", "cdi-cri"})
_ALLOWED: tuple[tuple[str, str, frozenset[str], Refusal], ...] = (
    ("device_list_strategy", "device-list-strategy", _CDI | {"envvar", "volume-mounts"}, "device-list-strategy"),
    ("device_id_strategy", "device-id-strategy", frozenset({"uuid", "index"}), "device-id-strategy"),
    (
        "device_discovery_strategy",
        "device-discovery-strategy",
        frozenset({"auto", "nvml", "tegra"}),
        "device-discovery-strategy",
    ),
    (
        "shared_devices_allocation_policy",
        "shared-devices-allocation-policy",
        frozenset({"distributed", "packed"}),
        "allocation-policy",
    ),
)
MIG_STRATEGIES = frozenset({"none", "single", "mixed"})


class GivenFlags(msgspec.Struct, frozen=True):
    """The flags that a file sets, by the names of `PluginFlags` and `FeatureFlags`."""

    plugin: Mapping[str, Any] = {}
    features: Mapping[str, Any] = {}
    unknown: tuple[str, ...] = ()
    """Fields that the originals ignore."""

    def over(self, defaults: PluginFlags) -> PluginFlags:
        features = msgspec.structs.replace(defaults.features, **self.features)
        return msgspec.structs.replace(defaults, **self.plugin, features=features)


def given_flags(flags: Any) -> GivenFlags:
    own = mapping(flags, "flags")
    plugin, gfd = mapping(_field(own, "plugin"), "flags.plugin"), mapping(_field(own, "gfd"), "flags.gfd")
    names = (*_COMMON, "plugin", "gfd")
    return GivenFlags(
        plugin={**_read(own, _COMMON, PluginFlags(), "flags"), **_read(plugin, _PLUGIN, PluginFlags(), "flags.plugin")},
        features=_read(gfd, _FEATURES, FeatureFlags(), "flags.gfd"),
        unknown=(
            *unknown_fields(own, names, "flags"),
            *unknown_fields(plugin, tuple(_PLUGIN), "flags.plugin"),
            *unknown_fields(gfd, tuple(_FEATURES), "flags.gfd"),
        ),
    )


def check_flags(flags: PluginFlags, *, is_mps: bool, has_nvml: bool = True) -> None:
    """Raises `PluginConfigError` for values with which the plugin does not start."""
    for field, name, allowed, refusal in _ALLOWED:
        value = getattr(flags, field)
        for one in value if isinstance(value, tuple) else (value,):
            if one not in allowed:
                what = f"invalid --{name} option: {one}; expected {', '.join(sorted(allowed))}"
                raise PluginConfigError(what, refusal)
    if _CDI & {*flags.device_list_strategy} and not has_nvml:
        what = "CDI --device-list-strategy options are only supported on NVML-based systems"
        raise PluginConfigError(what, "cdi-without-nvml")
    if is_mps and flags.mig_strategy == "mixed":
        raise PluginConfigError("using --mig-strategy=mixed is not supported with MPS", "mps-with-mixed")
    if is_mps and not flags.mps_root:
        raise PluginConfigError("using MPS requires --mps-root to be specified", "mps-root")
    check_mig_strategy(flags.mig_strategy)


def check_mig_strategy(strategy: str) -> None:
    if strategy not in MIG_STRATEGIES:
        what = f"unknown strategy: {strategy}; migStrategy is {', '.join(sorted(MIG_STRATEGIES))}"
        raise PluginConfigError(what, "mig-strategy")


def mapping(value: Any, where: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise PluginConfigError(f"{where}: expected a map", "type")
    return value


def unknown_fields(given: Mapping[str, Any], names: tuple[str, ...], where: str) -> list[str]:
    known = {name.lower() for name in names}
    return [f"{where}.{name}" if where else name for name in given if name.lower() not in known]


def _field(given: Mapping[str, Any], name: str) -> Any:
    """Names are compared without regard to case, as Go's decoder does."""
    if name in given:
        return given[name]
    return next((value for key, value in given.items() if key.lower() == name.lower()), None)


def _read(given: Mapping[str, Any], names: Mapping[str, str], defaults: msgspec.Struct, where: str) -> dict[str, Any]:
    found = {}
    for spelled, name in names.items():
        value = _field(given, spelled)
        if value is not None:
            found[name] = _value(value, name, getattr(defaults, name), f"{where}.{spelled}")
    return found


def _value(value: Any, name: str, default: Any, where: str) -> Any:
    if name == "sleep_interval_ns":
        return interval_ns(value, where)
    if isinstance(default, tuple):
        listed = value if isinstance(value, list) else [value]
        if not all(isinstance(one, str) for one in listed):
            what = f"{where}: invalid deviceListStrategy: {value}; expected a string or a list of strings"
            raise PluginConfigError(what, "type")
        return tuple(listed)
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise PluginConfigError(f"{where}: expected true or false", "type")
        return value
    if isinstance(value, bool | Mapping | list):
        raise PluginConfigError(f"{where}: expected a string", "type")
    return str(value)


def interval_ns(value: Any, where: str) -> int | None:
    """None: infinite. Raises `PluginConfigError`."""
    if value == INFINITE:
        return None
    number = whole(value)
    if number is not None:
        return number
    if not isinstance(value, str):
        raise PluginConfigError(f"{where}: invalid duration", "duration")
    try:
        return nanoseconds(value)
    except DurationError as error:
        raise PluginConfigError(f"{where}: {error}", "duration") from error
