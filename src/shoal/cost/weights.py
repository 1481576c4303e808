"""Divides the price of a machine among its GPUs, CPUs and memory.

By default the GPUs carry what the model and their number suggest: the other parts of a machine with eight large GPUs
cost little beside them, those of a machine with one small GPU cost a third. CPU and memory share the rest in the
proportion of their usual prices. `opencost` divides everything in the proportion of OpenCost's default prices, which
gives the GPUs of a p5.48xlarge only 34 %; `gpu-memory-weighted` gives GPUs 95 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal, NamedTuple

from shoal.cost.records import PPM
from shoal.data.gpus import find_model

WeightMode = Literal["model", "opencost", "gpu-memory-weighted"]
WEIGHT_MODES: tuple[WeightMode, ...] = ("model", "opencost", "gpu-memory-weighted")

CPU_USD, MEMORY_USD, GPU_USD = Decimal("0.031611"), Decimal("0.004237"), Decimal("0.95")
"""OpenCost's default prices per hour: of a core, of a GiB, of a GPU."""
_VANTAGE_PPM = 950_000
_BY_ARCHITECTURE: Mapping[str, tuple[int, int]] = {
    "volta": (750_000, 920_000),
    "turing": (600_000, 900_000),
    "ampere": (800_000, 940_000),
    "ada": (650_000, 900_000),
    "hopper": (800_000, 950_000),
    "blackwell": (800_000, 950_000),
    "blackwell-ultra": (800_000, 950_000),
}
"""The part of the GPUs on a machine with one and on a machine with eight or more."""
_OTHER = (700_000, 900_000)
_SMALL = (600_000, 900_000)
"""GPUs with at most 24 GB."""
_SMALL_GB = 24
_MANY = 8


class Weights(NamedTuple):
    """Parts of a million; the sum is a million."""

    gpu: int
    cpu: int
    memory: int


def weights_of(model: str, gpus: int, cpu_milli: int, memory_mib: int, mode: WeightMode = "model") -> Weights:
    cpu, memory = CPU_USD * cpu_milli / 1000, MEMORY_USD * memory_mib / 1024
    if mode == "opencost":
        return _in_proportion(GPU_USD * gpus, cpu, memory)
    if not gpus:
        return _in_proportion(Decimal(0), cpu, memory)
    of_gpus = _VANTAGE_PPM if mode == "gpu-memory-weighted" else _of_model(model, gpus)
    if not cpu + memory:
        return Weights(PPM, 0, 0)
    of_cpu = int((PPM - of_gpus) * cpu / (cpu + memory))
    return Weights(of_gpus, of_cpu, PPM - of_gpus - of_cpu)


def _of_model(name: str, gpus: int) -> int:
    model = find_model(name)
    if model is None:
        one, many = _OTHER
    elif model.memory_gb <= _SMALL_GB:
        one, many = _SMALL
    else:
        one, many = _BY_ARCHITECTURE.get(model.architecture, _OTHER)
    return one + (many - one) * (min(gpus, _MANY) - 1) // (_MANY - 1)


def _in_proportion(gpu: Decimal, cpu: Decimal, memory: Decimal) -> Weights:
    total = gpu + cpu + memory
    if not total:
        return Weights(PPM, 0, 0)
    of_gpu, of_cpu = int(PPM * gpu / total), int(PPM * cpu / total)
    return Weights(of_gpu, of_cpu, PPM - of_gpu - of_cpu)
