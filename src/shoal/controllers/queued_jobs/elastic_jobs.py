"""Computes changes of elastic jobs, which change their size while they run, and of their Workloads."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import msgspec

from shoal.client.item import Obj
from shoal.client.kind import Kind
from shoal.controllers.queued_jobs.job_kind import QueuedJobKind
from shoal.controllers.queued_jobs.pod_set_injection import restore_template
from shoal.controllers.queued_jobs.workloads import OwnedWorkload, workload_name
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.kueue_names import ELASTIC, PREBUILT, REPLACES, SLICE_NAME
from shoal.controllers.queued_work.pod_set_info import PodSetInfo
from shoal.store.queues.job_parts import PodPart, dig


def is_elastic(job_kind: QueuedJobKind, job: Obj) -> bool:
    meta = job["metadata"]
    is_asked = string_map(meta, "annotations").get(ELASTIC) == "true"
    return job_kind.is_elastic and is_asked and PREBUILT not in string_map(meta, "labels")


def has_elastic_gates(parts: Sequence[PodPart]) -> bool:
    """Whether a running job was started as an elastic one: the templates of a running job cannot change."""
    gates = (dig(part.template, ("spec", "schedulingGates")) or () for part in parts)
    return all(any(one.get("name") == ELASTIC for one in each) for each in gates)


def make_slice(workload: Obj, kind: Kind, job: Obj, before: OwnedWorkload | None) -> Obj:
    """Mark a new Workload as a slice: one of several Workloads of an elastic job."""
    meta = workload["metadata"]
    meta["name"] = workload_name(kind, job["metadata"], int(job["metadata"].get("generation") or 0))
    annotations = {ELASTIC: "true", SLICE_NAME: meta["name"] if before is None else before.slice_name}
    if before is not None:
        annotations[REPLACES] = before.key
    meta["annotations"] = {**meta.get("annotations", {}), **annotations}
    return workload


def with_admitted_counts(parts: Sequence[PodPart], workload: OwnedWorkload) -> tuple[PodPart, ...]:
    """The parts of a job with the counts of its admitted Workload."""
    counts = {name: int(one.get("count", 1)) for name, one in workload.pod_sets.items()}
    return tuple(msgspec.structs.replace(part, count=counts.get(part.name, part.count)) for part in parts)


def with_original_templates(parts: Sequence[PodPart], workload: OwnedWorkload) -> tuple[PodPart, ...]:
    """The parts of a running job without the fields that its admission injected."""
    found = []
    for part in parts:
        template = deepcopy(part.template)
        if (pod_set := workload.pod_sets.get(part.name)) is not None:
            restore_template(template, pod_set.get("template") or {})
        found.append(msgspec.structs.replace(part, template=template))
    return tuple(found)


def with_elastic_gate(infos: Sequence[PodSetInfo], workload: OwnedWorkload) -> list[PodSetInfo]:
    """The infos with the gate that holds pods created later until they are admitted."""
    gate, annotation = {"name": ELASTIC}, {SLICE_NAME: workload.slice_name}
    return [
        msgspec.structs.replace(one, gates=[*one.gates, gate], annotations={**one.annotations, **annotation})
        for one in infos
    ]
