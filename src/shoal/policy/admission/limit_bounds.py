"""Checks values against the bounds of one entry of a LimitRange, with Kubernetes' messages."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.admission.pod_resources import Amounts, Obj, container_amounts, parsed, pod_amounts
from shoal.units.quantity import Quantity

_NONE: Amounts = {}


class LimitRangeBounds:
    """An entry, read."""

    __slots__ = ("high", "kind", "low", "ratio")

    def __init__(self, limit: Obj) -> None:
        self.kind = str(limit.get("type", ""))
        self.low = sorted(parsed(limit.get("min")).items())
        self.high = sorted(parsed(limit.get("max")).items())
        self.ratio = sorted(parsed(limit.get("maxLimitRequestRatio")).items())

    def faults(self, requests: Amounts, limits: Amounts) -> Iterator[str]:
        for name, bound in self.low:
            if fault := _below(f"minimum {name} usage per {self.kind} is {bound}", name, bound, requests, limits):
                yield fault
        for name, bound in self.high:
            if fault := _above(f"maximum {name} usage per {self.kind} is {bound}", name, bound, requests, limits):
                yield fault
        for name, bound in self.ratio:
            what = f"{name} max limit to request ratio per {self.kind} is {bound}"
            if fault := _stretched(what, bound, requests.get(name), limits.get(name)):
                yield fault


def pod_faults(bounds: LimitRangeBounds, spec: Obj) -> list[str]:
    if bounds.kind == "Container":
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        return [
            fault
            for one in containers
            for fault in bounds.faults(container_amounts(one, "requests"), container_amounts(one, "limits"))
        ]
    if bounds.kind == "Pod":
        return list(bounds.faults(pod_amounts(spec, "requests"), pod_amounts(spec, "limits")))
    return []


def storage_faults(bounds: LimitRangeBounds, spec: Obj) -> list[str]:
    if bounds.kind != "PersistentVolumeClaim":
        return []
    requests = container_amounts(spec, "requests")
    faults = []
    for name, bound in bounds.low:
        what = f"minimum {name} usage per {bounds.kind} is {bound}"
        faults.append(_below(what, name, bound, requests, _NONE))
    for name, bound in bounds.high:
        what = f"maximum {name} usage per {bounds.kind} is {bound}"
        request = requests.get(name)
        if request is None:
            faults.append(f"{what}.  No request is specified")
        elif request > bound:
            faults.append(f"{what}, but request is {request}")
    return [fault for fault in faults if fault]


def _below(what: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    request, limit = requests.get(name), limits.get(name)
    if request is None:
        return f"{what}.  No request is specified"
    if request < bound:
        return f"{what}, but request is {request}"
    return f"{what}, but limit is {limit}" if limit is not None and limit < bound else ""


def _above(what: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    request, limit = requests.get(name), limits.get(name)
    if limit is None:
        return f"{what}.  No limit is specified"
    if limit > bound:
        return f"{what}, but limit is {limit}"
    return f"{what}, but request is {request}" if request is not None and request > bound else ""


def _stretched(what: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> str:
    if not request:
        return f"{what}, but no request is specified or request is 0"
    if not limit:
        return f"{what}, but no limit is specified or limit is 0"
    if limit.nano * 1_000_000_000 > bound.nano * request.nano:
        return f"{what}, but provided ratio is {limit.nano / request.nano:f}"
    return ""
