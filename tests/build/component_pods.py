"""Pods of a GPU operator, as its DaemonSets make them: an init container that waits, and one main container."""

from __future__ import annotations

from typing import Any

from shoal.client.item import Obj

APPS = {
    "discovery": "node-feature-discovery",
    "driver": "nvidia-driver-daemonset",
    "toolkit": "nvidia-container-toolkit-daemonset",
    "device-plugin": "nvidia-device-plugin-daemonset",
    "feature-discovery": "gpu-feature-discovery",
    "dcgm": "nvidia-dcgm",
    "dcgm-exporter": "nvidia-dcgm-exporter",
    "mig-manager": "nvidia-mig-manager",
    "validator": "nvidia-operator-validator",
}
_INITS = {
    "driver": ("k8s-driver-manager",),
    "toolkit": ("driver-validation",),
    "device-plugin": ("toolkit-validation",),
    "feature-discovery": ("toolkit-validation",),
    "dcgm": ("toolkit-validation",),
    "dcgm-exporter": ("toolkit-validation",),
    "mig-manager": ("toolkit-validation",),
    "validator": ("driver-validation", "toolkit-validation", "cuda-validation", "plugin-validation"),
}
_MAINS = {"driver": "nvidia-driver-ctr"}


def pod_template(component: str, image: str = "example.com/component:1.0") -> Obj:
    """The metadata and spec of the pods of its DaemonSet."""
    spec: Obj = {
        "containers": [{"name": _MAINS.get(component, component), "image": image}],
        "initContainers": [{"name": name, "image": "example.com/init:1.0"} for name in _INITS.get(component, ())],
    }
    return {"metadata": {"labels": {"app": APPS[component]}}, "spec": spec}


def component_pod(component: str, node: str = "node-0", *, name: str = "", **template: Any) -> Obj:
    """One pod, bound to the node, with the name of its component."""
    found = pod_template(component, **template)
    metadata = {"name": name or component, "namespace": "default", **found["metadata"]}
    return {"metadata": metadata, "spec": {**found["spec"], "nodeName": node}}
