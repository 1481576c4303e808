"""StorageClasses and VolumeAttributesClasses: written once, referred to by name ever after."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_allowed,
    not_supported,
    required,
    too_long,
)
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed, add_faults
from shoal.embedded.apiserver.kinds.spellings import label_key_faults
from shoal.embedded.apiserver.strategy import Strategy

_RECLAIM = ("Delete", "Retain")
_BINDING = ("Immediate", "WaitForFirstConsumer")
_MOST_PARAMETERS = 512
_LARGEST_PARAMETERS = 256 * 1024


class StorageClassStrategy(Strategy):
    counts_generation = False
    returns_deleted = True

    def default(self, obj: Obj) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        check_provisioner(obj.get("provisioner", ""), "provisioner", errors)
        check_parameters(obj.get("parameters") or {}, "parameters", errors)
        for key, allowed in (("reclaimPolicy", _RECLAIM), ("volumeBindingMode", _BINDING)):
            if obj.get(key) and obj[key] not in allowed:
                errors.append(not_supported(key, obj[key], allowed))
        _check_topologies(obj.get("allowedTopologies") or [], "allowedTopologies", errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors: Errors = []
        for key in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            add_changed(errors, key, new.get(key) or None, old.get(key) or None)
        return self.validate(new) + errors


class AttributesClassStrategy(Strategy):
    counts_generation = False
    returns_deleted = True

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        check_provisioner(obj.get("driverName", ""), "driverName", errors)
        check_parameters(obj.get("parameters") or {}, "parameters", errors)
        if not obj.get("parameters"):
            errors.append(required("parameters", "must contain at least one key/value pair"))
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors: Errors = []
        _check_fixed(new, old, ("driverName", "parameters"), errors)
        return errors + self.validate(new)


def _check_fixed(new: Obj, old: Obj, keys: tuple[str, ...], errors: Errors) -> None:
    for key in keys:
        if (new.get(key) or None) != (old.get(key) or None):
            errors.append(not_allowed(key, f"updates to {key} are forbidden."))


def check_provisioner(name: str, path: str, errors: Errors) -> None:
    if not name:
        errors.append(required(path))
    else:
        add_faults(errors, path, name.lower(), label_key_faults(name.lower()))


def check_parameters(parameters: dict[str, str], path: str, errors: Errors) -> None:
    if len(parameters) > _MOST_PARAMETERS:
        errors.append(too_long(path, _MOST_PARAMETERS))
        return
    if "" in parameters:
        errors.append(bad_value(path, "", "field can not be empty."))
    if sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items()) > _LARGEST_PARAMETERS:
        errors.append(too_long(path, _LARGEST_PARAMETERS))


def _check_topologies(terms: list[Obj], path: str, errors: Errors) -> None:
    seen: list[dict[str, frozenset[str]]] = []
    for place, term in enumerate(terms):
        here = f"{path}[{place}].matchLabelExpressions"
        found: dict[str, frozenset[str]] = {}
        for position, one in enumerate(term.get("matchLabelExpressions") or ()):
            key, values = one.get("key", ""), one.get("values") or []
            if not values:
                errors.append(required(f"{here}[{position}].values"))
            for index, value in enumerate(values):
                if value in values[:index]:
                    errors.append(duplicate(f"{here}[{position}].values[{index}]", value))
            add_faults(errors, f"{here}[{position}].key", key, label_key_faults(key))
            if key in found:
                errors.append(duplicate(f"{here}[{position}].key", key))
            found[key] = frozenset(values)
        # Kubernetes compares with the places that it has not filled yet as well, and an empty term equals those.
        if not found or found in seen:
            errors.append(duplicate(here, ""))
        seen.append(found)
