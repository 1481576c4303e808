"""The environment a container would find: what its spec says, and what Kubernetes and the device plugin add."""

from __future__ import annotations

import re
from typing import Any

from shoal.embedded.apiserver.bootstrap.own_service import CLUSTER_ADDRESS
from shoal.embedded.gpus.smi_view import GpuView
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

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
_LISTS = {"status.podIPs": "podIPs", "status.hostIPs": "hostIPs"}


_OF_THE_CLUSTER = {
    "KUBERNETES_SERVICE_HOST": CLUSTER_ADDRESS,
    "KUBERNETES_SERVICE_PORT": "443",
    "KUBERNETES_SERVICE_PORT_HTTPS": "443",
    "KUBERNETES_PORT": f"tcp://{CLUSTER_ADDRESS}:443",
}


def environment(pod: Obj, container: Obj, node: Obj | None = None) -> dict[str, str]:
    """Values from ConfigMaps and Secrets are left out: a terminal sees the pod, not what it refers to.

    What the container sets itself goes before what Kubernetes adds. `node` is where a container without a limit ends.
    """
    spec = pod.get("spec") or {}
    found = {"PATH": _PATH, "HOSTNAME": spec.get("hostname") or pod["metadata"]["name"]}
    # Kubernetes tells of its own service in any case; the links are those of other services.
    services = dict(_OF_THE_CLUSTER)
    known = dict(services)
    for one in container.get("env") or ():
        value = one.get("value")
        if value is None:
            value = _referred(pod, container, node, one.get("valueFrom") or {})
        if value is not None:
            services.pop(one["name"], None)
            found[one["name"]] = known[one["name"]] = _expanded(value, known)
    devices = GpuView.of(container, None, pod).device_ids()
    if devices:
        found["NVIDIA_VISIBLE_DEVICES"] = ",".join(devices)
    return {"HOME": "/root", **found} | services


def _referred(pod: Obj, container: Obj, node: Obj | None, source: Obj) -> str | None:
    amount = source.get("resourceFieldRef")
    return _field(pod, source.get("fieldRef")) if not amount else _amount(pod, container, node, amount)


def _amount(pod: Obj, container: Obj, node: Obj | None, reference: Obj) -> str | None:
    """In whole divisors, rounded up. Who has no limit has what the node has; who asks for nothing has none."""
    named = reference.get("containerName")
    if named and named != container.get("name"):
        every = (pod.get("spec") or {}).get("containers") or ()
        container = next((one for one in every if one.get("name") == named), {})
    part, _, resource = str(reference.get("resource") or "").partition(".")
    resources = container.get("resources") or {}
    written = (resources.get(part) or {}).get(resource)
    if written is None and part == "limits":
        written = (((node or {}).get("status") or {}).get("allocatable") or {}).get(resource)
    try:
        divisor = Quantity.parse(str(reference.get("divisor") or "1")) or Quantity.of(1)
        wanted = Quantity.parse(str(written if written is not None else "0"))
    except UserError:
        return None
    return str(-(-wanted.nano // divisor.nano))


def _field(pod: Obj, reference: Obj | None) -> str | None:
    if not reference:
        return None
    path = reference.get("fieldPath") or ""
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if keyed:
        return (pod["metadata"].get(keyed[1]) or {}).get(keyed[2]) or ""
    if path in _LISTS:
        return ",".join(one["ip"] for one in (pod.get("status") or {}).get(_LISTS[path]) or ())
    steps = _FIELDS.get(path)
    return None if steps is None else str((pod.get(steps[0]) or {}).get(steps[1]) or "")


def _expanded(value: str, known: dict[str, str]) -> str:
    """`$(NAME)` of variables that are known already; `$$` is one dollar sign."""
    return _REFERENCE.sub(lambda met: "$" if met[0] == "$$" else known.get(met[1], met[0]), value)
