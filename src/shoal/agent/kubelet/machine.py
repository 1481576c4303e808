"""Reads what this machine has: cores, memory, disk, kernel and operating system."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
from contextlib import suppress
from pathlib import Path

import msgspec

_PODS = 250
_MIB = 1024 * 1024
_RESERVED_MILLI, _RESERVED_BYTES = 100, 256 * _MIB
"""What Shoal's own processes keep of the machine."""
_USABLE_PERCENT = 90
"""Of the disk, as the kubelet reserves a tenth by its usual threshold of `nodefs.available`."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class MachineRoot(msgspec.Struct, frozen=True):
    """Where the files of the machine are."""

    proc: Path = Path("/proc")
    sysfs: Path = Path("/sys")
    etc: Path = Path("/etc")


class ThisMachine(msgspec.Struct, frozen=True):
    name: str
    cores: int
    memory_bytes: int
    disk_bytes: int
    address: str
    boot_id: str = ""
    machine_id: str = ""
    system: str = ""
    kernel: str = ""

    def capacity(self) -> dict[str, str]:
        return {
            "cpu": str(self.cores),
            "memory": f"{self.memory_bytes // 1024}Ki",
            "ephemeral-storage": f"{self.disk_bytes // 1024}Ki",
            "pods": str(_PODS),
        }

    def allocatable(self) -> dict[str, str]:
        memory = max(self.memory_bytes - _RESERVED_BYTES, 0)
        return {
            **self.capacity(),
            "cpu": f"{max(self.cores * 1000 - _RESERVED_MILLI, 0)}m",
            "memory": f"{memory // 1024}Ki",
            "ephemeral-storage": f"{self.disk_bytes * _USABLE_PERCENT // 100 // 1024}Ki",
        }

    def architecture(self) -> str:
        machine = platform.machine()
        return _ARCHITECTURES.get(machine, machine)


def this_machine(state: Path, root: MachineRoot | None = None, name: str = "") -> ThisMachine:
    """`state`: a folder on the disk that pods use."""
    root = root or MachineRoot()
    return ThisMachine(
        name=name or node_name(),
        cores=_cores(root.sysfs),
        memory_bytes=_memory(root.proc / "meminfo"),
        disk_bytes=shutil.disk_usage(state).total,
        address=_address(),
        boot_id=_text(root.proc / "sys/kernel/random/boot_id"),
        machine_id=_text(root.etc / "machine-id"),
        system=_pretty_name(_text(root.etc / "os-release")),
        kernel=_text(root.proc / "sys/kernel/osrelease"),
    )


def cpu_list(text: str) -> int:
    """The number of processors in a list such as `0-3,8`."""
    count = 0
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            count += int(last or first) - int(first) + 1
    return count


def _cores(sysfs: Path) -> int:
    return cpu_list(_text(sysfs / "devices/system/cpu/online")) or os.cpu_count() or 1


def _memory(file: Path) -> int:
    found = re.search(r"^MemTotal:\s+(\d+) kB", _text(file), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def node_name(host: str = "") -> str:
    """The name of the node for this machine, or for one with that host name."""
    host = host or socket.gethostname()
    name = re.sub(r"[^a-z0-9.-]+", "-", host.lower()).strip("-.")
    return name or "this-machine"


def _pretty_name(text: str) -> str:
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.MULTILINE)
    return found[1] if found else ""


def _text(file: Path) -> str:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").strip()
    return ""


def _address() -> str:
    """The address by which this machine reaches others; no packet is sent. Loopback without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "127.0.0.1"
