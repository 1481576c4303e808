"""Says how a GPU of which a workload needs a part is shared: by MIG, MPS or time-slicing, and why.

MIG isolates memory and faults, so it is for several tenants and for production. MPS runs the kernels of one tenant's
processes at one time, which raises the throughput, but a fault of one ends all. Time-slicing isolates neither memory
nor faults and divides the time only: it is for development. Time-slicing of MIG instances serves the most pods: those
of an instance share it without protection from each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shoal.policy.sizing.fits import Fit
from shoal.policy.sizing.memory import FRAGMENTATION

_MOST_PERCENT = 50
_MOST_MPS_CLIENTS = 48
_MPS_MEMORY_LIMITS = (7, 0)
"""The first compute capability with limits of memory for each client."""


def sharing_advice(found: Sequence[Fit]) -> Iterator[str]:
    """For the least expensive GPU of which the workload needs at most half; nothing where it needs more of each."""
    alone = next(
        (fit for fit in found if not fit.profile and fit.gpus == 1 and fit.share_percent <= _MOST_PERCENT), None
    )
    if alone is None:
        return
    clients = min(100 // alone.share_percent, _MOST_MPS_CLIENTS)
    instance = next((fit for fit in found if fit.profile and fit.gpu == alone.gpu), None)
    name = alone.gpu.name
    production = (
        f"the MIG instance {instance.profile} of {name}, isolated by hardware" if instance else _without_mig(name)
    )
    yield f"sharing in production, or by several teams: {production}"
    limits = "" if _capability(alone) >= _MPS_MEMORY_LIMITS else ", without limits of memory"
    yield f"sharing by one team, for throughput: MPS with {clients} clients on {name}{limits}; a fault of one ends all"
    yield f"sharing for development: time-slicing with {clients} replicas on {name}; memory is not limited for each"
    if instance is not None and (pods := _time_sliced(instance)) > clients:
        yield (
            f"sharing for the highest density: time-slicing of {instance.profile} instances, {pods} pods on {name}; "
            "only the pods of different instances are isolated"
        )


def _time_sliced(instance: Fit) -> int:
    """Pods on one GPU whose instances are shared by so many replicas as fit into the memory of each."""
    layout = instance.gpu.mig_layout()
    profile = layout.profile(instance.profile) if layout is not None else None
    usable = instance.memory_bytes * (1 - FRAGMENTATION)
    return profile.max * int(usable // instance.memory.needed) if profile is not None else 0


def _without_mig(name: str) -> str:
    return f"{name} has no MIG instance for it; do not share it, or choose another GPU"


def _capability(fit: Fit) -> tuple[int, ...]:
    return tuple(int(part) for part in fit.gpu.compute_capability.split(".") if part.isdigit())
