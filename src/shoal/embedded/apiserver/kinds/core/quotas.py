"""ResourceQuotas: what may be counted, and by which scopes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, required
from shoal.embedded.apiserver.kinds.amounts import check_amount, check_resource_name, is_huge_page
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed
from shoal.embedded.apiserver.strategy import Strategy

_COUNTED = frozenset({
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
    "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
})  # fmt: skip
_STANDARD = _COUNTED | {
    "cpu", "memory", "ephemeral-storage", "requests.storage", "requests.cpu", "requests.memory",
    "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage",
}  # fmt: skip
_BY_POD = frozenset({"pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_FOR_ALL_SORTS = ("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity")
_SCOPES = (*_FOR_ALL_SORTS, "BestEffort", "VolumeAttributesClass")
_ONLY_EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_EXIST_ONLY = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_UNSUPPORTED = "unsupported scope applied to resource"


class QuotaStrategy(Strategy):
    has_status = True
    counts_generation = False
    returns_deleted = True

    initial_status: Mapping[str, Any] = {}

    def default(self, obj: Obj) -> None:
        obj.setdefault("spec", {})
        obj.setdefault("status", {})

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        _check_amounts(spec.get("hard") or {}, "spec.hard", errors)
        _check_scopes(spec, errors)
        if (selector := spec.get("scopeSelector")) is not None:
            _check_selector(spec, selector, errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors = self.validate(new)
        scopes, before = new["spec"].get("scopes") or [], old["spec"].get("scopes") or []
        if {*scopes} != {*before}:
            add_changed(errors, "spec.scopes", scopes, before)
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        errors: Errors = []
        for key in ("hard", "used"):
            _check_amounts((new.get("status") or {}).get(key) or {}, f"status.{key}", errors)
        return errors


def _is_standard(name: str) -> bool:
    return name in _STANDARD or is_huge_page(name) or name.startswith("requests.hugepages-")


def _check_amounts(amounts: dict[str, str], path: str, errors: Errors) -> None:
    for name, amount in amounts.items():
        here = f"{path}[{name}]"
        is_known = "/" in name or _is_standard(name)
        if name.startswith("requests.hugepages-"):
            pass
        elif check_resource_name(name, here, errors) and not is_known:
            errors.append(bad_value(here, name, "must be a standard resource for quota"))
        check_amount("pods" if name in _COUNTED else name, amount, here, errors)


def _fits(scope: str, name: str) -> bool:
    if scope in _FOR_ALL_SORTS:
        return name in _BY_POD
    if scope == "BestEffort":
        return name == "pods"
    if scope == "VolumeAttributesClass":
        return name in ("persistentvolumeclaims", "requests.storage")
    return True


def _check_scopes(spec: Obj, errors: Errors) -> None:
    scopes = spec.get("scopes") or []
    path = "spec.scopes"
    for scope in scopes:
        if scope not in _SCOPES:
            errors.append(bad_value(path, scopes, "unsupported scope"))
        for name in sorted(spec.get("hard") or {}):
            if _is_standard(name) and not _fits(scope, name):
                errors.append(bad_value(path, scopes, _UNSUPPORTED))
    _check_opposites(scopes, scopes, path, errors)


def _check_opposites(found: list[str], shown: list[str], path: str, errors: Errors) -> None:
    errors.extend(bad_value(path, shown, "conflicting scopes") for pair in _OPPOSITES if {*pair} <= {*found})


def _check_selector(spec: Obj, selector: Obj, errors: Errors) -> None:
    path = "spec.scopeSelector.matchExpressions"
    terms = selector.get("matchExpressions") or []
    for term in terms:
        scope, operator = term.get("scopeName", ""), term.get("operator", "")
        if scope not in _SCOPES:
            errors.append(bad_value(f"{path}.scopeName", scope, "unsupported scope"))
        for name in sorted(spec.get("hard") or {}):
            if _is_standard(name) and not _fits(scope, name):
                errors.append(bad_value(path, selector, _UNSUPPORTED))
        if scope in _EXIST_ONLY and operator != "Exists":
            errors.append(bad_value(f"{path}.operator", operator, _ONLY_EXISTS))
        _check_values(operator, term.get("values") or [], path, errors)
    _check_opposites([term.get("scopeName", "") for term in terms], spec.get("scopes") or [], path, errors)


def _check_values(operator: str, values: list[str], path: str, errors: Errors) -> None:
    if operator in ("In", "NotIn"):
        if not values:
            words = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            errors.append(required(f"{path}.values", words))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            words = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            errors.append(bad_value(f"{path}.values", values, words))
    else:
        errors.append(bad_value(f"{path}.operator", operator, "not a valid selector operator"))
