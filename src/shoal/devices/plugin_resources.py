"""Parses how the device plugin's configuration shares resources: their names, replicas and devices.

What is refused, and in which words, follows the plugin. `rename` and `devices` of a resource are parsed because a
mistake in them is an error; the plugin then ignores both (`without_ignored`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from shoal.api.names import object_name_fault
from shoal.devices.names import DOMAIN, SHARED_SUFFIX

Refusal = Literal[
    "allocation-policy",
    "cdi-without-nvml",
    "device-discovery-strategy",
    "device-id-strategy",
    "device-list-strategy",
    "devices",
    "duration",
    "imex-channels",
    "mig-strategy",
    "missing-name",
    "missing-replicas",
    "mps-clients",
    "mps-root",
    "mps-with-mixed",
    "no-resources",
    "replicas",
    "replicas-too-few",
    "replicas-too-many",
    "resource-name",
    "syntax",
    "type",
    "version",
]
_LONGEST_NAME = 63
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_INDEX = re.compile(r"[0-9]{1,19}(?::[0-9]{1,19})?")
_OLD_MIG = re.compile(r"MIG-(GPU-[^/]+)/[0-9]+/[0-9]+")


class PluginConfigError(Exception):
    """The plugin would not start with this."""

    def __init__(self, message: str, refusal: Refusal) -> None:
        super().__init__(message)
        self.refusal = refusal


class SharedResource(msgspec.Struct, frozen=True):
    name: str
    """`nvidia.com/gpu`."""
    replicas: int
    devices: Literal["all"] | int | tuple[str, ...] = "all"
    """All, a number of them, or indexes and UUIDs."""
    rename: str = ""


class SharingBlock(msgspec.Struct, frozen=True):
    """`timeSlicing` or `mps`."""

    resources: tuple[SharedResource, ...]
    rename_by_default: bool = False
    one_per_request: bool | None = None
    """`failRequestsGreaterThanOne`; None: not set."""


def sharing_block(given: Mapping[str, Any], where: str) -> SharingBlock:
    rename = _flag(given, "renameByDefault", where)
    listed = given.get("resources")
    if listed is not None and not isinstance(listed, list):
        raise PluginConfigError(f"{where}.resources: expected a list", "type")
    if not listed:
        raise PluginConfigError("no resources specified", "no-resources")
    resources = (_resource(one, f"{where}.resources[{index}]") for index, one in enumerate(listed))
    return SharingBlock(
        resources=tuple(_renamed(one) if rename and not one.rename else one for one in resources),
        rename_by_default=bool(rename),
        one_per_request=_flag(given, "failRequestsGreaterThanOne", where),
    )


def without_ignored(block: SharingBlock) -> tuple[SharingBlock, tuple[str, ...]]:
    """What the plugin follows, and a note about each resource of which it ignores something."""
    kept: list[SharedResource] = []
    notes: list[str] = []
    for one in block.resources:
        plain = SharedResource(one.name, one.replicas)
        used = _renamed(plain) if block.rename_by_default else plain
        ignored = [field for field in ("devices", "rename") if getattr(one, field) != getattr(used, field)]
        if ignored:
            notes.append(f"{one.name}: the device plugin ignores {' and '.join(ignored)}")
        kept.append(used)
    return msgspec.structs.replace(block, resources=tuple(kept)), tuple(notes)


def resource_name(given: Any, where: str) -> str:
    """The full name; the domain may be left out."""
    if not isinstance(given, str):
        raise PluginConfigError(f"{where}: expected a string", "resource-name")
    name = given if given.startswith(DOMAIN) else DOMAIN + given
    if len(name) > _LONGEST_NAME:
        what = f"fully-qualified resource name must be {_LONGEST_NAME} characters or less: {name}"
        raise PluginConfigError(what, "resource-name")
    fault = object_name_fault(name.removeprefix(DOMAIN))
    if fault:
        raise PluginConfigError(f"incorrect format for resource name '{name}': {fault}", "resource-name")
    return name


def _resource(given: Any, where: str) -> SharedResource:
    if not isinstance(given, Mapping):
        raise PluginConfigError(f"{where}: expected a map", "type")
    if given.get("name") is None:
        raise PluginConfigError("no resource name specified", "missing-name")
    if given.get("replicas") is None:
        raise PluginConfigError(f"no replicas specified: {where}", "missing-replicas")
    name = resource_name(given["name"], f"{where}.name")
    devices = _devices(given.get("devices", "all"), f"{where}.devices")
    replicas = whole(given["replicas"])
    if replicas is None:
        raise PluginConfigError(f"{where}.replicas: expected a whole number", "replicas")
    if replicas < 2:
        raise PluginConfigError(f"number of replicas must be >= 2: {name}", "replicas-too-few")
    rename = resource_name(given["rename"], f"{where}.rename") if given.get("rename") is not None else ""
    return SharedResource(name, replicas, devices, rename)


def _devices(given: Any, where: str) -> Literal["all"] | int | tuple[str, ...]:
    if given == "all":
        return "all"
    if isinstance(given, str):
        raise PluginConfigError(f"{where}: devices is '{given}' but not 'all'", "devices")
    if isinstance(given, list):
        return tuple(_devices_in_list(given, where))
    count = whole(given)
    if count is None:
        raise PluginConfigError(f"{where}: devices is neither 'all' nor a number nor a list", "devices")
    if count <= 0:
        raise PluginConfigError(f"{where}: devices is a number but not above 0: {count}", "devices")
    return count


def _devices_in_list(given: Sequence[Any], where: str) -> Iterator[str]:
    for index, one in enumerate(given):
        number = whole(one)
        if number is not None and number >= 0:
            yield str(number)
        elif isinstance(one, str) and (_INDEX.fullmatch(one) or _is_uuid(one)):
            yield one
        else:
            what = f"unsupported type for device in devices list: {one}; expected an index such as 0 or 0:1, or a UUID"
            raise PluginConfigError(f"{where}[{index}]: {what}", "devices")


def _is_uuid(text: str) -> bool:
    """`GPU-...`, `MIG-...`, or `MIG-GPU-.../1/0` of old drivers."""
    old = _OLD_MIG.fullmatch(text)
    own = old[1] if old is not None else text
    return own.startswith(("GPU-", "MIG-")) and _UUID.fullmatch(own[4:]) is not None


def _renamed(resource: SharedResource) -> SharedResource:
    return msgspec.structs.replace(resource, rename=resource.name + SHARED_SUFFIX)


def _flag(given: Mapping[str, Any], name: str, where: str) -> bool | None:
    value = given.get(name)
    if value is not None and not isinstance(value, bool):
        raise PluginConfigError(f"{where}.{name}: expected true or false", "type")
    return value


def whole(value: Any) -> int | None:
    """A whole number, also one that is written as 4.0."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None
