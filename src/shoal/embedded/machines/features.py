"""Computes the labels of Node Feature Discovery, by which programs such as NVIDIA's GPU operator select nodes.

Kernel and operating system are those that the kubelet reports; PCI vendors follow from the devices. The processor is
set only for machines whose processor is published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shoal.embedded.machines.machine import Machine

_PREFIX = "feature.node.kubernetes.io/"
_NVIDIA, _MELLANOX, _AMAZON = "10de", "15b3", "1d0f"
_VENDOR_OF_RESOURCE = {"rdma/hca": _MELLANOX, "vpc.amazonaws.com/efa": _AMAZON}
_SYSTEMS = {"Ubuntu": "ubuntu", "Debian": "debian", "Red Hat Enterprise Linux": "rhel", "Amazon Linux": "amzn"}
_ROME, _MILAN = ("AMD", "23", "49"), ("AMD", "25", "1")
_CASCADE_LAKE, _SAPPHIRE_RAPIDS, _EMERALD_RAPIDS = ("Intel", "6", "85"), ("Intel", "6", "143"), ("Intel", "6", "207")
_PROCESSORS = {
    "p4d.": _CASCADE_LAKE,
    "p4de.": _CASCADE_LAKE,
    "p5.": _MILAN,
    "p5en.": _SAPPHIRE_RAPIDS,
    "p6-b200.": _EMERALD_RAPIDS,
    "g4dn.": _CASCADE_LAKE,
    "g5.": _ROME,
    "g6.": _MILAN,
    "a2-": _CASCADE_LAKE,
    "a3-highgpu": _SAPPHIRE_RAPIDS,
    "a3-megagpu": _SAPPHIRE_RAPIDS,
    "g2-": _CASCADE_LAKE,
    "dgx-a100": _ROME,
    "dgx-h100": _SAPPHIRE_RAPIDS,
    "dgx-h200": _SAPPHIRE_RAPIDS,
    "dgx-b200": _EMERALD_RAPIDS,
}
"""Vendor, family and model, by the prefix of a profile's name."""


def feature_labels(machine: Machine, node_info: Mapping[str, str]) -> dict[str, str]:
    """`node_info`: the system information in the Node's status."""
    found = (*_kernel(node_info["kernelVersion"]), *_system(node_info["osImage"]), *_devices(machine))
    return {_PREFIX + name: value for name, value in (*found, *_processor(machine.profile))}


def _kernel(version: str) -> Iterator[tuple[str, str]]:
    yield "kernel-version.full", version
    parts = version.partition("-")[0].split(".")
    for name, part in zip(("major", "minor", "revision"), parts, strict=False):
        yield f"kernel-version.{name}", part


def _system(image: str) -> Iterator[tuple[str, str]]:
    """Name and version from the pretty name: `Ubuntu 24.04.3 LTS` has the version 24.04."""
    for name, short in _SYSTEMS.items():
        if image.startswith(f"{name} "):
            parts = image.removeprefix(f"{name} ").partition(" ")[0].split(".")[:2]
            yield "system-os_release.ID", short
            yield "system-os_release.VERSION_ID", ".".join(parts)
            for level, part in zip(("major", "minor"), parts, strict=False):
                yield f"system-os_release.VERSION_ID.{level}", part


def _devices(machine: Machine) -> Iterator[tuple[str, str]]:
    vendors = {vendor for resource, vendor in _VENDOR_OF_RESOURCE.items() if resource in machine.capacity}
    if machine.gpus:
        vendors.add(_NVIDIA)
    for vendor in sorted(vendors):
        yield f"pci-{vendor}.present", "true"
    if len({slot.numa for slot in machine.gpus}) > 1:
        yield "memory-numa", "true"


def _processor(profile: str) -> Iterator[tuple[str, str]]:
    for start, (vendor, family, model) in _PROCESSORS.items():
        if profile.startswith(start):
            yield "cpu-model.vendor_id", vendor
            yield "cpu-model.family", family
            yield "cpu-model.id", model
