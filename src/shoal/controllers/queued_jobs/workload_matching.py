"""Compares a Workload with its job.

For a running job only counts and resources are compared: other fields contain what the admission injected. For a
suspended job all fields that decide the placement of its pods are compared, because its owner may still change them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.controllers.queued_jobs.workloads import OwnedWorkload
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.pod_set_info import OWN_ANNOTATIONS, OWN_LABELS
from shoal.store.queues.job_parts import Obj, PodPart, dig
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

_PLACEMENT_FIELDS = ("nodeSelector", "tolerations", "affinity", "schedulingGates", "priorityClassName", "schedulerName")


def is_equivalent(
    workload: OwnedWorkload,
    parts: Sequence[PodPart],
    *,
    is_suspended: bool,
    is_stopping: bool,
    is_prebuilt: bool = False,
) -> bool:
    """`is_stopping`: the templates of the stopped job have not been restored yet. The templates of a prebuilt Workload
    need not equal the job's in every field."""
    pod_sets = list(workload.pod_sets.values())
    if not has_same_requests(pod_sets, parts):
        return False
    if is_stopping or (workload.has_quota and _has_admitted_counts(workload, pod_sets, parts)):
        return True
    if not is_suspended and not workload.has_quota:
        # The job is going to be stopped, and its templates are restored from this Workload.
        return all(_may_start_with(one, part) for one, part in zip(pod_sets, parts, strict=True))
    has_same_counts = all(one.get("count", 1) == part.count for one, part in zip(pod_sets, parts, strict=True))
    if workload.has_quota or workload.is_finished:
        return is_suspended and has_same_counts
    return has_same_counts and (is_prebuilt or _all_have_same_placement(pod_sets, parts))


def _has_admitted_counts(workload: OwnedWorkload, pod_sets: Sequence[Obj], parts: Sequence[PodPart]) -> bool:
    """Whether the job has the counts of its admission, which may be partial."""
    assigned = {
        str(one.get("name", "main")): one.get("count")
        for one in dig(workload.obj, ("status", "admission", "podSetAssignments")) or ()
    }
    for one, part in zip(pod_sets, parts, strict=True):
        count = one.get("count", 1)
        if one.get("minCount") is not None and assigned.get(part.name) is not None:
            count = assigned[part.name]
        if count != part.count:
            return False
    return True


def _may_start_with(pod_set: Obj, part: PodPart) -> bool:
    count = pod_set.get("count", 1)
    return bool((pod_set.get("minCount") or count) <= part.count <= count)


def has_same_requests(pod_sets: Sequence[Obj], parts: Sequence[PodPart]) -> bool:
    return len(pod_sets) == len(parts) and all(
        one.get("name", "main") == part.name
        and _resources(dig(one, ("template", "spec"))) == _resources(part.template.get("spec"))
        for one, part in zip(pod_sets, parts, strict=True)
    )


def _resources(spec: Any) -> list[Any]:
    found: list[Any] = []
    for key in ("initContainers", "containers"):
        for container in dig(spec, (key,)) or ():
            resources = container.get("resources") or {}
            found.append(
                tuple(
                    {name: _amount(value) for name, value in (resources.get(side) or {}).items()}
                    for side in ("requests", "limits")
                )
            )
        found.append(key)
    return found


def _amount(value: object) -> Quantity | str:
    try:
        return Quantity.parse(str(value))
    except UserError:
        return str(value)


def _all_have_same_placement(pod_sets: Sequence[Obj], parts: Sequence[PodPart]) -> bool:
    return all(_has_same_placement(one, part) for one, part in zip(pod_sets, parts, strict=True))


def _has_same_placement(pod_set: Obj, part: PodPart) -> bool:
    template, part_template = pod_set.get("template") or {}, part.template
    if pod_set.get("minCount") != part.least:
        return False
    if any(
        (dig(template, ("spec", key)) or None) != (dig(part_template, ("spec", key)) or None)
        for key in _PLACEMENT_FIELDS
    ):
        return False
    return _without(template, "labels", OWN_LABELS) == _without(part_template, "labels", OWN_LABELS) and _without(
        template, "annotations", OWN_ANNOTATIONS
    ) == _without(part_template, "annotations", OWN_ANNOTATIONS)


def _without(template: Obj, key: str, excluded: frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in string_map(template, "metadata", key).items() if name not in excluded}
