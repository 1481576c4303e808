"""One entry of a fleet: so many machines of a shape, and how they shall differ from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from shoal.embedded.machines.machine import Sharing
from shoal.embedded.machines.shape import MachineShape
from shoal.units.errors import Where


class FleetEntry(msgspec.Struct, frozen=True):
    shape: MachineShape
    count: int = 1
    name: str = ""
    """What node names begin with; the shape's name where nothing is said."""
    mig_config: str = ""
    mig_strategy: Literal["", "none", "single", "mixed"] = ""
    sharing: Sharing | None = None
    is_spot: bool = False
    region: str = ""
    zone: str = ""
    numa_policy: str = ""
    taints: tuple[Mapping[str, str], ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    where: Where = Where()
