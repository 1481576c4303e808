"""Which GPUs, MIG instances and groups of GPUs hold a workload, the least expensive ones first.

An instance serves one process, so instances are never added up. A tensor group divides the heads of the model: its size
divides their number, and it stays on one node, so it is not larger than the largest machine with these GPUs. What no
tensor group holds is divided into stages of a pipeline, each the largest tensor group. A GPU that cannot run the format
of the weights holds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from shoal.data.gpu_prices import usd_of_model
from shoal.data.gpus import Model
from shoal.data.instances import most_gpus_of
from shoal.data.mig import Profile
from shoal.policy.sizing.memory import Memory, memory_of
from shoal.policy.sizing.number_formats import is_computed_by, of_same_size
from shoal.policy.sizing.speed import TokenRate, token_rate
from shoal.policy.sizing.workload import ModelWorkload

HOURS_OF_MONTH = 730
TENSOR_SIZES = (1, 2, 4, 8)
_MOST_STAGES = 16
_MIB = 2**20
_LEAST_SHARE = 10
_USUAL_MACHINE = 8
"""GPUs of the largest servers, for models that no machine of the catalogue has."""


@dataclass(frozen=True, slots=True)
class Fit:
    """One way to hold the workload."""

    gpu: Model
    memory: Memory
    """On each GPU, or on the instance."""
    memory_bytes: float
    """Of the GPU, or of the instance."""
    rate: TokenRate | None
    profile: str = ""
    """The MIG profile, or nothing for whole GPUs."""
    share_percent: int = 100
    """The least part of the GPU's memory that holds the workload, for GPUs that are shared by memory."""
    tensor: int = 1
    pipeline: int = 1
    usd_per_hour: Decimal = Decimal(0)

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline

    @property
    def usd_per_month(self) -> Decimal:
        return self.usd_per_hour * HOURS_OF_MONTH

    @property
    def usd_per_million_tokens(self) -> Decimal | None:
        """At the middle of the band, with the load at its height for the whole hour."""
        if self.rate is None or not self.rate.middle:
            return None
        return self.usd_per_hour / Decimal(self.rate.middle * 3600) * 10**6


def fits(workload: ModelWorkload, gpus: Iterable[Model], nodes: Mapping[str, int] | None = None) -> list[Fit]:
    """Of each GPU the smallest instance and the smallest group; the least expensive first, then the name. `nodes`: the
    GPUs of the largest node of a cluster by model; for models that it lacks, machines of the catalogue count."""
    able = [gpu for gpu in gpus if _is_computed_by(workload, gpu)]
    ways = ((_instance(workload, gpu), _group(workload, gpu, _machine(gpu, nodes or {}))) for gpu in able)
    found = [fit for both in ways for fit in both if fit is not None]
    return sorted(found, key=lambda fit: (fit.usd_per_hour, fit.gpus, fit.gpu.name, fit.profile))


def why_not(workload: ModelWorkload, gpu: Model) -> str:
    """Why a GPU is not among the fits of a workload."""
    if not _is_computed_by(workload, gpu):
        other = of_same_size(workload.dtype)
        return f"it does not compute in {workload.dtype}; --dtype {other} has the same size"
    hint = "; --train fsdp divides it among GPUs" if workload.training == "full" else ""
    return f"no group of its GPUs holds the model{hint}"


def _is_computed_by(workload: ModelWorkload, gpu: Model) -> bool:
    return is_computed_by(workload.dtype, gpu, is_training=bool(workload.training))


def _machine(gpu: Model, nodes: Mapping[str, int]) -> int:
    return nodes.get(gpu.name) or most_gpus_of(gpu) or _USUAL_MACHINE


def _instance(workload: ModelWorkload, gpu: Model) -> Fit | None:
    layout, memory = gpu.mig_layout(), memory_of(workload)
    if layout is None:
        return None
    sizes = sorted(_plain(layout.profiles), key=lambda profile: (profile.memory_mib or 0, profile.compute))
    for profile in sizes:
        size = (profile.memory_mib or 0) * _MIB
        if memory.is_within(size) and profile.width < layout.memory_slices:
            part = profile.compute / layout.compute_slices
            share = Decimal(profile.width) / layout.memory_slices
            return Fit(
                gpu=gpu,
                memory=memory,
                memory_bytes=size,
                rate=token_rate(workload, gpu, share=min(part, float(share))),
                profile=profile.name,
                usd_per_hour=usd_of_model(gpu) * share,
            )
    return None


def _plain(profiles: Iterable[Profile]) -> Iterator[Profile]:
    """Without those that hold media engines or other extras."""
    return (profile for profile in profiles if profile.name.endswith("gb") and profile.memory_mib)


def _group(workload: ModelWorkload, gpu: Model, machine: int) -> Fit | None:
    """The smallest tensor group, else the shortest pipeline of such groups."""
    size = gpu.memory_mib() * _MIB
    for tensor, pipeline in _shapes(workload, machine):
        memory = memory_of(workload, tensor, pipeline)
        if memory.is_within(size):
            count = tensor * pipeline
            return Fit(
                gpu=gpu,
                memory=memory,
                memory_bytes=size,
                rate=token_rate(workload, gpu, tensor, pipeline),
                share_percent=_share(memory, size) if count == 1 else 100,
                tensor=tensor,
                pipeline=pipeline,
                usd_per_hour=usd_of_model(gpu) * count,
            )
    return None


def _shapes(workload: ModelWorkload, machine: int) -> list[tuple[int, int]]:
    """Tensor and pipeline sizes, the smallest first. Training without sharding holds everything on each GPU."""
    if workload.training == "full":
        return [(1, 1)]
    divides = [size for size in TENSOR_SIZES if workload.training or workload.model.heads % size == 0]
    sizes = [size for size in divides if size <= machine]
    stages = range(2, min(_MOST_STAGES, workload.model.layers) + 1)
    return [(size, 1) for size in sizes] + [(sizes[-1], stage) for stage in stages]


def _share(memory: Memory, size: float) -> int:
    """In steps of ten percent."""
    return next((step for step in range(_LEAST_SHARE, 100, _LEAST_SHARE) if memory.is_within(size * step / 100)), 100)
