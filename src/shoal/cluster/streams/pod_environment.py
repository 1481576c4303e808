"""The environment a container would find: what its spec says, and what Kubernetes and the device plugin add."""

from __future__ import annotations

import re
from typing import Any

from shoal.cluster.bootstrap.own_service import CLUSTER_ADDRESS
from shoal.cluster.gpus.smi_sight import GpuSight

Obj = dict[str, Any]
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_FIELDS = {
    "metadata.name": ("metadata", "name"),
    "metadata.namespace": ("metadata", "namespace"),
    "metadata.uid": ("metadata", "uid"),
    "spec.nodeName": ("spec", "nodeName"),
    "spec.serviceAccountName": ("spec", "serviceAccountName"),
    "status.podIP": ("status", "podIP"),
    "status.hostIP": ("status", "hostIP"),
}


def environment(pod: Obj, container: Obj) -> dict[str, str]:
    """Values from ConfigMaps and Secrets are left out: a terminal sees the pod, not what it refers to."""
    spec = pod.get("spec") or {}
    found = {"PATH": _PATH, "HOSTNAME": spec.get("hostname") or pod["metadata"]["name"]}
    for one in container.get("env") or ():
        value = one.get("value")
        if value is None:
            value = _field(pod, (one.get("valueFrom") or {}).get("fieldRef"))
        if value is not None:
            found[one["name"]] = _expanded(value, found)
    devices = GpuSight.of(container, None, pod).device_ids()
    if devices:
        found["NVIDIA_VISIBLE_DEVICES"] = ",".join(devices)
    if spec.get("enableServiceLinks") is not False:
        found |= {
            "KUBERNETES_SERVICE_HOST": CLUSTER_ADDRESS,
            "KUBERNETES_SERVICE_PORT": "443",
            "KUBERNETES_SERVICE_PORT_HTTPS": "443",
            "KUBERNETES_PORT": f"tcp://{CLUSTER_ADDRESS}:443",
        }
    return {**found, "HOME": "/root"}


def _field(pod: Obj, reference: Obj | None) -> str | None:
    if not reference:
        return None
    path = reference.get("fieldPath") or ""
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if keyed:
        return (pod["metadata"].get(keyed[1]) or {}).get(keyed[2]) or ""
    steps = _FIELDS.get(path)
    return None if steps is None else str((pod.get(steps[0]) or {}).get(steps[1]) or "")


def _expanded(value: str, known: dict[str, str]) -> str:
    """`$(NAME)` of variables that are known already; `$$` is one dollar sign."""
    return _REFERENCE.sub(lambda met: "$" if met[0] == "$$" else known.get(met[1], met[0]), value)
