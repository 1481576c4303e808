"""The checks of a job's rules for pods that fail and for indexes that decide success."""

from __future__ import annotations

import re

from shoal.embedded.apiserver.field_errors import bad_value, duplicate, required, too_many, without_value
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults, add_negative, add_unsupported
from shoal.embedded.apiserver.kinds.spellings import label_key_faults

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_MOST_RULES = 20
_MOST_CODES = 255
_INTERVALS = re.compile(r"[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*")


def check_failure_policy(spec: Obj, policy: Obj, path: str, errors: Errors) -> None:
    rules = policy.get("rules") or []
    if len(rules) > _MOST_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), _MOST_RULES))
    template = (spec.get("template") or {}).get("spec") or {}
    names = {one.get("name") for key in ("containers", "initContainers") for one in template.get(key) or ()}
    for place, rule in enumerate(rules):
        here, action = f"{path}.rules[{place}]", rule.get("action", "")
        if action:
            add_unsupported(errors, f"{here}.action", action, _ACTIONS)
        else:
            listed = " ".join(f'"{one}"' for one in _ACTIONS)
            errors.append(required(f"{here}.action", f"valid values: [{listed}]"))
        if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            errors.append(bad_value(f"{here}.action", action, "requires the backoffLimitPerIndex to be set"))
        codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is not None:
            _check_codes(codes, names, f"{here}.onExitCodes", errors)
        if codes is not None and patterns:
            words = "specifying both OnExitCodes and OnPodConditions is not supported"
            errors.append(without_value(here, words))
        elif codes is None and not patterns:
            words = "specifying one of OnExitCodes and OnPodConditions is required"
            errors.append(without_value(here, words))
        for position, pattern in enumerate(patterns):
            inner, kind = f"{here}.onPodConditions[{position}]", pattern.get("type", "")
            add_faults(errors, f"{inner}.type", kind, label_key_faults(kind))
            add_unsupported(errors, f"{inner}.status", pattern.get("status"), ("False", "True", "Unknown"))


def _check_codes(codes: Obj, names: set[str | None], path: str, errors: Errors) -> None:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    add_unsupported(errors, f"{path}.operator", operator, ("In", "NotIn"))
    name = codes.get("containerName")
    if name is not None and name not in names:
        words = "must be one of the container or initContainer names in the pod template"
        errors.append(bad_value(f"{path}.containerName", name, words))
    if not values:
        errors.append(bad_value(f"{path}.values", None, "at least one value is required"))
    elif len(values) > _MOST_CODES:
        errors.append(too_many(f"{path}.values", len(values), _MOST_CODES))
    for place, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(bad_value(f"{path}.values[{place}]", value, "must not be 0 for the In operator"))
        if value in values[:place]:
            errors.append(duplicate(f"{path}.values[{place}]", value))
    if values != sorted(values):
        errors.append(bad_value(f"{path}.values", values, "must be ordered"))


def check_success_policy(spec: Obj, policy: Obj, path: str, errors: Errors) -> None:
    if spec.get("completionMode") != "Indexed":
        errors.append(bad_value(path, policy, "requires indexed completion mode"))
        return
    rules = policy.get("rules") or []
    if not rules:
        errors.append(
            required(f"{path}.rules", "at least one rules must be specified when the successPolicy is specified")
        )
    elif len(rules) > _MOST_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), _MOST_RULES))
    for place, rule in enumerate(rules):
        here = f"{path}.rules[{place}]"
        count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
        if count is None and indexes is None:
            words = "at least one of succeededCount or succeededIndexes must be specified"
            errors.append(required(here, words))
        add_negative(errors, f"{here}.succeededCount", count)
        if indexes is not None and not _INTERVALS.fullmatch(indexes):
            words = f"error parsing succeededIndexes: cannot convert string to integer for index: {indexes!r}"
            errors.append(bad_value(f"{here}.succeededIndexes", indexes, words))
