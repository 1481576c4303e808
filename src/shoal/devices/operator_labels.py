"""Computes the labels by which NVIDIA's GPU operator selects nodes and starts its components on them."""

from __future__ import annotations

PRESENT = "nvidia.com/gpu.present"
DEPLOY = "nvidia.com/gpu.deploy."
WORKLOAD_CONFIG = "nvidia.com/gpu.workload.config"
"""How the GPUs of a node are used: `container`, `vm-passthrough` or `vm-vgpu`."""
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
_VIRTUAL_MACHINES = {
    "vm-passthrough": (
        "cc-manager",
        "kata-manager",
        "kata-sandbox-device-plugin",
        "sandbox-device-plugin",
        "sandbox-validator",
        "vfio-manager",
    ),
    "vm-vgpu": (
        "cc-manager",
        "sandbox-device-plugin",
        "sandbox-validator",
        "vgpu-device-manager",
        "vgpu-manager",
    ),
}
_MIG_MANAGER, _PLUGIN, _CLAIM_DRIVER = "mig-manager", "device-plugin", "dra-driver"
CONTAINER = "container"
WORKLOAD_CONFIGS = (CONTAINER, *_VIRTUAL_MACHINES)


def operator_labels(*, is_mig_capable: bool, gives_by_claims: bool = False) -> dict[str, str]:
    """Of a node with GPUs. `gives_by_claims`: a driver of resource claims runs in place of the device plugin."""
    names: tuple[str, ...] = (*_OPERANDS, _MIG_MANAGER) if is_mig_capable else _OPERANDS
    if gives_by_claims:
        names = tuple(_CLAIM_DRIVER if name == _PLUGIN else name for name in names)
    return {PRESENT: "true", **{DEPLOY + name: "true" for name in names}}


def workload_labels(config: str, *, is_mig_capable: bool) -> dict[str, str]:
    """Of a node with GPUs that are used in this way."""
    if config == CONTAINER:
        return operator_labels(is_mig_capable=is_mig_capable)
    return {PRESENT: "true", **{DEPLOY + name: "true" for name in _VIRTUAL_MACHINES[config]}}


def all_deploy_labels() -> frozenset[str]:
    """The names of all labels of this kind, except that of nodes whose GPUs are given by claims."""
    names = {*_OPERANDS, _MIG_MANAGER, *(name for some in _VIRTUAL_MACHINES.values() for name in some)}
    return frozenset(DEPLOY + name for name in names)
