"""Prints `nvidia-smi topo -m`: the connections between GPUs, over NVLink or over the buses, and their NUMA nodes."""

from __future__ import annotations

from shoal.data.gpus import find_model
from shoal.embedded.gpus.smi_view import GpuView, SeenGpu

_LINKS = {"nvlink2": 6, "nvlink3": 12, "nvlink4": 18, "nvlink5": 18}
_LEGEND = """
Legend:

  X    = Self
  SYS  = Across the interconnect between NUMA nodes
  NODE = Across host bridges within a NUMA node
  NV#  = Over a bonded set of # NVLinks
"""


def topology(view: GpuView) -> str:
    head = [f"GPU{gpu.index}" for gpu in view.gpus]
    lines = ["\t".join(["", *head, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    for gpu in view.gpus:
        row = [f"GPU{gpu.index}", *(_relation(gpu, other) for other in view.gpus), "N/A", str(gpu.numa), "N/A"]
        lines.append("\t".join(row))
    return "".join(f"{line}\n" for line in lines) + _LEGEND


def _relation(one: SeenGpu, other: SeenGpu) -> str:
    if one.index == other.index:
        return " X "
    model = find_model(one.model) if one.model else None
    links = _LINKS.get(model.link[:7], 0) if model is not None else 0
    # MIG instances do not use NVLink.
    if links and one.island == other.island and not (one.is_mig or other.is_mig):
        return f"NV{links}"
    return "NODE" if one.numa == other.numa else "SYS"
