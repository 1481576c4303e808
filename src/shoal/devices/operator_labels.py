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
_MIG_MANAGER, _PLUGIN, _CLAIM_DRIVER = "mig-manager", "device-plugin", "dra-driver"


def operator_labels(*, is_mig_capable: bool, gives_by_claims: bool = False) -> dict[str, str]:
    """Of a node with GPUs. `gives_by_claims`: a driver of resource claims runs in place of the device plugin."""
    names: tuple[str, ...] = (*_OPERANDS, _MIG_MANAGER) if is_mig_capable else _OPERANDS
    if gives_by_claims:
        names = tuple(_CLAIM_DRIVER if name == _PLUGIN else name for name in names)
    return {PRESENT: "true", **{_DEPLOY + name: "true" for name in names}}
