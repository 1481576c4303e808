"""Checks of labels, annotations and label selectors, shared by every kind that has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import bad_value, not_allowed, required, too_long
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.spellings import label_key_faults, label_value_faults

_LONGEST_ANNOTATIONS = 256 * 1024


def check_labels(labels: Mapping[str, Any], path: str, errors: Errors) -> None:
    for key, value in labels.items():
        if faults := label_key_faults(key):
            add_faults(errors, path, key, faults)
        if faults := label_value_faults(value):
            add_faults(errors, path, value, faults)


def check_annotations(annotations: Mapping[str, Any], path: str, errors: Errors) -> None:
    size = 0
    for key, value in annotations.items():
        if faults := label_key_faults(key.lower()):
            add_faults(errors, path, key, faults)
        size += len(key) + len(value)
    # Counting letters is cheap; bytes are counted only where they could be too many.
    if size * 4 > _LONGEST_ANNOTATIONS:
        size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
        if size > _LONGEST_ANNOTATIONS:
            errors.append(too_long(path, _LONGEST_ANNOTATIONS))


def check_selector(selector: Obj | None, path: str, errors: Errors) -> None:
    if not selector:
        return
    check_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels", errors)
    for place, one in enumerate(selector.get("matchExpressions") or ()):
        _check_requirement(one, f"{path}.matchExpressions[{place}]", errors)


def _check_requirement(one: Obj, path: str, errors: Errors) -> None:
    operator, key, values = one.get("operator", ""), one.get("key", ""), one.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(not_allowed(f"{path}.values", words))
    else:
        errors.append(bad_value(f"{path}.operator", operator, "not a valid selector operator"))
    add_faults(errors, f"{path}.key", key, label_key_faults(key))
    for place, value in enumerate(values):
        add_faults(errors, f"{path}.values[{place}]", value, label_value_faults(value))
