"""Amounts of resources: which names there are, what may be asked for, and what a refusal says.

A cluster sees few different requests and very many pods, so a whole `resources` block is judged once and the
judgement kept.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from shoal.embedded.apiserver.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    missing_reference,
    not_allowed,
    required,
)
from shoal.embedded.apiserver.kinds.complaints import NEGATIVE, Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults, label_key_faults
from shoal.units.quantity import NANO, Quantity

Items = tuple[tuple[str, str], ...]

_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_QUOTA_RESOURCES = frozenset({
    "pods", "requests.cpu", "requests.memory", "requests.ephemeral-storage", "limits.cpu", "limits.memory",
    "limits.ephemeral-storage", "resourcequotas", "services", "replicationcontrollers", "secrets",
    "persistentvolumeclaims", "configmaps", "services.nodeports", "services.loadbalancers",
})  # fmt: skip
_STANDARD_RESOURCES = _CONTAINER_RESOURCES | _QUOTA_RESOURCES | {"storage", "requests.storage"}
NOT_INTEGER = "must be an integer"


def is_huge_page(name: str) -> bool:
    return name.startswith("hugepages-")


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    if is_native(name) or name.startswith("requests."):
        return False
    return not label_key_faults(f"requests.{name}")


def check_resource_name(name: str, path: str, errors: Errors) -> bool:
    """Whether it is a name that any object may count; complains when not."""
    if faults := label_key_faults(name):
        add_faults(errors, path, name, faults)
        return False
    if "/" not in name and name not in _STANDARD_RESOURCES and not is_huge_page(name):
        errors.append(bad_value(path, name, "must be a standard resource type or fully qualified"))
    return True


def _check_container_resource(name: str, path: str, errors: Errors) -> None:
    check_resource_name(name, path, errors)
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not is_huge_page(name):
            errors.append(bad_value(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(bad_value(path, name, "doesn't follow extended resource name standard"))


def check_amount(name: str, amount: str, path: str, errors: Errors) -> None:
    value = Quantity.parse(amount)
    if value.nano < 0:
        errors.append(bad_value(path, amount, NEGATIVE))
    if value.nano % NANO and (is_extended(name) or name == "pods"):
        errors.append(bad_value(path, amount, NOT_INTEGER))


def check_resources(resources: Obj | None, path: str, claims: frozenset[str] | None, errors: Errors) -> None:
    """The `resources` of a container, or of a pod template's; `claims` are the names the pod declares."""
    if not resources:
        return
    limits, requests = resources.get("limits"), resources.get("requests")
    if limits or requests:
        found = _judged(tuple((limits or {}).items()), tuple((requests or {}).items()))
        errors += [msgspec.structs.replace(one, field=path + one.field) for one in found]
    if listed := resources.get("claims"):
        _check_claims(listed, f"{path}.claims", claims or frozenset(), errors)


@lru_cache(maxsize=8192)
def _judged(limits: Items, requests: Items) -> tuple[FieldError, ...]:
    """Complaints with paths below `resources`."""
    errors: Errors = []
    ceilings = dict(limits)
    for name, amount in limits:
        path = f".limits[{name}]"
        _check_container_resource(name, path, errors)
        check_amount(name, amount, path, errors)
    for name, amount in requests:
        path = f".requests[{name}]"
        _check_container_resource(name, path, errors)
        check_amount(name, amount, path, errors)
        _check_below(name, amount, ceilings.get(name), errors)
    names = {name for name, _ in limits + requests}
    if any(is_huge_page(name) for name in names) and not names & {"cpu", "memory"}:
        errors.append(not_allowed("", "HugePages require cpu or memory"))
    return tuple(errors)


def _check_below(name: str, amount: str, limit: str | None, errors: Errors) -> None:
    can_overcommit = is_native(name) and not is_huge_page(name)
    if limit is None:
        if not can_overcommit:
            errors.append(required(".limits", "Limit must be set for non overcommitable resources"))
        return
    asked, most = Quantity.parse(amount), Quantity.parse(limit)
    if asked != most and not can_overcommit:
        errors.append(bad_value(".requests", amount, f"must be equal to {name} limit of {limit}"))
    elif asked > most:
        errors.append(bad_value(".requests", amount, f"must be less than or equal to {name} limit of {limit}"))


def _check_claims(listed: list[Obj], path: str, known: frozenset[str], errors: Errors) -> None:
    seen: set[tuple[str, str]] = set()
    for place, claim in enumerate(listed):
        name, request = claim.get("name", ""), claim.get("request", "")
        here = f"{path}[{place}]"
        if not name:
            errors.append(required(f"{here}.name"))
            continue
        if (name, request) in seen or (name, "") in seen:
            errors.append(duplicate(here, f"{name}/{request}" if request else name))
        seen.add((name, request))
        if request:
            add_faults(errors, f"{here}.request", request, dns_label_faults(request))
        if name not in known:
            names = f": {', '.join(sorted(known))}" if known else " which is empty"
            errors.append(missing_reference(here, name, f"must be one of the names in pod.spec.resourceClaims{names}"))
