"""One simulated machine: its fixed properties, without state. Programs and faults are stored elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.port import Fabric
from shoal.embedded.machines.gpu_software import GpuSoftware


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
    machine_type: str = ""
    """The product name in the firmware."""
    fabric: Fabric | None = None
    """The NVLink domain of the rack to which the GPUs are attached."""
    provider_id: str = ""
    mig_strategy: Literal["none", "single", "mixed"] = "none"
    mig_config: str = ""
    """The initial layout (`all-1g.10gb`, `custom-mixed`), as in the label `nvidia.com/mig.config`."""
    sharing: Sharing | None = None
    gives_by_claims: bool = False
    """Whether its GPUs are given to resource claims (DRA) instead of by the device plugin."""
    has_dynamic_mig: bool = False
    """Whether MIG instances are created for such claims."""
    gpu_software: GpuSoftware = "included"
    """Which layers of GPU software it has when it starts; the pods of a GPU operator add the others."""
    is_spot: bool = False
    usd_per_hour: float = 0.0
