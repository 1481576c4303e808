"""Removes confidential content from objects: only the fields that `allowed.py` lists are copied.

Guarantees: decisions about the object stay the same; redaction is idempotent; the given object is not changed.

Pods are most of a cluster. Their fields are copied by name instead of by a walk through the object, so that fifty
thousand take a few seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shoal.api.kinds import find_kind
from shoal.store.snapshot import allowed

Obj = dict[str, Any]
_CONTAINERS = ("containers", "initContainers")
_NO_MESSAGE = allowed.CONDITION - {"message"}


def redacted(obj: Obj) -> Obj:
    """The object without confidential content."""
    name = obj.get("kind") or ""
    if find_kind(obj.get("apiVersion") or "", name) is None and name not in _OURS:
        return _stranger(obj)
    special = _PARTS.get(name, {})
    kept: Obj = {}
    for field, value in obj.items():
        if field == "metadata":
            kept[field] = _meta(value)
        elif field in allowed.OBJECT:
            kept[field] = special.get(field, _walked)(value)
    return kept


def _meta(value: Any) -> Any:
    if not isinstance(value, dict):
        return {}
    kept = {field: inner for field, inner in value.items() if field in allowed.META}
    annotations = _annotations(value.get("annotations"))
    return kept | ({"annotations": annotations} if annotations else {})


def _annotations(value: Any) -> Obj:
    found = value if isinstance(value, dict) else {}
    return {key: text for key, text in found.items() if _may_be_told(key)}


def _may_be_told(annotation: str) -> bool:
    domain, slash, _ = annotation.partition("/")
    if not slash:
        return annotation in allowed.ANNOTATIONS
    return any(domain == known or domain.endswith(f".{known}") for known in allowed.ANNOTATION_DOMAINS)


# -- kinds with types --------------------------------------------------------------------------------------


def _walked(value: Any) -> Any:
    """Everything except confidential content in pod specs, metadata and drivers' parameters, at any depth."""
    if isinstance(value, list):
        return [_walked(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("containers"), list):
        return _pod_spec(value)
    kept: Obj = {}
    for field, inner in value.items():
        if field == "metadata":
            kept[field] = _meta(inner)
        elif field == "opaque" and isinstance(inner, dict):
            kept[field] = {**inner, "parameters": {}}
        elif field == "annotations":
            # Annotations below other fields, for example in the pod set updates of an admission check.
            kept[field] = _annotations(inner)
        elif field == "managedFields":
            continue
        else:
            kept[field] = _walked(inner) if isinstance(inner, dict | list) else inner
    return kept


def _pod_spec(spec: Any) -> Any:
    if not isinstance(spec, dict):
        return {}
    kept = {field: value for field, value in spec.items() if field in allowed.POD_SPEC}
    for field in _CONTAINERS:
        if spec.get(field):
            kept[field] = [_picked(each, allowed.CONTAINER) for each in spec[field]]
    volumes = [_volume(each) for each in spec.get("volumes") or () if isinstance(each, dict)]
    if any(volumes):
        kept["volumes"] = [each for each in volumes if each]
    return kept


def _volume(volume: Obj) -> Obj:
    """None for a volume that is not a claim."""
    kept: Obj = _walked(_picked(volume, allowed.VOLUME))
    return kept if len(kept) > 1 else {}


def _pod_status(status: Any) -> Any:
    kept = _picked(status, allowed.POD_STATUS)
    return _with_conditions(kept, allowed.CONDITION)


def _node_status(status: Any) -> Any:
    # Fields that change with every heartbeat would make two snapshots of one state differ.
    return _with_conditions(_picked(status, allowed.NODE_STATUS), _NO_MESSAGE)


def _with_conditions(status: Any, fields: frozenset[str]) -> Any:
    if isinstance(status, dict) and isinstance(status.get("conditions"), list):
        status["conditions"] = [_picked(each, fields) for each in status["conditions"]]
    return status


def _claim_status(status: Any) -> Any:
    kept = _walked(status)
    if isinstance(kept, dict):
        kept.pop("devices", None)
    return kept


def _picked(value: Any, fields: frozenset[str]) -> Any:
    return {field: inner for field, inner in value.items() if field in fields} if isinstance(value, dict) else {}


def _volume_spec(spec: Any) -> Any:
    return _picked(spec, allowed.VOLUME_SPEC)


_PARTS: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "Pod": {"spec": _pod_spec, "status": _pod_status},
    "Node": {"status": _node_status},
    "ResourceClaim": {"status": _claim_status},
    "PersistentVolume": {"spec": _volume_spec},
}
"""Fields with a redaction of their own, by kind and field."""

_OURS = frozenset(
    {
        *("CapacityBuffer", "NodeClaim", "NodePool", "PersistentVolume", "PersistentVolumeClaim", "PodTemplate"),
        *("ProvisioningRequest", "StorageClass"),
    }
)
"""Kinds without a type whose fields are known."""


# -- kinds without types ------------------------------------------------------------------------------------


def _stranger(obj: Obj) -> Obj:
    kept: Obj = {}
    for field, value in obj.items():
        if field == "metadata":
            kept[field] = _meta(value)
        elif field in ("apiVersion", "kind"):
            kept[field] = value
        elif field in ("spec", "status") and isinstance(value, dict):
            kept[field] = _by_name(value)
    return kept


def _by_name(value: Obj) -> Obj:
    """Keep text only in fields that are known to contain nothing confidential."""
    if isinstance(value.get("containers"), list):
        kept: Obj = _pod_spec(value)
        return kept
    kept = {}
    for field, inner in value.items():
        if field in allowed.SILENT:
            continue
        if field == "metadata":
            kept[field] = _meta(inner)
        elif field == "annotations":
            kept[field] = _annotations(inner)
        elif field in allowed.WHOLE:
            kept[field] = inner
        elif isinstance(inner, dict):
            kept[field] = _by_name(inner)
        elif isinstance(inner, list):
            kept[field] = [_by_name(each) for each in inner if isinstance(each, dict)]
        elif not isinstance(inner, str) or field in allowed.TEXTS:
            kept[field] = inner
    return kept
