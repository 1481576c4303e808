"""One simulated machine: its fixed properties, without state. Programs and faults are stored elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec


class GpuSlot(msgspec.Struct, frozen=True):
    """One GPU with its position."""

    index: int
    uuid: str
    """`GPU-` and a UUID, equal at every start for the same node name and index."""
    model: str
    """The name in data/gpus.json."""
    product: str
    """The name that GPU feature discovery writes: `NVIDIA-H100-80GB-HBM3`."""
    memory_mib: int
    numa: int
    island: int
    """GPUs of one island are connected by NVLink."""
    pci: str
    """`00000000:53:00.0`."""
    serial: str = ""


class Sharing(msgspec.Struct, frozen=True):
    """How the device plugin advertises several replicas of each GPU (or MIG instance)."""

    strategy: Literal["time-slicing", "mps"]
    replicas: int
    rename: bool = False
    """Advertise `nvidia.com/gpu.shared` instead of `nvidia.com/gpu`."""
    fail_requests_greater_than_one: bool = False


class Machine(msgspec.Struct, frozen=True):
    name: str
    profile: str
    """The name of its catalogue entry: `p5.48xlarge`."""
    labels: Mapping[str, str]
    """The labels of kubelet and cloud; GPU labels are computed from the GPUs, as feature discovery does."""
    capacity: Mapping[str, str]
    """cpu, memory, ephemeral-storage, pods, hugepages, interconnects (`vpc.amazonaws.com/efa`), but not GPUs."""
    allocatable: Mapping[str, str]
    gpus: tuple[GpuSlot, ...] = ()
    annotations: Mapping[str, str] = {}
    taints: tuple[Mapping[str, str], ...] = ()
    node_info: Mapping[str, str] = {}
    provider_id: str = ""
    mig_strategy: Literal["none", "single", "mixed"] = "none"
    mig_config: str = ""
    """The initial layout (`all-1g.10gb`, `custom-mixed`), as in the label `nvidia.com/mig.config`."""
    sharing: Sharing | None = None
    is_spot: bool = False
    usd_per_hour: float = 0.0
