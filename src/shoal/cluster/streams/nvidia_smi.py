"""`nvidia-smi` as a container would see it: one idle GPU for each that the container asks for.

Model and memory come from the labels that GPU feature discovery puts on nodes; identities are made from the names of
node and pod, so that the same pod always sees the same GPUs.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

Obj = dict[str, Any]
_DRIVER, _CUDA = "580.95.05", "13.0"
_WHOLE = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
_MIG = "nvidia.com/mig-"
_DEFAULT_PRODUCT, _DEFAULT_MIB = "NVIDIA-GPU", 81920
_SPACE = uuid.UUID("6f0a7c56-5f35-4b60-9a35-6d2c8a6b1f6e")


class Gpu(msgspec.Struct, frozen=True):
    index: int
    name: str
    memory_mib: int
    uuid: str
    mig_profile: str = ""
    """Of a MIG device, `1g.10gb`."""


class GpuSight(msgspec.Struct, frozen=True):
    """The GPUs a container sees."""

    gpus: tuple[Gpu, ...]

    @classmethod
    def of(cls, container: Obj, node: Obj | None, pod: Obj) -> GpuSight:
        labels = ((node or {}).get("metadata") or {}).get("labels") or {}
        name = str(labels.get("nvidia.com/gpu.product") or _DEFAULT_PRODUCT).replace("-", " ")
        memory = str(labels.get("nvidia.com/gpu.memory") or "")
        mib = int(memory) if memory.isdecimal() else _DEFAULT_MIB
        metadata = pod["metadata"]
        owner = f"{(pod.get('spec') or {}).get('nodeName', '')}/{metadata.get('uid') or metadata['name']}"
        gpus = []
        for index, profile in enumerate(_asked(container)):
            identity = uuid.uuid5(_SPACE, f"{owner}/{index}")
            gpus.append(Gpu(index, name, mib, f"{'MIG' if profile else 'GPU'}-{identity}", profile))
        return cls(tuple(gpus))


def list_gpus(sight: GpuSight) -> str:
    lines: list[str] = []
    for gpu in sight.gpus:
        if gpu.mig_profile:
            lines.append(f"GPU {gpu.index}: {gpu.name}")
            lines.append(f"  MIG {gpu.mig_profile:<12} Device  0: (UUID: {gpu.uuid})")
        else:
            lines.append(f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})")
    return "".join(f"{line}\n" for line in lines)


def table(sight: GpuSight) -> str:
    return "".join(f"{line}\n" for line in _table_lines(sight))


_EDGE = f"+{'-' * 89}+"
_THREE = f"+{'-' * 41}+{'-' * 24}+{'-' * 22}+"


def _table_lines(sight: GpuSight) -> Iterator[str]:
    yield _EDGE
    yield _row(f"NVIDIA-SMI {_DRIVER:<22} Driver Version: {_DRIVER:<14} CUDA Version: {_CUDA}")
    yield _THREE
    yield _cells("GPU  Name                 Persistence-M", "Bus-Id          Disp.A", "Volatile Uncorr. ECC")
    yield _cells("Fan  Temp   Perf          Pwr:Usage/Cap", "          Memory-Usage", "GPU-Util  Compute M.")
    yield _THREE.replace("-", "=")
    for gpu in sight.gpus:
        bus = f"00000000:{0x10 + gpu.index:02X}:00.0 Off"
        yield _cells(f"{gpu.index:>3}  {gpu.name[:24]:<24}        On", bus, "0")
        yield _cells("N/A   30C    P0             N/A /  N/A", f"0MiB / {gpu.memory_mib:>6}MiB", "0%      Default")
        yield _THREE
    yield ""
    yield _EDGE
    yield _row("Processes:")
    yield _row("  No running processes found")
    yield _EDGE


def _row(text: str) -> str:
    return f"| {text:<87} |"


def _cells(first: str, second: str, third: str) -> str:
    return f"| {first:<39} | {second:>22} | {third:>20} |"


def _asked(container: Obj) -> Iterator[str]:
    """For each GPU asked for, its MIG profile, or nothing for a whole one."""
    resources = container.get("resources") or {}
    amounts = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    for name, amount in sorted(amounts.items()):
        is_mig = name.startswith(_MIG)
        if (is_mig or name in _WHOLE) and str(amount).isdecimal():
            yield from [name[len(_MIG) :] if is_mig else ""] * int(amount)
