"""Checks of what a pod asks for as a whole, beside its containers."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import bad_value, not_allowed, not_supported
from shoal.embedded.apiserver.kinds.amounts import check_amount, is_huge_page
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj
from shoal.units.quantity import ZERO, Quantity

_SUPPORTED = ("cpu", "memory")


def check_whole(spec: Obj, whole: Obj, path: str, errors: Errors) -> None:
    limits, requests = whole.get("limits") or {}, whole.get("requests") or {}
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            here = f"{path}.{side}[{name}]"
            if name not in _SUPPORTED and not is_huge_page(name):
                errors.append(not_supported(here, name, ("cpu", "hugepages-", "memory")))
            check_amount(name, amount, here, errors)
    if whole.get("claims"):
        errors.append(not_allowed(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    for name, amount in requests.items():
        if (limit := limits.get(name)) and Quantity.parse(amount) > Quantity.parse(limit):
            words = f"must be less than or equal to {name} limit of {limit}"
            errors.append(bad_value(f"{path}.requests", amount, words))
    _check_containers_fit(spec, requests, limits, path, errors)


def _check_containers_fit(
    spec: Obj, requests: dict[str, str], limits: dict[str, str], path: str, errors: Errors
) -> None:
    containers = spec.get("containers") or []
    for name in _SUPPORTED:
        if name in requests:
            total = ZERO
            for container in containers:
                asked = ((container.get("resources") or {}).get("requests") or {}).get(name)
                total = total + Quantity.parse(asked) if asked else total
            if total > Quantity.parse(requests[name]):
                words = f"must be greater than or equal to aggregate container requests of {total}"
                errors.append(bad_value(f"{path}.requests[{name}]", requests[name], words))
        if name not in limits:
            continue
        for place, container in enumerate(containers):
            most = ((container.get("resources") or {}).get("limits") or {}).get(name)
            if most and Quantity.parse(most) > Quantity.parse(limits[name]):
                words = f"must be less than or equal to pod limits of {limits[name]}"
                errors.append(bad_value(f"spec.containers[{place}].resources.limits[{name}]", most, words))
