"""PersistentVolumeClaims: what is asked for, and what may change once it was asked for."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed, add_faults
from shoal.embedded.apiserver.kinds.core.differences import difference
from shoal.embedded.apiserver.kinds.labels import check_selector
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults, subdomain_faults
from shoal.embedded.apiserver.strategy import Strategy
from shoal.units.quantity import ZERO, Quantity

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_OLD_SOURCES = {("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")}
VOLUME_MODES = ("Block", "Filesystem")
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_FIXED = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


class VolumeClaimStrategy(Strategy):
    has_status = True
    counts_generation = False
    returns_deleted = True

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("volumeMode", "Filesystem")
        spec.setdefault("resources", {})
        obj.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_create(self, obj: Obj) -> None:
        _forget_other_source(obj["spec"])
        # Not a default: the field that follows has no owner.
        _pair_sources(obj["spec"])
        obj["status"] = {"phase": "Pending"}

    def prepare_update(self, new: Obj, old: Obj) -> None:
        super().prepare_update(new, old)
        _pair_sources(new["spec"])

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        check_claim_spec(obj["spec"], "spec", errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors = self.validate(new)
        _check_update(new, old, errors)
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        errors: Errors = []
        for name, amount in ((new.get("status") or {}).get("capacity") or {}).items():
            if Quantity.parse(amount).nano < 0:
                value = Quantity.parse(amount).value()
                errors.append(bad_value(f"status.capacity[{name}]", value, "must be a valid resource quantity"))
        return errors

    def fields(self, obj: Obj) -> Mapping[str, str]:
        return {"name": obj["metadata"].get("name", "")}

    def selectable(self) -> tuple[str, ...]:
        return ("name",)


def check_access_modes(modes: list[str], path: str, errors: Errors) -> None:
    for mode in modes:
        if mode not in ACCESS_MODES:
            errors.append(not_supported(path, mode, ACCESS_MODES))
    if "ReadWriteOncePod" in modes and any(mode != "ReadWriteOncePod" and mode in ACCESS_MODES for mode in modes):
        errors.append(not_allowed(path, "may not use ReadWriteOncePod with other access modes"))


def check_claim_spec(spec: Obj, path: str, errors: Errors) -> None:
    modes = spec.get("accessModes") or []
    if not modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    check_selector(spec.get("selector"), f"{path}.selector", errors)
    check_access_modes(modes, f"{path}.accessModes", errors)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        errors.append(required(f"{path}.resources[storage]"))
    elif Quantity.parse(size).nano <= 0:
        errors.append(bad_value(f"{path}.resources[storage]", size, "must be greater than zero"))
    for key in ("storageClassName", "volumeAttributesClassName"):
        if name := spec.get(key):
            add_faults(errors, f"{path}.{key}", name, subdomain_faults(name))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    for key in ("dataSource", "dataSourceRef"):
        if (source := spec.get(key)) is not None:
            _check_source(source, f"{path}.{key}", errors)
    _check_sources_match(spec, path, errors)


def _check_source(source: Obj, path: str, errors: Errors) -> None:
    errors.extend(required(f"{path}.{key}") for key in ("name", "kind") if not source.get(key))
    group = source.get("apiGroup") or ""
    if not group and source.get("kind") != "PersistentVolumeClaim":
        words = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(bad_value(path, source.get("kind", ""), words))
    if group:
        add_faults(errors, f"{path}.apiGroup", group, subdomain_faults(group))
    if namespace := source.get("namespace"):
        add_faults(errors, f"{path}.namespace", namespace, dns_label_faults(namespace))


def _check_sources_match(spec: Obj, path: str, errors: Errors) -> None:
    one, other = spec.get("dataSource"), spec.get("dataSourceRef")
    if one is None or other is None:
        return
    words = ""
    if other.get("namespace"):
        words = "may not be specified when dataSourceRef.namespace is specified"
    elif any(one.get(key) != other.get(key) for key in ("apiGroup", "kind", "name")):
        words = "must match dataSourceRef"
    if words:
        errors.append(bad_value(path, f"{path}.dataSource", words))


def _forget_other_source(spec: Obj) -> None:
    """The older field is for claims and snapshots. Other values are dropped silently."""
    source = spec.get("dataSource") or {}
    if (source.get("apiGroup") or "", source.get("kind")) not in _OLD_SOURCES:
        spec.pop("dataSource", None)


def _pair_sources(spec: Obj) -> None:
    """The old and the new way to name a source say the same; one given, the other follows."""
    one, other = spec.get("dataSource"), spec.get("dataSourceRef")
    if one is not None and other is None:
        spec["dataSourceRef"] = dict(one)
    elif other is not None and one is None and not other.get("namespace"):
        spec["dataSource"] = {key: other[key] for key in ("apiGroup", "kind", "name") if key in other}


def _check_update(new: Obj, old: Obj, errors: Errors) -> None:
    spec, before = copy.deepcopy(new["spec"]), copy.deepcopy(old["spec"])
    if not before.get("volumeName") and "volumeName" in spec:
        before["volumeName"] = spec["volumeName"]
    if before.get("storageClassName") is None and _may_settle_class(new, old):
        before["storageClassName"] = spec.get("storageClassName")
        if before["storageClassName"] is None:
            del before["storageClassName"]
    asked, was = _storage(new["spec"]), _storage(old["spec"])
    if (new.get("status") or {}).get("phase") == "Bound":
        if requests := (spec.get("resources") or {}).get("requests"):
            requests["storage"] = ((before.get("resources") or {}).get("requests") or {}).get("storage", "0")
        if "volumeAttributesClassName" in spec:
            spec["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
            if spec["volumeAttributesClassName"] is None:
                del spec["volumeAttributesClassName"]
    if spec != before:
        errors.append(not_allowed("spec", f"{_FIXED}\n{difference('core.PersistentVolumeClaimSpec', spec, before)}"))
    held = ((old.get("status") or {}).get("capacity") or {}).get("storage")
    if asked < was and asked <= (Quantity.parse(held) if held else ZERO):
        errors.append(not_allowed("spec.resources.requests.storage", "field can not be less than status.capacity"))
    add_changed(errors, "volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))
    name, former = new["spec"].get("volumeAttributesClassName"), old["spec"].get("volumeAttributesClassName")
    if former is not None and not name:
        what = "nil" if name is None else "an empty string"
        words = f"update from non-nil value to {what} is forbidden"
        errors.append(not_allowed("spec.volumeAttributesClassName", words))


def _storage(spec: Obj) -> Quantity:
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return Quantity.parse(size) if size else ZERO


def _may_settle_class(new: Obj, old: Obj) -> bool:
    """A claim without a class may get one later, when a class becomes the default."""
    said = (old["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    return said is None or said == new["spec"].get("storageClassName")
