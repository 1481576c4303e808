"""Reads what the machine itself says, without a driver: its type from the firmware, and its PCI devices of NVIDIA.

A file that cannot be read says nothing and is no fault: containers see parts of sysfs only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from shoal.devices.feature_labels import VgpuHost
from shoal.devices.vgpu_hosts import vgpu_host

_NVIDIA = "0x10de"
_GPU_CLASSES = ("0x0300", "0x0302")
_LONGEST_TYPE = 4096


class PciDevices(msgspec.Struct, frozen=True):
    has_gpu: bool = False
    vgpus: tuple[VgpuHost, ...] = ()


def machine_type(file: Path) -> str | None:
    """The content of the product-name file; None if it cannot be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(_LONGEST_TYPE).decode(errors="replace")
    except OSError:
        return None


def pci_devices(sysfs: Path) -> PciDevices:
    """The GPUs of NVIDIA, by vendor and class."""
    gpus = list(_gpus(sysfs / "bus/pci/devices"))
    spaces = (vgpu_host(_bytes(gpu / "config")) for gpu in gpus)
    return PciDevices(bool(gpus), tuple(host for host in spaces if host is not None))


def _gpus(devices: Path) -> Iterator[Path]:
    try:
        folders = sorted(devices.iterdir())
    except OSError:
        return
    for folder in folders:
        vendor, kind = _bytes(folder / "vendor").strip(), _bytes(folder / "class").strip()
        if vendor.lower() == _NVIDIA.encode() and kind.decode(errors="replace").startswith(_GPU_CLASSES):
            yield folder


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
