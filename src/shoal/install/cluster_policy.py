"""Makes the ClusterPolicy (`nvidia.com/v1`) and the ConfigMaps beside it from the values.

Each option goes to the field of its name, as with NVIDIA's chart. Empty texts, lists and objects are left out: the
defaults of the definition apply. Components of virtual machines are left out unless `sandboxWorkloads` is enabled.
"""

from __future__ import annotations

from typing import Any

from shoal.install.values.known import OPTIONS, put
from shoal.install.values.reading import ChartValues

Obj = dict[str, Any]
POLICY_NAME = "cluster-policy"
OF_MACHINES = (
    *("vfioManager", "sandboxDevicePlugin", "kataSandboxDevicePlugin", "vgpuManager", "vgpuDeviceManager"),
    *("kataManager", "ccManager"),
)
CONFIGS = (
    ("devicePlugin", "device-plugin-config"),
    ("migManager", "mig-parted-config"),
    ("dcgmExporter", "metrics-config"),
)
"""Options that make a ConfigMap, and its name if none is given."""


def cluster_policy(values: ChartValues) -> Obj:
    """Without labels."""
    spec: Obj = {}
    for option in OPTIONS:
        if option.target is not None:
            value = values.get(option.path)
            if value not in ("", [], {}):
                put(spec, option.target, value)
    for component, usual in CONFIGS:
        if values.get(f"{component}.config.create") and not values.get(f"{component}.config.name"):
            put(spec, f"{component}.config.name", usual)
    if not values.get("sandboxWorkloads.enabled"):
        for name in OF_MACHINES:
            spec.pop(name, None)
    return {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": POLICY_NAME}, "spec": spec}


def component_configs(values: ChartValues, namespace: str) -> list[Obj]:
    """The ConfigMaps that `devicePlugin.config.create` and its like ask for."""
    found = []
    for component, usual in CONFIGS:
        data = values.get(f"{component}.config.data")
        if values.get(f"{component}.config.create"):
            meta = {"name": values.get(f"{component}.config.name") or usual, "namespace": namespace}
            found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": dict(data)})
    return found


def default_driver(values: ChartValues) -> list[Obj]:
    """The NVIDIADriver `default`, where drivers are described by such objects."""
    if not values.get("driver.nvidiaDriverCRD.enabled") or not values.get("driver.nvidiaDriverCRD.deployDefaultCR"):
        return []
    same = ("repository", "image", "version", "kernelModuleType", "usePrecompiled", "imagePullPolicy", "env")
    spec = {name: value for name in same if (value := values.get(f"driver.{name}")) not in ("", [])}
    spec["driverType"] = values.get("driver.nvidiaDriverCRD.driverType")
    selector = values.get("driver.nvidiaDriverCRD.nodeSelector")
    if selector:
        spec["nodeSelector"] = dict(selector)
    meta = {"name": "default"}
    return [{"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "metadata": meta, "spec": spec}]
