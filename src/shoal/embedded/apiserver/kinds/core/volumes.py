"""PersistentVolumes: where the storage is, which never changes."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, not_supported, required, too_long
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed, add_faults
from shoal.embedded.apiserver.kinds.core.differences import difference
from shoal.embedded.apiserver.kinds.core.volume_claims import VOLUME_MODES, check_access_modes
from shoal.embedded.apiserver.kinds.pods.placement import check_node_selector
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults, subdomain_faults
from shoal.embedded.apiserver.strategy import Strategy
from shoal.units.quantity import Quantity

_SOURCES = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
_RECLAIM = ("Delete", "Recycle", "Retain")
_SECRETS = (
    "controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef",
)  # fmt: skip
_ONCE = "may not specify more than 1 volume type"
_INLINE = "may not be specified in the context of inline volumes"


class VolumeStrategy(Strategy):
    has_status = True
    counts_generation = False
    returns_deleted = True

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
        spec.setdefault("volumeMode", "Filesystem")
        if (host := spec.get("hostPath")) is not None:
            host.setdefault("type", "")
        obj.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_create(self, obj: Obj) -> None:
        status: Obj = {"phase": "Pending"}
        if now := obj["metadata"].get("creationTimestamp"):
            status["lastPhaseTransitionTime"] = now
        obj["status"] = status

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        check_volume_spec(obj["spec"], "spec", errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        # Kubernetes checks the whole twice here.
        errors = self.validate(new) * 2
        spec, before = new["spec"], old["spec"]
        source, former = _source(spec), _source(before)
        if "csi" in former and "csi" in source and "controllerExpandSecretRef" not in former["csi"]:
            source["csi"] = {key: value for key, value in source["csi"].items() if key != "controllerExpandSecretRef"}
        if source != former:
            changed = difference("core.PersistentVolumeSource", source, former)
            words = f"spec.persistentvolumesource is immutable after creation\n{changed}"
            errors.append(not_allowed("spec.persistentvolumesource", words))
        add_changed(errors, "volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
        if before.get("nodeAffinity") is not None and spec.get("nodeAffinity") != before["nodeAffinity"]:
            words = "field is immutable, except for updating from beta label to GA"
            errors.append(bad_value("nodeAffinity", spec.get("nodeAffinity"), words))
        if before.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
            words = "update from non-nil value to nil is forbidden"
            errors.append(not_allowed("spec.volumeAttributesClassName", words))
        return errors

    def fields(self, obj: Obj) -> Mapping[str, str]:
        return {"name": obj["metadata"].get("name", "")}

    def selectable(self) -> tuple[str, ...]:
        return ("name",)


def _source(spec: Obj) -> Obj:
    return {key: spec[key] for key in _SOURCES if key in spec}


def check_volume_spec(spec: Obj, path: str, errors: Errors, *, is_inline: bool = False) -> None:
    """Of a volume, or of one described inside a VolumeAttachment."""
    if is_inline:
        _check_inline(spec, path, errors)
    modes = spec.get("accessModes") or []
    if not modes:
        errors.append(required(f"{path}.accessModes"))
    check_access_modes(modes, f"{path}.accessModes", errors)
    if not is_inline:
        _check_capacity(spec.get("capacity") or {}, f"{path}.capacity", errors)
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and policy not in _RECLAIM:
        errors.append(not_supported(f"{path}.persistentVolumeReclaimPolicy", policy, _RECLAIM))
    affinity = spec.get("nodeAffinity")
    if affinity is not None and not is_inline:
        if affinity.get("required") is None:
            errors.append(required(f"{path}.nodeAffinity.required", "must specify required node constraints"))
        else:
            check_node_selector(affinity["required"], f"{path}.nodeAffinity.required", errors)
    _check_sources(spec, path, errors)
    where = (spec.get("hostPath") or {}).get("path", "")
    if where.rstrip("/") == "" and where and policy == "Recycle":
        words = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(not_allowed(f"{path}.persistentVolumeReclaimPolicy", words))
    if (name := spec.get("storageClassName")) and not is_inline:
        add_faults(errors, f"{path}.storageClassName", name, subdomain_faults(name))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    _check_attributes_class(spec, path, errors)


def _check_inline(spec: Obj, path: str, errors: Errors) -> None:
    errors.extend(
        not_allowed(f"{path}.{key}", _INLINE) for key in ("claimRef", "capacity", "storageClassName") if spec.get(key)
    )
    if spec.get("csi") is None:
        errors.append(required(f"{path}.csi", "has to be specified in the context of inline volumes"))


def _check_capacity(capacity: Obj, path: str, errors: Errors) -> None:
    if not capacity:
        errors.append(required(path))
    if [*capacity] != ["storage"]:
        errors.append(not_supported(path, capacity, ("storage",)))
    for name, amount in capacity.items():
        if Quantity.parse(amount).nano <= 0:
            errors.append(bad_value(f"{path}[{name}]", amount, "must be greater than zero"))


def _check_sources(spec: Obj, path: str, errors: Errors) -> None:
    given = [key for key in _SOURCES if spec.get(key) is not None]
    if not given:
        errors.append(required(path, "must specify a volume type"))
        return
    errors.extend(not_allowed(f"{path}.{key}", _ONCE) for key in given[1:])
    key = given[0]
    source, here = spec[key], f"{path}.{key}"
    if key in ("hostPath", "local"):
        where = source.get("path", "")
        if not where:
            errors.append(required(f"{here}.path"))
        elif ".." in where.split("/"):
            errors.append(bad_value(f"{here}.path", where, "must not contain '..'"))
    if key == "local" and spec.get("nodeAffinity") is None:
        errors.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    if key == "nfs":
        errors.extend(required(f"{here}.{one}") for one in ("server", "path") if not source.get(one))
        if not (where := source.get("path", "")).startswith("/"):
            errors.append(bad_value(f"{here}.path", where, "must be an absolute path"))
    if key == "csi":
        _check_csi(source, here, errors)


def check_driver_name(name: str, path: str, errors: Errors) -> None:
    if not name:
        errors.append(required(path))
    if len(name) > 63:
        errors.append(too_long(path, 63))
    add_faults(errors, path, name, subdomain_faults(name.lower()))


def _check_csi(source: Obj, path: str, errors: Errors) -> None:
    check_driver_name(source.get("driver", ""), f"{path}.driver", errors)
    if not source.get("volumeHandle"):
        errors.append(required(f"{path}.volumeHandle"))
    for key in _SECRETS:
        if (reference := source.get(key)) is None:
            continue
        for part, faults in (("name", subdomain_faults), ("namespace", dns_label_faults)):
            if value := reference.get(part):
                add_faults(errors, f"{path}.{key}.{part}", value, faults(value))
            else:
                errors.append(required(f"{path}.{key}.{part}"))


def _check_attributes_class(spec: Obj, path: str, errors: Errors) -> None:
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return
    if not name:
        errors.append(required(f"{path}.volumeAttributesClassName", "an empty string is disallowed"))
    else:
        add_faults(errors, f"{path}.volumeAttributesClassName", name, subdomain_faults(name))
    if spec.get("csi") is None:
        errors.append(required(f"{path}.csi", "has to be specified when using volumeAttributesClassName"))
