"""Checks updates of a pod against its immutable fields.

A kubelet may be running the pod already, so nearly nothing of its spec may change. The comparison swaps the
few free fields for the old ones in a shallow copy and asks whether the rest is equal.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.embedded.apiserver.field_errors import bad_value, not_allowed, required
from shoal.embedded.apiserver.kinds.complaints import MAX_INT32, Errors, Obj, add_out_of_range
from shoal.embedded.apiserver.kinds.labels import check_labels
from shoal.embedded.apiserver.kinds.pods.placement import check_tolerations

_MIRROR = "kubernetes.io/config.mirror"
FROZEN_WORDS = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod_update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    check_pod_annotations(new, old, errors)
    spec, before = new["spec"], old["spec"]
    for key in ("containers", "initContainers"):
        if not _check_images(spec.get(key) or [], before.get(key) or [], f"spec.{key}", errors):
            return errors
    if not _check_deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"), errors):
        return errors
    as_before = dict(spec)
    for key in ("containers", "initContainers"):
        if key in spec and key in before:
            pairs = zip(spec[key], before[key], strict=True)
            as_before[key] = [one | {"image": former.get("image", "")} for one, former in pairs]
    _restore(as_before, before, "activeDeadlineSeconds")
    if spec.get("tolerations") != before.get("tolerations"):
        _check_tolerations(spec.get("tolerations") or [], before.get("tolerations") or [], errors)
        _restore(as_before, before, "tolerations")
    if before.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        as_before["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    if spec.get("schedulingGates") != before.get("schedulingGates"):
        _check_gates(spec.get("schedulingGates") or [], before.get("schedulingGates") or [], errors)
        _restore(as_before, before, "schedulingGates")
    if before.get("schedulingGates"):
        _check_gated(spec, before, as_before, errors)
    if as_before != before:
        errors.append(not_allowed("spec", f"{FROZEN_WORDS}\n{difference(as_before, before)}"))
    return errors


def _restore(spec: Obj, before: Obj, key: str) -> None:
    if key in before:
        spec[key] = before[key]
    else:
        spec.pop(key, None)


def difference(new: Obj, old: Obj) -> str:
    """Which fields differ, one line each way. Kubernetes prints Go's own notation here, which nothing can rely on."""
    lines = ["  core.PodSpec{"]
    for key in sorted({*new, *old}):
        if new.get(key) != old.get(key):
            named = key[:1].upper() + key[1:]
            lines += [
                f"{sign} \t{named}: {_json(side[key])}," for sign, side in (("-", old), ("+", new)) if key in side
            ]
    return "\n".join([*lines, "  }", ""])


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def check_pod_annotations(new: Obj, old: Obj, errors: Errors) -> None:
    annotations, before = new["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    if _MIRROR in before:
        if annotations.get(_MIRROR) != before[_MIRROR]:
            words = "may not remove or update mirror pod annotation"
            errors.append(not_allowed(f"metadata.annotations[{_MIRROR}]", words))
    elif _MIRROR in annotations:
        errors.append(not_allowed(f"metadata.annotations[{_MIRROR}]", "may not add mirror pod annotation"))


def _check_images(new: list[Obj], old: list[Obj], path: str, errors: Errors) -> bool:
    if len(new) != len(old):
        errors.append(not_allowed(path, "pod updates may not add or remove containers"))
        return False
    for place, container in enumerate(new):
        image = container.get("image", "")
        if not image:
            errors.append(required(f"{path}[{place}].image"))
        if image != image.strip():
            words = "must not have leading or trailing whitespace"
            errors.append(bad_value(f"{path}[{place}].image", image, words))
    return True


def _check_deadline(new: int | None, old: int | None, errors: Errors) -> bool:
    path, found = "spec.activeDeadlineSeconds", len(errors)
    if new is not None:
        add_out_of_range(errors, path, new, 0, MAX_INT32)
        if len(errors) == found and old is not None and old < new:
            errors.append(bad_value(path, new, "must be less than or equal to previous value"))
        return len(errors) == found
    if old is not None:
        errors.append(bad_value(path, None, "must not update from a positive integer to nil value"))
    return True


def _check_tolerations(new: list[Obj], old: list[Obj], errors: Errors) -> None:
    kept = [_without_seconds(one) for one in new]
    if any(_without_seconds(one) not in kept for one in old):
        words = "existing toleration can not be modified except its tolerationSeconds"
        errors.append(not_allowed("spec.tolerations", words))
        return
    check_tolerations(new, "spec.tolerations", errors)


def _without_seconds(toleration: Obj) -> Obj:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _check_gates(new: list[Obj], old: list[Obj], errors: Errors) -> None:
    names = {gate.get("name") for gate in old}
    for place, gate in enumerate(new):
        if gate.get("name") not in names:
            words = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            errors.append(not_allowed(f"spec.schedulingGates[{place}].name", words))


def _check_gated(spec: Obj, before: Obj, as_before: Obj, errors: Errors) -> None:
    """The pod is gated, so its node selection can still be narrowed."""
    labels, former = spec.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if labels != former:
        check_labels(labels, "spec.nodeSelector", errors)
        if any(labels.get(key) != value for key, value in former.items()):
            words = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(bad_value("spec.nodeSelector", labels, words))
        _restore(as_before, before, "nodeSelector")
    affinity, earlier = spec.get("affinity") or {}, before.get("affinity") or {}
    wanted, had = _required(affinity), _required(earlier)
    if wanted != had and _narrows(wanted, had):
        _restore(as_before, before, "affinity")


def _required(affinity: Obj) -> list[Obj]:
    node = affinity.get("nodeAffinity") or {}
    selector = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms: list[Obj] = selector.get("nodeSelectorTerms") or []
    return terms


def _narrows(new: list[Obj], old: list[Obj]) -> bool:
    if not old:
        return True
    if len(new) != len(old):
        return False
    keys = ("matchExpressions", "matchFields")
    return all(
        one in (after.get(key) or [])
        for after, former in zip(new, old, strict=True)
        for key in keys
        for one in former.get(key) or []
    )
