"""Builds the Node object of a simulated machine, as its kubelet, its cloud provider and GPU feature discovery write
it.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid5

from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.node_gpus import NodeGpus
from shoal.embedded.kubelets.faults import GPU_SOFTWARE
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.embedded.machines.features import feature_labels
from shoal.embedded.machines.machine import Machine

Obj = dict[str, Any]
VERSION = "v1.36.0"
_SPACE = UUID("3d0f3c5e-5f0a-4d3f-9b4a-2b8d6c1f7a90")
_ATTACHES = "volumes.kubernetes.io/controller-managed-attach-detach"
_WEB_SOCKETS = "ExtendWebSocketsToKubelet"
"""The protocol of this endpoint; API servers use SPDY, which it does not support, for kubelets that do not declare this
feature.
"""
_INFO = {
    "architecture": "amd64",
    "containerRuntimeVersion": "containerd://2.1.4",
    "kernelVersion": "6.8.0-1033-aws",
    "kubeProxyVersion": "",
    "kubeletVersion": VERSION,
    "operatingSystem": "linux",
    "osImage": "Ubuntu 24.04.3 LTS",
}


def labels_of(machine: Machine, gpus: NodeGpus) -> dict[str, str]:
    own = {
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": machine.node_info.get("architecture", "amd64"),
    }
    found = {key: value for key, value in gpus.labels().items() if value is not None}
    chosen = {"nvidia.com/mig.config": machine.mig_config} if machine.mig_config and machine.gpus else {}
    if not isinstance(gpus, DeviceManager) or gpus.software.has("discovery"):
        own |= feature_labels(machine, {**_INFO, **machine.node_info})
    return {**own, "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": own["kubernetes.io/arch"]} | {
        **machine.labels,
        **chosen,
        **found,
    }


def node_of(machine: Machine, gpus: NodeGpus) -> Obj:
    """The Node without its status."""
    annotations = {key: value for key, value in gpus.annotations().items() if value is not None}
    spec: Obj = {"providerID": machine.provider_id} if machine.provider_id else {}
    if machine.taints:
        spec["taints"] = [dict(taint) for taint in machine.taints]
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": machine.name,
            "labels": labels_of(machine, gpus),
            "annotations": {_ATTACHES: "true", **_software(machine), **machine.annotations, **annotations},
        },
        "spec": spec,
    }


def _software(machine: Machine) -> dict[str, str]:
    return {} if machine.gpu_software == "included" else {GPU_SOFTWARE: machine.gpu_software}


def amounts(machine: Machine, gpus: NodeGpus) -> tuple[dict[str, str], dict[str, str]]:
    """The node's capacity and allocatable resources."""
    counted = gpus.resources()
    capacity = {name: str(value.capacity) for name, value in counted.items()}
    allocatable = {name: str(value.allocatable) for name, value in counted.items()}
    return {**machine.capacity, **capacity}, {**machine.allocatable, **allocatable}


def node_status(machine: Machine, gpus: NodeGpus, settings: FleetSettings, address: str, boot_id: str) -> Obj:
    """The status without the conditions."""
    capacity, allocatable = amounts(machine, gpus)
    declared: Obj = {"declaredFeatures": [_WEB_SOCKETS]} if settings.kubelet_address else {}
    identity = {"machineID": boot_id_of(machine.name, "machine").replace("-", ""), "bootID": boot_id}
    return {
        "capacity": capacity,
        "allocatable": allocatable,
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": machine.name},
        ],
        **declared,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": settings.kubelet_port}},
        "nodeInfo": {**_INFO, **machine.node_info, **identity, "systemUUID": boot_id_of(machine.name, "system")},
    }


def boot_id_of(node: str, why: str) -> str:
    """Equal for equal reasons to boot, so that a completed reboot is recognized."""
    return str(uuid5(_SPACE, f"{node}/{why}"))
