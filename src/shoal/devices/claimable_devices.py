"""Describes the GPUs and MIG instances of a node as devices of resource claims: attributes, capacities and taints.

The names, attributes and capacities are those of NVIDIA's driver for resource claims, so its DeviceClasses and the
selectors of users apply. A GPU in MIG mode is no device of its own, because a container on it sees no memory. Instances
whose position the driver does not report are left out, because their name contains it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from shoal.api.device_capacity import Capacity
from shoal.api.device_taints import MOST_TAINTS, DeviceTaint
from shoal.api.slices import Attribute, Device
from shoal.data.mig import Profile
from shoal.devices.device_health import DeviceHealth, HealthCause
from shoal.devices.discovered import layouts_of
from shoal.devices.feature_labels import UNKNOWN, family_of
from shoal.devices.mig_instances import Cut
from shoal.devices.port import DriverVersions, InstalledGpu
from shoal.units.quantity import Format, Quantity

CLAIM_DRIVER = "gpu.nvidia.com"
_PCI_BUS_ID, _PCIE_ROOT = "resource.kubernetes.io/pciBusID", "resource.kubernetes.io/pcieRoot"
_PCI = re.compile(r"(?P<domain>[0-9A-Fa-f]+):(?P<rest>[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_XID = re.compile(r"xid-(?P<number>[0-9]+)(?:-instance-[0-9]+)?")
_MIB = 2**20
_PARTS = 3
_LONGEST_TEXT = 64


class ClaimableInput(msgspec.Struct, frozen=True):
    versions: DriverVersions
    gpus: tuple[InstalledGpu, ...]
    """With those that were lost, as they were."""
    health: Mapping[str, DeviceHealth] = {}
    """By the UUID of the GPU."""
    pcie_roots: Mapping[str, str] = {}
    """The PCIe root of each GPU by UUID: `pci0000:48`."""


class ClaimableDevice(msgspec.Struct, frozen=True):
    uuid: str
    """Of the GPU or the MIG instance."""
    described: Device

    @property
    def name(self) -> str:
        return self.described.name


class ClaimedHealth(msgspec.Struct, frozen=True):
    """The health of a device, by its name."""

    name: str
    is_healthy: bool
    message: str = ""
    """What is wrong, or may become so."""


def claimed_health(devices: Sequence[Device], health: Mapping[str, DeviceHealth]) -> tuple[ClaimedHealth, ...]:
    """`health`: by the UUID of the GPU. A device is unhealthy while a taint keeps pods away from it."""
    return tuple(_health(device, health) for device in devices)


def claimable_devices(given: ClaimableInput) -> tuple[ClaimableDevice, ...]:
    found: list[ClaimableDevice] = []
    for gpu, layout in zip(given.gpus, layouts_of(given.gpus), strict=True):
        if not gpu.is_mig:
            found.append(ClaimableDevice(gpu.uuid, whole_gpu(gpu, given)))
        else:
            found += (ClaimableDevice(cut.uuid, _instance(gpu, cut, given)) for cut in layout.cuts)
    return tuple(found)


def whole_gpu(gpu: InstalledGpu, given: ClaimableInput) -> Device:
    capacity = {} if gpu.memory_mib is None else {"memory": memory_capacity(gpu.memory_mib)}
    return Device(
        name=f"gpu-{minor_of(gpu)}",
        attributes={"type": text_attribute("gpu"), "uuid": text_attribute(gpu.uuid), **gpu_attributes(gpu, given)},
        capacity=capacity,
        taints=_taints(given.health.get(gpu.uuid), None),
    )


def instance_name(gpu: InstalledGpu, profile: Profile, start: int) -> str:
    """`gpu-0-mig-1g10gb-19-2`; an unknown number of the profile is 0."""
    spelled = re.sub("[^0-9a-z]", "", profile.name.lower())
    return f"gpu-{minor_of(gpu)}-mig-{spelled}-{max(profile.id, 0)}-{start}"


def minor_of(gpu: InstalledGpu) -> int:
    return gpu.index if gpu.minor is None else gpu.minor


def gpu_attributes(gpu: InstalledGpu, given: ClaimableInput) -> dict[str, Attribute]:
    """Those that a MIG instance has of its GPU; the ones that the driver does not report are left out."""
    major, _, minor = (gpu.compute_capability or "").partition(".")
    family = family_of(int(major), int(minor or 0)) if major.isdecimal() else UNKNOWN
    found: dict[str, Attribute | None] = {
        "productName": text_attribute(gpu.name),
        "brand": text_attribute(gpu.brand or ""),
        "architecture": text_attribute(family.replace("-", " ").title()),
        "cudaComputeCapability": _version(gpu.compute_capability or ""),
        "driverVersion": _version(given.versions.driver),
        "cudaDriverVersion": _version(given.versions.cuda or ""),
        _PCI_BUS_ID: text_attribute(_bus_id(gpu.pci)),
        _PCIE_ROOT: text_attribute(given.pcie_roots.get(gpu.uuid, "")),
    }
    return {name: value for name, value in found.items() if value is not None and value.value() != ""}


def instance_capacity(profile: Profile, start: int, memory_mib: int | None) -> dict[str, Capacity]:
    amounts = {name: amount for name, amount in engines_of(profile).items() if amount is not None}
    found = {name: Capacity(Quantity.of(amount)) for name, amount in amounts.items()}
    if memory_mib:
        found["memory"] = memory_capacity(memory_mib)
    return found | {f"memorySlice{start + place}": Capacity(Quantity.of(1)) for place in range(profile.width)}


def engines_of(profile: Profile) -> dict[str, int | None]:
    engines = profile.engines
    return {
        "multiprocessors": profile.sm,
        "copyEngines": engines.copy,
        "decoders": engines.decode,
        "encoders": engines.encode,
        "jpegEngines": engines.jpeg,
        "ofaEngines": engines.optical_flow,
    }


def memory_capacity(mib: int) -> Capacity:
    return Capacity(Quantity.of(mib * _MIB, Format.BINARY))


def text_attribute(value: str) -> Attribute:
    return Attribute(text=value[:_LONGEST_TEXT])


def _instance(gpu: InstalledGpu, cut: Cut, given: ClaimableInput) -> Device:
    return Device(
        name=instance_name(gpu, cut.profile, cut.start),
        attributes={
            "type": text_attribute("mig"),
            "uuid": text_attribute(cut.uuid),
            "parentUUID": text_attribute(gpu.uuid),
            "profile": text_attribute(cut.profile.name),
            **gpu_attributes(gpu, given),
        },
        capacity=instance_capacity(cut.profile, cut.start, cut.memory_mib),
        taints=_taints(given.health.get(gpu.uuid), cut.instance),
    )


def _taints(health: DeviceHealth | None, instance: int | None) -> tuple[DeviceTaint, ...]:
    """An error of one GPU instance concerns that instance and the whole GPU, one of the GPU all its instances."""
    if health is None:
        return ()
    causes = [one for one in health.causes if instance is None or one.instance in (None, instance)]
    found = dict.fromkeys(taint for cause in causes if (taint := _taint(cause)) is not None)
    # The API allows so many; those that keep pods away matter most.
    return tuple(sorted(found, key=lambda one: not one.keeps_away())[:MOST_TAINTS])


def _taint(cause: HealthCause) -> DeviceTaint | None:
    xid = _XID.fullmatch(cause.code)
    if xid is not None:
        # Errors that do not make the GPU unhealthy, such as those of applications, only inform.
        return DeviceTaint(f"{CLAIM_DRIVER}/xid", "NoSchedule" if cause.is_unhealthy else "None", xid["number"])
    if not cause.is_unhealthy:
        return None
    name = "gpu-lost" if cause.code == "lost" else cause.code
    return DeviceTaint(f"{CLAIM_DRIVER}/{name}", "NoSchedule")


def _health(device: Device, health: Mapping[str, DeviceHealth]) -> ClaimedHealth:
    uuid = device.attributes.get("parentUUID") or device.attributes.get("uuid")
    found = health.get(str(uuid.value())) if uuid is not None else None
    if not device.taints or found is None:
        return ClaimedHealth(device.name, is_healthy=True)
    is_healthy = not any(taint.keeps_away() for taint in device.taints)
    causes = (cause.message for cause in found.causes if cause.is_unhealthy != is_healthy)
    return ClaimedHealth(device.name, is_healthy, "; ".join(causes))


def _version(text: str) -> Attribute | None:
    """`580.95.05` as `580.95.5`: a semantic version has three numbers without leading zeros."""
    parts = text.split(".")
    if not all(part.isdecimal() and part.isascii() for part in parts) or len(parts) > _PARTS:
        return None
    numbers = [str(int(part)) for part in parts] + ["0"] * (_PARTS - len(parts))
    return Attribute(version=".".join(numbers))


def _bus_id(pci: str) -> str:
    """As the kernel writes it, with four digits for the domain."""
    match = _PCI.fullmatch(pci)
    return f"{int(match['domain'], 16):04x}:{match['rest'].lower()}" if match is not None else ""
