"""Lists the limits of virtual GPUs that a pod requests, which no driver enforces.

HAMi's library in the container enforces them; Volcano's device plugin uses the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.devices.names import (
    GPU_CORES,
    GPU_MEMORY,
    GPU_MEMORY_PERCENT,
    VGPU_CORES,
    VGPU_MEMORY,
    VGPU_MEMORY_PERCENT,
)

LIMIT_NOT_ENFORCED = "GPULimitNotEnforced"
"""The reason of Events."""
_LIMITS = frozenset({GPU_MEMORY, GPU_MEMORY_PERCENT, GPU_CORES, VGPU_MEMORY, VGPU_MEMORY_PERCENT, VGPU_CORES})


def requested_limits(pod: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the resources, of all containers."""
    spec = pod.get("spec") or {}
    found: set[str] = set()
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        resources = container.get("resources") or {}
        found |= _LIMITS & {*(resources.get("limits") or ()), *(resources.get("requests") or ())}
    return tuple(sorted(found))


def not_enforced(limits: tuple[str, ...], library: str) -> str:
    """The message about a pod that requests them."""
    return f"{', '.join(limits)} limits nothing on this node: {library} does not exist, which enforces such limits"
