"""Names the layers of GPU software of a node, and which of them a machine has from the start.

By default a simulated machine has all of them, so that a cluster is usable at once. In the other modes the pods of a
GPU operator add the missing layers, as on a new machine.
"""

from __future__ import annotations

from typing import Literal, get_args

Layer = Literal[
    "discovery",
    "driver",
    "toolkit",
    "device-plugin",
    "feature-discovery",
    "dcgm",
    "dcgm-exporter",
    "mig-manager",
    "validator",
]
LAYERS: tuple[Layer, ...] = get_args(Layer)
GpuSoftware = Literal["included", "pods", "driver", "driver+toolkit"]
"""`included`: everything; `pods`: nothing; the others: what is preinstalled on the machine."""
GPU_SOFTWARE: tuple[GpuSoftware, ...] = get_args(GpuSoftware)
_PREINSTALLED: dict[GpuSoftware, frozenset[Layer]] = {
    "included": frozenset(LAYERS),
    "pods": frozenset(),
    "driver": frozenset({"driver"}),
    "driver+toolkit": frozenset({"driver", "toolkit"}),
}


def preinstalled(software: GpuSoftware) -> frozenset[Layer]:
    return _PREINSTALLED[software]
