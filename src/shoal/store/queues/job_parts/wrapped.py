"""Reads the pod templates of AppWrappers, which contain other objects and may list the paths of the pod templates in
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from shoal.api.decode import convert
from shoal.api.wire import ApiStruct
from shoal.store.queues.job_parts.part import JobShape, Obj, ObjectLookup, PodPart, Reader, Replicas, Steps, dig
from shoal.units.errors import UserError, Where, excerpt

_KEEPERS = frozenset({"Deployment", "StatefulSet", "ReplicaSet"})


class _ComponentPodSet(ApiStruct, frozen=True):
    path: str
    replicas: Replicas = 1


class _Component(ApiStruct, frozen=True):
    template: dict[str, Any] = field(default_factory=dict)
    declared_pod_sets: tuple[_ComponentPodSet, ...] = ()
    pod_sets: tuple[_ComponentPodSet, ...] = ()


class _AppWrapperSpec(ApiStruct, frozen=True):
    components: tuple[_Component, ...] = ()


def app_wrapper(shapes: Mapping[tuple[str, str], JobShape]) -> Reader:
    """`shapes`: the supported inner kinds, by API group and kind."""

    def read(job: Obj, where: Where, look: ObjectLookup) -> tuple[PodPart, ...]:
        spec = convert(job.get("spec") or {}, _AppWrapperSpec, where.below("spec"))
        name = str(dig(job, ("metadata", "name")) or "")
        parts: list[PodPart] = []
        for index, component in enumerate(spec.components):
            here = where.below(f"spec.components[{index}]")
            for count, steps, template in _inside(component, here, look, shapes):
                at = ("spec", "components", index, "template", *steps)
                parts.append(PodPart(f"{name}-{len(parts)}".lower(), count, template, at))
        return tuple(parts)

    return read


def _inside(
    component: _Component, where: Where, look: ObjectLookup, shapes: Mapping[tuple[str, str], JobShape]
) -> list[tuple[int, Steps, Obj]]:
    declared = component.declared_pod_sets or component.pod_sets
    if declared:
        return [_declared(each, component.template, where) for each in declared]
    inner, kind = component.template, str(component.template.get("kind") or "")
    group = str(inner.get("apiVersion") or "").rpartition("/")[0]
    if kind == "Pod":
        return [(1, (), inner)]
    if kind in _KEEPERS:
        count = dig(inner, ("spec", "replicas"))
        template = dig(inner, ("spec", "template")) or {}
        return [(count if isinstance(count, int) else 1, ("spec", "template"), template)]
    shape = shapes.get((group, kind))
    if shape is None:
        return []
    return [(part.count, part.at, part.template) for part in shape.read(inner, where.below("template"), look)]


def _declared(pod_set: _ComponentPodSet, template: Obj, where: Where) -> tuple[int, Steps, Obj]:
    """Paths are relative to the component: `template.spec.template`."""
    words = pod_set.path.replace("[", ".[").split(".")
    steps = tuple(int(word[1:-1]) if word.startswith("[") and word[1:-1].isdigit() else word for word in words if word)
    found = dig({"template": template}, steps)
    if steps[:1] != ("template",) or not isinstance(found, dict):
        raise UserError(f"no pod template at {excerpt(pod_set.path)}", where=where.below("podSets"))
    return pod_set.replicas, steps[1:], found
