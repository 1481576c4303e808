"""Computes the roles in a pod group: pods with the same requests have one role, which is one pod set of the Workload.

The role is written to a pod when it is ungated: the fields that are injected then (node labels of its flavor) would
otherwise change the role.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from shoal.client.item import Item
from shoal.controllers.queued_pods.kueue_names import ROLE_HASH

_FIELDS = (
    "affinity",
    "nodeSelector",
    "overhead",
    "priority",
    "resourceClaims",
    "runtimeClassName",
    "tolerations",
    "topologySpreadConstraints",
)
_known: WeakKeyDictionary[Item, str] = WeakKeyDictionary()


def role_of(item: Item) -> str:
    found = _known.get(item)
    if found is None:
        found = _known[item] = role_of_pod(item.obj())
    return found


def role_of_pod(pod: Mapping[str, Any]) -> str:
    noted = (pod["metadata"].get("annotations") or {}).get(ROLE_HASH)
    if noted:
        return str(noted)
    spec = pod.get("spec") or {}
    shape = {name: spec.get(name) for name in _FIELDS}
    shape["containers"] = [_container(one) for one in spec.get("containers") or ()]
    shape["initContainers"] = [_container(one) for one in spec.get("initContainers") or ()]
    return sha256(msgspec.json.encode({"spec": shape}, order="sorted")).hexdigest()[:8]


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    requests = (container.get("resources") or {}).get("requests")
    return {"resources": {"requests": requests}, "ports": container.get("ports")}
