"""What tells a job that may change its size while it runs, and its Workloads, from others: values in, values out."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import msgspec

from shoal.controllers.queued_jobs.dressing import undress
from shoal.controllers.queued_jobs.row import JobRow
from shoal.controllers.queued_jobs.workloads import Workload, workload_name
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.kueue_names import ELASTIC, PREBUILT, REPLACES, SLICE_NAME
from shoal.controllers.queued_work.pod_set_info import PodSetInfo
from shoal.store.live.item import Obj
from shoal.store.live.kind import Kind
from shoal.store.queues.job_parts import PodPart, dig


def is_elastic(row: JobRow, job: Obj) -> bool:
    meta = job["metadata"]
    is_asked = string_map(meta, "annotations").get(ELASTIC) == "true"
    return row.is_elastic and is_asked and PREBUILT not in string_map(meta, "labels")


def holds_new_pods(parts: Sequence[PodPart]) -> bool:
    """Whether a job that runs was begun as one of these: templates of running jobs stay as they are."""
    gates = (dig(part.template, ("spec", "schedulingGates")) or () for part in parts)
    return all(any(one.get("name") == ELASTIC for one in each) for each in gates)


def as_slice(made: Obj, kind: Kind, job: Obj, before: Workload | None) -> Obj:
    """A new Workload as one of several."""
    meta = made["metadata"]
    meta["name"] = workload_name(kind, job["metadata"], int(job["metadata"].get("generation") or 0))
    notes = {ELASTIC: "true", SLICE_NAME: meta["name"] if before is None else before.slice_name}
    if before is not None:
        notes[REPLACES] = before.key
    meta["annotations"] = {**meta.get("annotations", {}), **notes}
    return made


def sized(parts: Sequence[PodPart], workload: Workload) -> tuple[PodPart, ...]:
    """The parts of a job as far as it was let in."""
    counts = {name: int(one.get("count", 1)) for name, one in workload.pod_sets.items()}
    return tuple(msgspec.structs.replace(part, count=counts.get(part.name, part.count)) for part in parts)


def as_written(parts: Sequence[PodPart], workload: Workload) -> tuple[PodPart, ...]:
    """The parts of a job that runs by it, without what its admission put on."""
    found = []
    for part in parts:
        template = deepcopy(part.template)
        if (own := workload.pod_sets.get(part.name)) is not None:
            undress(template, own.get("template") or {})
        found.append(msgspec.structs.replace(part, template=template))
    return tuple(found)


def held_back(infos: Sequence[PodSetInfo], workload: Workload) -> list[PodSetInfo]:
    """Pods that are made later have to wait until they are let in."""
    gate, note = {"name": ELASTIC}, {SLICE_NAME: workload.slice_name}
    return [
        msgspec.structs.replace(one, gates=[*one.gates, gate], annotations={**one.annotations, **note}) for one in infos
    ]
