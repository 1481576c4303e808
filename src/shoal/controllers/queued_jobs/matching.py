"""Whether a Workload still promises what its job asks for.

While a job runs only counts and resources can have changed in a way that matters: the rest is what the admission put
there. While it waits everything counts that decides where its pods may be, for its owner may still change that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.controllers.queued_jobs.workloads import Workload
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.pod_set_info import OWN_ANNOTATIONS, OWN_LABELS
from shoal.store.queues.job_parts import Obj, PodPart, dig
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

_PLACING = ("nodeSelector", "tolerations", "affinity", "schedulingGates", "priorityClassName", "schedulerName")


def fits(
    workload: Workload, parts: Sequence[PodPart], *, is_suspended: bool, is_unfinished: bool, is_prebuilt: bool = False
) -> bool:
    """`is_unfinished`: the job has not got all of its templates back after it was stopped. A Workload that somebody
    else built has templates of its own, which need not be the job's in every word."""
    pod_sets = list(workload.pod_sets.values())
    if not ask_alike(pod_sets, parts):
        return False
    if is_unfinished or (workload.has_quota and _counts_run(workload, pod_sets, parts)):
        return True
    if not is_suspended and not workload.has_quota:
        # It is stopped for that, and gets its templates back from this very Workload.
        return all(_may_run(one, part) for one, part in zip(pod_sets, parts, strict=True))
    plain = all(one.get("count", 1) == part.count for one, part in zip(pod_sets, parts, strict=True))
    if workload.has_quota or workload.is_finished:
        return is_suspended and plain
    return plain and (is_prebuilt or _all_placed_alike(pod_sets, parts))


def _counts_run(workload: Workload, pod_sets: Sequence[Obj], parts: Sequence[PodPart]) -> bool:
    """The counts of a job that was started, smaller than asked for maybe."""
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


def _may_run(pod_set: Obj, part: PodPart) -> bool:
    count = pod_set.get("count", 1)
    return bool((pod_set.get("minCount") or count) <= part.count <= count)


def ask_alike(pod_sets: Sequence[Obj], parts: Sequence[PodPart]) -> bool:
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


def _all_placed_alike(pod_sets: Sequence[Obj], parts: Sequence[PodPart]) -> bool:
    return all(_placed_alike(one, part) for one, part in zip(pod_sets, parts, strict=True))


def _placed_alike(pod_set: Obj, part: PodPart) -> bool:
    written, own = pod_set.get("template") or {}, part.template
    if pod_set.get("minCount") != part.least:
        return False
    if any((dig(written, ("spec", key)) or None) != (dig(own, ("spec", key)) or None) for key in _PLACING):
        return False
    return _without(written, "labels", OWN_LABELS) == _without(own, "labels", OWN_LABELS) and _without(
        written, "annotations", OWN_ANNOTATIONS
    ) == _without(own, "annotations", OWN_ANNOTATIONS)


def _without(template: Obj, key: str, ours: frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in string_map(template, "metadata", key).items() if name not in ours}
