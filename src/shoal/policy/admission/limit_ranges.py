"""LimitRanges: what a container asks for when it does not say, and between which bounds it may.

A range of type Container holds for every container, init containers included; `Pod` for their sum.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.admission.limit_bounds import LimitRangeBounds, pod_faults
from shoal.policy.admission.pod_resources import Obj

ANNOTATION = "kubernetes.io/limit-ranger"
_KINDS = (("containers", "container"), ("initContainers", "init container"))


def complete(limit_range: Obj) -> None:
    """Sets what the API server sets on the object itself: of containers, a bound is a default too where none is
    given."""
    for item in limit_range.setdefault("spec", {}).get("limits") or ():
        if item.get("type") != "Container":
            continue
        default = {**(item.get("max") or {}), **(item.get("default") or {})}
        request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
        if default:
            item["default"] = default
        if request:
            item["defaultRequest"] = request


def set_defaults(pod: Obj, limit_range: Obj) -> None:
    """`limit_range` is complete."""
    limits: Obj = {}
    requests: Obj = {}
    for limit in (limit_range.get("spec") or {}).get("limits") or ():
        if limit.get("type") == "Container":
            requests |= limit.get("defaultRequest") or {}
            limits |= limit.get("default") or {}
    if not limits and not requests:
        return
    reported = [text for container, word in _each(pod["spec"]) for text in _fill_one(container, word, requests, limits)]
    if reported:
        metadata = pod["metadata"]
        annotations = dict(metadata.get("annotations") or {})
        annotations[ANNOTATION] = "LimitRanger plugin set: " + "; ".join(reported)
        metadata["annotations"] = annotations


def _each(spec: Obj) -> Iterator[tuple[Obj, str]]:
    for field, word in _KINDS:
        for container in spec.get(field) or ():
            yield container, word


def _fill_one(container: Obj, word: str, requests: Obj, limits: Obj) -> Iterator[str]:
    resources = container.get("resources") or {}
    for field, defaults, noun in (("requests", requests, "request"), ("limits", limits, "limit")):
        given = resources.get(field) or {}
        missing = sorted(defaults.keys() - given.keys())
        if missing:
            resources[field] = {**given, **{name: defaults[name] for name in missing}}
            yield f"{', '.join(missing)} {noun} for {word} {container.get('name', '')}"
    if resources:
        container["resources"] = resources


def faults_of(pod: Obj, limit_range: Obj) -> list[str]:
    """What is out of bounds, in Kubernetes' words."""
    limits = (limit_range.get("spec") or {}).get("limits") or ()
    return [fault for limit in limits for fault in pod_faults(LimitRangeBounds(limit), pod["spec"])]
