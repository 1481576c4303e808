"""Evaluates the quota usage of services, volume claims and device claims."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.embedded.apiserver.admission.storage import storage_class
from shoal.embedded.apiserver.reading import Obj
from shoal.embedded.apiserver.resource import Home
from shoal.policy.admission.pod_resources import Amounts, add, parsed
from shoal.policy.admission.quota.evaluator import ONE, Evaluator
from shoal.policy.admission.quota.scopes import Scope, volume_claim_in_scope
from shoal.units.quantity import ZERO, Quantity

_STORAGE_CLASS = ".storageclass.storage.k8s.io/"
_VOLUME_NAMES = ("persistentvolumeclaims", "requests.storage")
_DEVICES = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES = 32
"""The number of devices of a claim for all devices is unknown; this is the maximum for a claim."""


class ServiceEvaluator(Evaluator):
    def __init__(self) -> None:
        super().__init__(Home("", "services"))

    def handles(self, operation: str, subresource: str) -> bool:
        return operation in ("CREATE", "UPDATE") and not subresource

    def matching(self, names: Iterable[str]) -> set[str]:
        return {"count/services", "services", "services.nodeports", "services.loadbalancers"}.intersection(names)

    def usage(self, obj: Obj) -> Amounts:
        spec = obj.get("spec") or {}
        ports = spec.get("ports") or ()
        kind = spec.get("type")
        node_ports = len(ports) if kind in ("NodePort", "LoadBalancer") else 0
        if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
            node_ports = sum(1 for port in ports if port.get("nodePort"))
        return {
            "count/services": ONE,
            "services": ONE,
            "services.nodeports": Quantity.of(node_ports),
            "services.loadbalancers": ONE if kind == "LoadBalancer" else ZERO,
        }


class VolumeClaimEvaluator(Evaluator):
    def __init__(self) -> None:
        super().__init__(Home("", "persistentvolumeclaims"))

    def handles(self, operation: str, subresource: str) -> bool:
        return operation in ("CREATE", "UPDATE") and subresource in ("", "status")

    def matching(self, names: Iterable[str]) -> set[str]:
        ends = tuple(_STORAGE_CLASS + name for name in _VOLUME_NAMES)
        return {name for name in names if name == self.count_name or name in _VOLUME_NAMES or name.endswith(ends)}

    def in_scope(self, scope: Scope, obj: Obj) -> bool:
        return volume_claim_in_scope(scope, obj)

    def usage(self, obj: Obj) -> Amounts:
        found = {self.count_name: ONE, "persistentvolumeclaims": ONE}
        requests = parsed(((obj.get("spec") or {}).get("resources") or {}).get("requests"))
        size = requests.get("storage")
        if size is not None:
            allocated = parsed((obj.get("status") or {}).get("allocatedResources")).get("storage", size)
            size = max(size, allocated)
            found["requests.storage"] = size if size.is_integer() else Quantity.of(size.value(), size.format)
        name = storage_class(obj)
        if name:
            found |= {f"{name}{_STORAGE_CLASS}{one}": found[one] for one in _VOLUME_NAMES if one in found}
        return found


class DeviceClaimEvaluator(Evaluator):
    def __init__(self) -> None:
        super().__init__(Home("resource.k8s.io", "resourceclaims"))

    def matching(self, names: Iterable[str]) -> set[str]:
        return {name for name in names if name == self.count_name or name.endswith(_DEVICES)}

    def usage(self, obj: Obj) -> Amounts:
        found = {self.count_name: ONE}
        for request in ((obj.get("spec") or {}).get("devices") or {}).get("requests") or ():
            # Only one of the alternatives will be allocated: of each class the largest counts.
            highest: Amounts = {}
            for one in request.get("firstAvailable") or [request.get("exactly") or request]:
                name, count = f"{one.get('deviceClassName', '')}{_DEVICES}", _device_count(one)
                highest[name] = max(highest.get(name, ZERO), count)
            add(found, highest)
        return found


def _device_count(request: Obj) -> Quantity:
    if request.get("allocationMode") == "All":
        return Quantity.of(_MOST_DEVICES)
    return Quantity.of(int(request.get("count") or 1))
