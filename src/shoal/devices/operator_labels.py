"""Computes the labels by which NVIDIA's GPU operator selects nodes and starts its components on them."""

from __future__ import annotations

PRESENT = "nvidia.com/gpu.present"
_DEPLOY = "nvidia.com/gpu.deploy."
_OPERANDS = (
    "container-toolkit",
    "dcgm",
    "dcgm-exporter",
    "device-plugin",
    "driver",
    "gpu-feature-discovery",
    "node-status-exporter",
    "operator-validator",
)
_MIG_MANAGER = "mig-manager"


def operator_labels(*, is_mig_capable: bool) -> dict[str, str]:
    """Of a node with GPUs."""
    names = (*_OPERANDS, _MIG_MANAGER) if is_mig_capable else _OPERANDS
    return {PRESENT: "true", **{_DEPLOY + name: "true" for name in names}}
