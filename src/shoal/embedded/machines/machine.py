"""One simulated machine as it is delivered: fixed facts, no state. What runs and what breaks is kept elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec


class GpuSlot(msgspec.Struct, frozen=True):
    """One GPU in its place."""

    index: int
    uuid: str
    """`GPU-` and a UUID, the same at every start for the same node name and index."""
    model: str
    """The name in data/gpus.json."""
    product: str
    """As GPU feature discovery spells it: `NVIDIA-H100-80GB-HBM3`."""
    memory_mib: int
    numa: int
    island: int
    """GPUs of one island see each other over NVLink."""
    pci: str
    """`00000000:53:00.0`."""
    serial: str = ""


class Sharing(msgspec.Struct, frozen=True):
    """How the device plugin offers each GPU (or MIG instance) several times."""

    strategy: Literal["time-slicing", "mps"]
    replicas: int
    rename: bool = False
    """Offer `nvidia.com/gpu.shared` in place of `nvidia.com/gpu`."""
    fail_requests_greater_than_one: bool = False


class Machine(msgspec.Struct, frozen=True):
    name: str
    profile: str
    """The catalogue name it was made from: `p5.48xlarge`."""
    labels: Mapping[str, str]
    """What kubelet and cloud set; GPU labels come from the GPUs, as feature discovery would add them."""
    capacity: Mapping[str, str]
    """cpu, memory, ephemeral-storage, pods, hugepages, interconnects (`vpc.amazonaws.com/efa`): no GPUs."""
    allocatable: Mapping[str, str]
    gpus: tuple[GpuSlot, ...] = ()
    annotations: Mapping[str, str] = {}
    taints: tuple[Mapping[str, str], ...] = ()
    node_info: Mapping[str, str] = {}
    provider_id: str = ""
    mig_strategy: Literal["none", "single", "mixed"] = "none"
    mig_config: str = ""
    """The layout it starts with (`all-1g.10gb`, `custom-mixed`): as in the label `nvidia.com/mig.config`."""
    sharing: Sharing | None = None
    is_spot: bool = False
    usd_per_hour: float = 0.0
