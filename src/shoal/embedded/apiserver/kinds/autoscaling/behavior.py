"""Checks and defaults the scaling behavior of an autoscaler."""

from __future__ import annotations

import msgspec

from shoal.autoscale.replicas.behavior import DEFAULT_SCALE_DOWN, DEFAULT_SCALE_UP
from shoal.embedded.apiserver.field_errors import bad_value, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import NEGATIVE, Errors, Obj
from shoal.units.quantity import Quantity

_LONGEST_WINDOW_S = 3600
_LONGEST_PERIOD_S = 1800
_CHOICES = ("Disabled", "Max", "Min")
_KINDS = ("Pods", "Percent")


def default_behavior(behavior: Obj) -> None:
    """Both directions are spelt out as soon as one of them is."""
    up = behavior.setdefault("scaleUp", {})
    up.setdefault("stabilizationWindowSeconds", DEFAULT_SCALE_UP.stabilization_window_seconds)
    up.setdefault("selectPolicy", DEFAULT_SCALE_UP.select_policy)
    if not up.get("policies"):
        up["policies"] = list(msgspec.to_builtins(DEFAULT_SCALE_UP.policies))
    down = behavior.setdefault("scaleDown", {})
    down.setdefault("selectPolicy", DEFAULT_SCALE_DOWN.select_policy)
    if not down.get("policies"):
        down["policies"] = list(msgspec.to_builtins(DEFAULT_SCALE_DOWN.policies))


def check_behavior(behavior: Obj, path: str, errors: Errors) -> None:
    for key in ("scaleUp", "scaleDown"):
        if (rules := behavior.get(key)) is not None:
            _check_rules(rules, f"{path}.{key}", errors)


def _check_rules(rules: Obj, path: str, errors: Errors) -> None:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None:
        if window < 0:
            words = "must be greater than or equal to zero"
            errors.append(bad_value(f"{path}.stabilizationWindowSeconds", window, words))
        if window > _LONGEST_WINDOW_S:
            words = f"must be less than or equal to {_LONGEST_WINDOW_S}"
            errors.append(bad_value(f"{path}.stabilizationWindowSeconds", window, words))
    if (choice := rules.get("selectPolicy")) is not None and choice not in _CHOICES:
        errors.append(not_supported(f"{path}.selectPolicy", choice, _CHOICES))
    if not rules.get("policies"):
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for place, policy in enumerate(rules.get("policies") or ()):
        _check_policy(policy, f"{path}.policies[{place}]", errors)
    if (tolerance := rules.get("tolerance")) is not None and Quantity.parse(tolerance).nano < 0:
        errors.append(bad_value(f"{path}.tolerance", tolerance, NEGATIVE))


def _check_policy(policy: Obj, path: str, errors: Errors) -> None:
    if policy.get("type") not in _KINDS:
        errors.append(not_supported(f"{path}.type", policy.get("type", ""), _KINDS))
    words = "must be greater than zero"
    if policy.get("value", 0) <= 0:
        errors.append(bad_value(f"{path}.value", policy.get("value", 0), words))
    period = policy.get("periodSeconds", 0)
    if period <= 0:
        errors.append(bad_value(f"{path}.periodSeconds", period, words))
    if period > _LONGEST_PERIOD_S:
        words = f"must be less than or equal to {_LONGEST_PERIOD_S}"
        errors.append(bad_value(f"{path}.periodSeconds", period, words))
