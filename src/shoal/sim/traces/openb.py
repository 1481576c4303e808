"""The node and pod lists of the Alibaba 2023 GPU trace ("openb"), the format in which GPU packing is published.

Guarantees: every value is inside the limits below, names are unique, and the GPU request of a pod is one of three
plain cases: none, a share of one GPU (1 to 999 milli), or whole GPUs (1000 milli each). The columns that describe
time are ignored: in this format pods arrive in an order, not at an instant, and never leave.

Rejected: turning `gpu_spec` into a set on reading. Two pods are of one class in the fragmentation measure when the
*strings* are equal, while feasibility compares sets, so both are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from shoal.sim.traces.table import TraceRow, read_rows

# Far above any machine built so far, far below where milli arithmetic in 64 bits could overflow.
MAX_CPU_MILLI = 10_000_000
MAX_MEMORY_MIB = 1 << 30
MAX_GPUS = 128
WHOLE_GPU_MILLI = 1000
_LONGEST_SPEC = 1000


class TraceNode(msgspec.Struct, frozen=True):
    """A machine; everything it has is allocatable. `gpu` counts devices of one `model`."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpu: int
    model: str


class TracePod(msgspec.Struct, frozen=True):
    """A request. `gpu_milli` is per GPU; `gpu_spec` lists the allowed models joined by `|`, empty for any."""

    name: str
    cpu_milli: int
    memory_mib: int
    num_gpu: int
    gpu_milli: int
    gpu_spec: str

    @property
    def models(self) -> frozenset[str]:
        return frozenset(model for part in self.gpu_spec.split("|") if (model := part.strip()))

    @property
    def requested_milli(self) -> int:
        return self.num_gpu * self.gpu_milli


def read_nodes(path: Path) -> list[TraceNode]:
    """The fleet, in file order. The name column may be called `sn`, as published, or `name`."""
    seen: dict[str, int] = {}
    return [
        TraceNode(
            name=_unique(row, "sn", seen),
            cpu_milli=row.integer("cpu_milli", 0, MAX_CPU_MILLI),
            memory_mib=row.integer("memory_mib", 0, MAX_MEMORY_MIB),
            gpu=row.integer("gpu", 0, MAX_GPUS),
            model=_model(row),
        )
        for row in read_rows(path, [("sn", "name"), "cpu_milli", "memory_mib", "gpu", "model"])
    ]


def read_pods(path: Path) -> list[TracePod]:
    """The pods, in file order, which is what an arrival order counts in."""
    seen: dict[str, int] = {}
    pods = []
    for row in read_rows(path, ["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"]):
        name = _unique(row, "name", seen)
        num_gpu = row.integer("num_gpu", 0, MAX_GPUS)
        pods.append(
            TracePod(
                name=name,
                cpu_milli=row.integer("cpu_milli", 0, MAX_CPU_MILLI),
                memory_mib=row.integer("memory_mib", 0, MAX_MEMORY_MIB),
                num_gpu=num_gpu,
                gpu_milli=_gpu_milli(row, num_gpu),
                gpu_spec=_gpu_spec(row) if num_gpu else "",
            )
        )
    return pods


def unknown_models(nodes: Sequence[TraceNode], pods: Sequence[TracePod]) -> list[str]:
    """Models some pod allows and no GPU of the fleet has. They match nothing, which deserves a word."""
    known = {node.model for node in nodes if node.gpu}
    named = {spec: pod.models for pod in pods if (spec := pod.gpu_spec)}
    return sorted(frozenset().union(*named.values()) - known)


def _unique(row: TraceRow, column: str, seen: dict[str, int]) -> str:
    name = row.name(column)
    first = seen.setdefault(name, row.line)
    if first != row.line:
        raise row.wrong(column, f'"{name}" is already the name of row {first}')
    return name


def _model(row: TraceRow) -> str:
    model = row.optional("model")
    if model and (len(model) > _LONGEST_SPEC or "|" in model or not model.isprintable()):
        raise row.wrong("model", "is not the name of one GPU model")
    return model


def _gpu_milli(row: TraceRow, num_gpu: int) -> int:
    if num_gpu == 0:
        if row.optional("gpu_milli"):
            row.integer("gpu_milli", 0, WHOLE_GPU_MILLI)
        return 0
    milli = row.integer("gpu_milli", 1, WHOLE_GPU_MILLI)
    if num_gpu > 1 and milli != WHOLE_GPU_MILLI:
        raise row.wrong(
            "gpu_milli",
            f"{milli} with num_gpu {num_gpu}: only a pod with one GPU can share it",
            f"write {WHOLE_GPU_MILLI}",
        )
    return milli


def _gpu_spec(row: TraceRow) -> str:
    spec = row.optional("gpu_spec")
    if len(spec) > _LONGEST_SPEC:
        raise row.wrong("gpu_spec", f"is {len(spec)} characters long, the limit is {_LONGEST_SPEC}")
    if spec and (not spec.isprintable() or not any(part.strip() for part in spec.split("|"))):
        raise row.wrong("gpu_spec", "names no model", "join model names by |, or leave it empty for any model")
    return spec
