"""Converts GPU requests of every kind to one unit: thousandths of a GPU.

Quota in `nvidia.com/gpu` says nothing of fractions, which no resource name represents, nor of MIG instances, of which
there is a name per profile. A cluster queue that covers `shoal.dev/gpu-milli` counts all of them together, beside the
plain names that it covers; names of GPUs that it does not cover are then counted in this unit alone.

A fraction is worth its part, memory its part of a GPU of middling size, an instance its part of the memory slices of
the GPU on which it is largest. Weights change that: per resource name, or per model for pods that
name their model.

Rejected: quota in parts of `nvidia.com/gpu` itself. Two systems that count one name in two units will meet in one
cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from shoal.data.mig import layouts
from shoal.engine.device_demand import FULL_MILLI, Demand, MigTiles, demand_milli
from shoal.engine.device_notation.names import (
    GPU,
    GPU_CORES,
    GPU_MEMORY,
    GPU_MEMORY_PERCENT,
    GPU_SHARED,
    MIG_PREFIX,
    VGPU,
    VGPU_CORES,
    VGPU_MEMORY,
    VGPU_MEMORY_PERCENT,
)
from shoal.engine.queues.facts import Amounts

GPU_MILLI = "shoal.dev/gpu-milli"

_PLAIN = frozenset(
    {
        GPU,
        GPU_SHARED,
        GPU_MEMORY,
        GPU_MEMORY_PERCENT,
        GPU_CORES,
        VGPU,
        VGPU_MEMORY,
        VGPU_MEMORY_PERCENT,
        VGPU_CORES,
    }
)


class Equivalents(msgspec.Struct, frozen=True):
    """What asks are worth."""

    weights: Mapping[str, int] = {}
    """Thousandths of a GPU per unit of a resource; by model, of what its GPUs are worth."""

    def milli(self, demand: Demand | None, models: Iterable[str] = ()) -> int:
        """What one pod's ask comes to. Of several models that would do, it may get the dearest."""
        if isinstance(demand, MigTiles):
            worth = sum(count * self._instance(profile) for profile, count in demand.tiles)
        else:
            worth = demand_milli(demand)
        dearest = max((self.weights.get(model, FULL_MILLI) for model in models), default=FULL_MILLI)
        return -(-worth * dearest // FULL_MILLI)

    def charge(self, plain: Amounts, worth: int, covered: frozenset[str]) -> Amounts:
        """The pod's charge in a queue that covers these resources."""
        if GPU_MILLI not in covered:
            return plain
        kept = {name: amount for name, amount in plain.items() if name in covered or not _is_gpu(name)}
        return {**kept, GPU_MILLI: worth} if worth else kept

    def _instance(self, profile: str) -> int:
        said = self.weights.get(MIG_PREFIX + profile)
        return _largest_part(profile) if said is None else said


def _largest_part(profile: str) -> int:
    """On the GPU on which the instance takes most; all of one if the profile is unknown."""
    parts = [
        -(-found.width * FULL_MILLI // layout.memory_slices)
        for layout in layouts()
        if (found := layout.profile(profile)) is not None
    ]
    return max(parts, default=FULL_MILLI)


def _is_gpu(name: str) -> bool:
    return name in _PLAIN or name.startswith(MIG_PREFIX)
