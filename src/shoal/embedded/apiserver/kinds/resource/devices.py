"""One device of a slice: its attributes, what it can hold, and what it shares with others."""

from __future__ import annotations

import re
from typing import Any

from shoal.embedded.apiserver.field_errors import (
    bad_value,
    duplicate,
    not_allowed,
    not_supported,
    required,
    too_long,
    too_many,
)
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.pods.placement import check_node_selector
from shoal.embedded.apiserver.kinds.resource.names import check_label, check_qualified
from shoal.embedded.apiserver.kinds.resource.requests import EFFECTS, check_unique
from shoal.embedded.apiserver.kinds.spellings import label_key_faults, label_value_faults, subdomain_faults

_MOST_VALUES, _MOST_TAINTS, _MOST_CONSUMPTIONS, _MOST_COUNTERS = 32, 16, 2, 32
_LONGEST_VALUE = 64
_NUMBER = r"(0|[1-9]\d*)"
_PIECE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PIECE}(\.{_PIECE})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?")
_SINGLE = ("bool", "int", "string", "version")
_LISTS = ("bools", "ints", "strings", "versions")
_PLACES = ("nodeName", "nodeSelector", "allNodes")
_ONE_PLACE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
_NO_PLACE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)


def check_device(device: Obj, is_placed: bool, path: str, errors: Errors) -> None:
    check_label(device.get("name", ""), f"{path}.name", errors)
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if (count := len(attributes) + len(capacity)) > _MOST_VALUES:
        words = f"the total number of attributes and capacities must not exceed {_MOST_VALUES}"
        errors.append(bad_value(path, count, words))
    for name, value in attributes.items():
        check_qualified(name, f"{path}.attributes", errors)
        _check_attribute(value, f"{path}.attributes[{name}]", errors)
    for name, held in capacity.items():
        check_qualified(name, f"{path}.capacity", errors)
        if held.get("requestPolicy") is not None and not device.get("allowMultipleAllocations"):
            words = "allowMultipleAllocations must be true"
            errors.append(not_allowed(f"{path}.capacity[{name}].requestPolicy", words))
    _check_taints(device.get("taints") or [], f"{path}.taints", errors)
    _check_consumptions(device.get("consumesCounters") or [], f"{path}.consumesCounters", errors)
    _check_place(device, is_placed, path, errors)
    _check_conditions(device, path, errors)


def _check_attribute(value: Obj, path: str, errors: Errors) -> None:
    given = [key for key in (*_SINGLE, *_LISTS) if value.get(key) is not None]
    if len(given) != 1:
        errors.append(bad_value(path, value if given else "", "exactly one value must be specified"))
    for key in given:
        here = f"{path}.{key}"
        if key in _LISTS:
            if not value[key]:
                errors.append(bad_value(here, value[key], "must not be empty if specified"))
            for place, one in enumerate(value[key]):
                _check_value(key[:-1], one, f"{here}[{place}]", errors)
        else:
            _check_value(key, value[key], here, errors)


def _check_value(kind: str, value: Any, path: str, errors: Errors) -> None:
    if kind == "version" and not _VERSION.fullmatch(value):
        errors.append(bad_value(path, value, "must be a string compatible with semver.org spec 2.0.0"))
    if kind in ("string", "version") and len(value.encode()) > _LONGEST_VALUE:
        errors.append(too_long(path, _LONGEST_VALUE))


def _check_taints(taints: list[Obj], path: str, errors: Errors) -> None:
    if len(taints) > _MOST_TAINTS:
        errors.append(too_many(path, len(taints), _MOST_TAINTS))
        return
    for place, taint in enumerate(taints):
        here, key = f"{path}[{place}]", taint.get("key", "")
        add_faults(errors, f"{here}.key", key, label_key_faults(key))
        if value := taint.get("value"):
            add_faults(errors, f"{here}.value", value, label_value_faults(value))
        effect = taint.get("effect", "")
        if not effect:
            errors.append(required(f"{here}.effect"))
        elif effect not in EFFECTS:
            errors.append(not_supported(f"{here}.effect", effect, EFFECTS))


def _check_consumptions(consumptions: list[Obj], path: str, errors: Errors) -> None:
    if len(consumptions) > _MOST_CONSUMPTIONS:
        errors.append(too_many(path, len(consumptions), _MOST_CONSUMPTIONS))
        return
    for place, one in enumerate(consumptions):
        check_label(one.get("counterSet", ""), f"{path}[{place}].counterSet", errors)
        check_counters(one.get("counters") or {}, f"{path}[{place}].counters", errors)
    check_unique([one.get("counterSet", "") for one in consumptions], path, errors)


def check_counters(counters: Obj, path: str, errors: Errors) -> None:
    if not counters:
        errors.append(required(path))
    elif len(counters) > _MOST_COUNTERS:
        errors.append(too_many(path, len(counters), _MOST_COUNTERS))
    else:
        for name in counters:
            check_label(name, path, errors)


def _check_place(device: Obj, is_placed: bool, path: str, errors: Errors) -> None:
    given = [key for key in _PLACES if device.get(key) is not None]
    if not is_placed:
        if given:
            errors.append(bad_value(path, None, _NO_PLACE))
        return
    if not given:
        errors.append(required(path, _ONE_PLACE))
    elif len(given) > 1:
        errors.append(bad_value(path, "{" + ", ".join(f"`{key}`" for key in given) + "}", _ONE_PLACE))
    if (node := device.get("nodeName")) is not None:
        if node:
            add_faults(errors, f"{path}.nodeName", node, subdomain_faults(node))
        else:
            errors.append(bad_value(f"{path}.nodeName", node, "must not be empty"))
    if (selector := device.get("nodeSelector")) is not None:
        check_node_selector(selector, f"{path}.nodeSelector", errors)
    if device.get("allNodes") is False:
        errors.append(bad_value(f"{path}.allNodes", False, "must be either unset or set to true"))


def _check_conditions(device: Obj, path: str, errors: Errors) -> None:
    """What has to be so, and what must not, before a pod is bound to the device."""
    wanted, unwanted = device.get("bindingConditions") or [], device.get("bindingFailureConditions") or []
    for key, names in (("bindingConditions", wanted), ("bindingFailureConditions", unwanted)):
        for place, name in enumerate(names):
            add_faults(errors, f"{path}.{key}[{place}]", name, label_key_faults(name))
        for place, name in enumerate(names):
            if name in names[:place]:
                errors.append(duplicate(f"{path}.{key}[{place}]", name))
    for place, name in enumerate(unwanted):
        if name in wanted:
            words = "bindingFailureConditions must not overlap with bindingConditions"
            errors.append(bad_value(f"{path}.bindingFailureConditions[{place}]", name, words))
