"""Types of the Container Device Interface: what a runtime adds to a container for each device.

Guarantees: a specification states the least version that has its fields, because readers refuse unknown fields; fields
without a value are left out, because empty edits are invalid.
"""

from __future__ import annotations

import re

import msgspec

_BASE = (0, 3, 0)
_DIGIT_FIRST = re.compile(r"[0-9]")


class DeviceNode(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    path: str
    host_path: str = ""
    """Where the host has it, if elsewhere."""
    permissions: str = ""


class CdiMount(msgspec.Struct, frozen=True, rename="camel"):
    host_path: str
    container_path: str
    options: tuple[str, ...]


class Hook(msgspec.Struct, frozen=True, rename="camel"):
    hook_name: str
    path: str
    args: tuple[str, ...]


class ContainerEdits(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[CdiMount, ...] = ()
    hooks: tuple[Hook, ...] = ()


class CdiDevice(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    container_edits: ContainerEdits


class CdiSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    cdi_version: str
    kind: str
    """`nvidia.com/gpu`: vendor and class."""
    devices: tuple[CdiDevice, ...]
    container_edits: ContainerEdits | None = None
    """Of every container that gets one of the devices."""


def cdi_spec(kind: str, devices: tuple[CdiDevice, ...], edits: ContainerEdits) -> CdiSpec:
    version = ".".join(map(str, _least_version(kind, devices, edits)))
    return CdiSpec(version, kind, devices, None if edits == ContainerEdits() else edits)


def _least_version(kind: str, devices: tuple[CdiDevice, ...], edits: ContainerEdits) -> tuple[int, int, int]:
    every = [edits, *(device.container_edits for device in devices)]
    needed = [_BASE]
    if any(_DIGIT_FIRST.match(device.name) for device in devices):
        needed.append((0, 5, 0))
    if any(node.host_path for one in every for node in one.device_nodes):
        needed.append((0, 5, 0))
    if "." in kind.rpartition("/")[2]:
        needed.append((0, 6, 0))
    return max(needed)
