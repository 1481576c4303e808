"""Computes the values of the downward API: fields of the pod, and resources of its containers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from shoal.units.quantity import Quantity

Obj = dict[str, Any]
_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_FIELDS = {
    "metadata.name": ("metadata", "name"),
    "metadata.namespace": ("metadata", "namespace"),
    "metadata.uid": ("metadata", "uid"),
    "spec.nodeName": ("spec", "nodeName"),
    "spec.serviceAccountName": ("spec", "serviceAccountName"),
}
_POD_ADDRESSES = frozenset({"status.podIP", "status.podIPs"})
_HOST_ADDRESSES = frozenset({"status.hostIP", "status.hostIPs"})


class Addresses(NamedTuple):
    pod: str
    host: str
    """Of the node; that of a pod in its network is the same."""


def field_value(pod: Obj, path: str, addresses: Addresses) -> str | None:
    """None for a field that does not exist."""
    keyed = _KEYED.fullmatch(path)
    if keyed:
        return str((pod["metadata"].get(keyed[1]) or {}).get(keyed[2]) or "")
    if path in ("metadata.labels", "metadata.annotations"):
        values = pod["metadata"].get(path.partition(".")[2]) or {}
        return "\n".join(f"{key}={_quoted(value)}" for key, value in sorted(values.items()))
    if path in _POD_ADDRESSES:
        return addresses.pod
    if path in _HOST_ADDRESSES:
        return addresses.host
    if path not in _FIELDS:
        return None
    section, key = _FIELDS[path]
    return str(pod[section].get(key) or "")


def resource_value(pod: Obj, container: Obj, reference: Obj, allocatable: Mapping[str, str]) -> str:
    """In whole divisors, rounded up. Without a limit the value is what the node has; without a request it is 0."""
    named = reference.get("containerName")
    if named and named != container.get("name"):
        spec = pod["spec"]
        every = (*(spec.get("initContainers") or ()), *spec["containers"])
        container = next((one for one in every if one["name"] == named), {})
    part, _, resource = str(reference.get("resource") or "").partition(".")
    written = ((container.get("resources") or {}).get(part) or {}).get(resource)
    if written is None and part == "limits":
        written = allocatable.get(resource)
    divisor = Quantity.parse(str(reference.get("divisor") or "1")).nano or Quantity.of(1).nano
    return str(-(-Quantity.parse(str(written if written is not None else "0")).nano // divisor))


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
