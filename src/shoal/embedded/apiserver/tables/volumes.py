"""The rows of storage: volumes, claims, classes and what drivers tell."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.tables.phrases import NONE, UNSET
from shoal.embedded.apiserver.tables.printer import Obj, Printer, age, heads, name, name_and_creation, part

_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
_DEFAULT_ATTRIBUTES = "volumeattributesclass.alpha.kubernetes.io/is-default-class"
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(found: list[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (found or ()))


def _annotations(obj: Obj) -> dict[str, str]:
    return part(obj["metadata"], "annotations")


def _class(obj: Obj) -> str:
    named = _annotations(obj).get(_BETA_CLASS)
    return part(obj, "spec").get("storageClassName") or "" if named is None else named


def _phase(obj: Obj) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else part(obj, "status").get("phase", "")


def volume(obj: Obj, now_s: int) -> list[Any]:
    spec = part(obj, "spec")
    claim = spec.get("claimRef")
    return [
        name(obj),
        part(spec, "capacity").get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj),
        _or_unset(spec.get("volumeAttributesClassName")),
        part(obj, "status").get("reason", ""),
        age(obj, now_s),
        spec.get("volumeMode") or UNSET,
    ]


def _or_unset(value: str | None) -> str:
    return UNSET if value is None else value


def claim(obj: Obj, now_s: int) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    is_bound = bool(spec.get("volumeName"))
    return [
        name(obj),
        _phase(obj),
        spec.get("volumeName", ""),
        part(status, "capacity").get("storage", "0") if is_bound else "",
        _modes(status.get("accessModes")) if is_bound else "",
        _class(obj),
        _or_unset(spec.get("volumeAttributesClassName")),
        age(obj, now_s),
        spec.get("volumeMode") or UNSET,
    ]


def _marked(obj: Obj, *keys: str) -> str:
    is_default = any(_annotations(obj).get(key) == "true" for key in keys)
    return f"{name(obj)} (default)" if is_default else name(obj)


def storage_class(obj: Obj, now_s: int) -> list[Any]:
    return [
        _marked(obj, _DEFAULT_CLASS, _BETA_DEFAULT_CLASS),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now_s),
    ]


def attributes_class(obj: Obj, now_s: int) -> list[Any]:
    return [_marked(obj, _DEFAULT_ATTRIBUTES), obj.get("driverName", ""), age(obj, now_s)]


def driver(obj: Obj, now_s: int) -> list[Any]:
    spec = part(obj, "spec")
    tokens = spec.get("tokenRequests")
    return [
        name(obj),
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if tokens is None else ",".join(one.get("audience", "") for one in tokens),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(obj, now_s),
    ]


def node_drivers(obj: Obj, now_s: int) -> list[Any]:
    return [name(obj), len(part(obj, "spec").get("drivers") or ()), age(obj, now_s)]


def attachment(obj: Obj, now_s: int) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name(obj),
        spec.get("attacher", ""),
        part(spec, "source").get("persistentVolumeName") or "",
        spec.get("nodeName", ""),
        bool(part(obj, "status").get("attached")),
        age(obj, now_s),
    ]


_VOLUME = ("Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass", "VolumeAttributesClass")
_CLAIM = ("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age")
_CLASS = ("Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age")
_DRIVER = ("AttachRequired:boolean", "PodInfoOnMount:boolean", "StorageCapacity:boolean", "TokenRequests")

VOLUMES: dict[tuple[str, str], Printer] = {
    ("", "persistentvolumes"): Printer(heads("Name", *_VOLUME, "Reason", "Age", "+VolumeMode"), volume),
    ("", "persistentvolumeclaims"): Printer(heads("Name", *_CLAIM, "+VolumeMode"), claim),
    ("storage.k8s.io", "csidrivers"): Printer(
        heads("Name", *_DRIVER, "RequiresRepublish:boolean", "Modes", "Age"), driver
    ),
    ("storage.k8s.io", "csinodes"): Printer(heads("Name", "Drivers:integer", "Age"), node_drivers),
    ("storage.k8s.io", "csistoragecapacities"): Printer(heads("Name", "Created At:date"), name_and_creation),
    ("storage.k8s.io", "storageclasses"): Printer(heads("Name", *_CLASS), storage_class),
    ("storage.k8s.io", "volumeattachments"): Printer(
        heads("Name", "Attacher", "PV", "Node", "Attached:boolean", "Age"), attachment
    ),
    ("storage.k8s.io", "volumeattributesclasses"): Printer(heads("Name", "DriverName", "Age"), attributes_class),
}
