"""One entry of a fleet: a number of machines of a shape, with options that differ from the shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from shoal.embedded.machines.gpu_software import GpuSoftware
from shoal.embedded.machines.machine import Sharing
from shoal.embedded.machines.shape import MachineShape
from shoal.units.errors import Where


class FleetEntry(msgspec.Struct, frozen=True):
    shape: MachineShape
    count: int = 1
    name: str = ""
    """The prefix of node names; by default the shape's name."""
    mig_config: str = ""
    mig_strategy: Literal["", "none", "single", "mixed"] = ""
    sharing: Sharing | None = None
    gives_by_claims: bool = False
    gpu_software: GpuSoftware | None = None
    """None: as the whole fleet has it."""
    is_spot: bool = False
    region: str = ""
    zone: str = ""
    numa_policy: str = ""
    taints: tuple[Mapping[str, str], ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    where: Where = Where()
