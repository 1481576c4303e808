"""Checks the metrics of an autoscaler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from shoal.embedded.apiserver.field_errors import bad_value, not_allowed, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import NOT_POSITIVE, Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.labels import check_selector
from shoal.embedded.apiserver.kinds.spellings import path_segment_faults
from shoal.units.quantity import Quantity

_FIELDS = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_TARGETS = ("Utilization", "Value", "AverageValue")


def check_target(reference: Obj, path: str, errors: Errors) -> None:
    for key in ("kind", "name"):
        if not (value := reference.get(key, "")):
            errors.append(required(f"{path}.{key}"))
        else:
            add_faults(errors, f"{path}.{key}", value, path_segment_faults(value))


def group_fault(reference: Obj, *, may_be_core: bool) -> str:
    """What is wrong with the apiVersion of what is named; empty if nothing is."""
    api_version = reference.get("apiVersion", "")
    if api_version.count("/") > 1:
        return f"unexpected GroupVersion string: {api_version}"
    if may_be_core or (api_version.partition("/")[0] and "/" in api_version):
        return ""
    return "apiVersion must specify API group"


def check_metrics(metrics: list[Obj], path: str, errors: Errors) -> None:
    for place, metric in enumerate(metrics):
        here, kind = f"{path}[{place}]", metric.get("type", "")
        if not kind:
            errors.append(required(f"{here}.type", "must specify a metric source type"))
        if kind not in _FIELDS:
            errors.append(not_supported(f"{here}.type", kind, tuple(_FIELDS)))
        given = [field for field in ("object", "external", "pods", "resource", "containerResource") if field in metric]
        if given:
            _CHECKS[given[0]](metric[given[0]], f"{here}.{given[0]}", errors)
        expected = _FIELDS.get(kind, kind.lower())
        if kind not in _FIELDS:
            errors.append(not_supported(f"{here}.type", kind, tuple(_FIELDS)))
        elif expected not in given:
            words = "must populate information for the given metric source"
            errors.append(required(f"{here}.{expected}", words))
        if len(given) != 1:
            for field in given:
                if field != expected:
                    errors.append(not_allowed(f"{here}.{field}", "must populate the given metric source only"))


def _check_named(metric: Obj, path: str, errors: Errors) -> None:
    if not (name := metric.get("name", "")):
        errors.append(required(f"{path}.name", "must specify a metric name"))
    else:
        add_faults(errors, f"{path}.name", name, path_segment_faults(name))
    check_selector(metric.get("selector"), f"{path}.selector", errors)


def _check_amount(target: Obj, path: str, errors: Errors) -> None:
    if not target.get("type"):
        errors.append(required(f"{path}.type", "must specify a metric target type"))
    elif target["type"] not in _TARGETS:
        words = "must be either Utilization, Value, or AverageValue"
        errors.append(bad_value(f"{path}.type", target["type"], words))
    for key in ("value", "averageValue"):
        if (amount := target.get(key)) is not None and Quantity.parse(amount).nano <= 0:
            errors.append(bad_value(f"{path}.{key}", amount, "must be positive"))
    if (share := target.get("averageUtilization")) is not None and share < 1:
        errors.append(bad_value(f"{path}.averageUtilization", share, NOT_POSITIVE))


class _TargetRule(NamedTuple):
    """Which fields of a target are required and which exclude each other, and the API server's messages for that."""

    required: tuple[str, ...]
    """At least one of these fields; errors name the last one."""
    missing: str
    exclusive: tuple[str, str, str] | None = None
    """Two fields that exclude each other, and the one that the error names."""
    conflict: str = ""


_TARGET_RULES: Mapping[str, _TargetRule] = {
    "object": _TargetRule(("value", "averageValue"), "must set either a target value or averageValue"),
    "external": _TargetRule(
        ("value", "averageValue"),
        "must set either a target value for metric or a per-pod target",
        ("value", "averageValue", "value"),
        "may not set both a target value for metric and a per-pod target",
    ),
    "pods": _TargetRule(("averageValue",), "must specify a positive target averageValue"),
    "resource": _TargetRule(
        ("averageValue", "averageUtilization"),
        "must set either a target raw value or a target utilization",
        ("averageUtilization", "averageValue", "averageValue"),
        "may not set both a target raw value and a target utilization",
    ),
}


def _check_metric_target(source: Obj, rule: _TargetRule, path: str, errors: Errors) -> None:
    target = source.get("target") or {}
    _check_amount(target, path, errors)
    if all(target.get(key) is None for key in rule.required):
        errors.append(required(f"{path}.{rule.required[-1]}", rule.missing))
    if rule.exclusive is not None:
        one, other, named = rule.exclusive
        if target.get(one) is not None and target.get(other) is not None:
            errors.append(not_allowed(f"{path}.{named}", rule.conflict))


def _check_object(source: Obj, path: str, errors: Errors) -> None:
    described = source.get("describedObject") or {}
    check_target(described, f"{path}.describedObject", errors)
    if fault := group_fault(described, may_be_core=True):
        errors.append(bad_value(f"{path}.describedObject.apiVersion", described.get("apiVersion", ""), fault))
    _check_metric("object", source, path, errors)


def _check_metric(field: str, source: Obj, path: str, errors: Errors) -> None:
    _check_named(source.get("metric") or {}, f"{path}.metric", errors)
    _check_metric_target(source, _TARGET_RULES[field], f"{path}.target", errors)


def _check_resource(source: Obj, path: str, errors: Errors) -> None:
    if not source.get("name"):
        errors.append(required(f"{path}.name", "must specify a resource name"))
    _check_metric_target(source, _TARGET_RULES["resource"], f"{path}.target", errors)


def _check_container(source: Obj, path: str, errors: Errors) -> None:
    if not source.get("container"):
        errors.append(required(f"{path}.container", "must specify a container"))
    _check_resource(source, path, errors)


_CHECKS: Mapping[str, Callable[[Obj, str, Errors], None]] = {
    "object": _check_object,
    "external": partial(_check_metric, "external"),
    "pods": partial(_check_metric, "pods"),
    "resource": _check_resource,
    "containerResource": _check_container,
}
