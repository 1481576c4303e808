"""Reads jobs of every supported kind as pod templates with counts.

The table in `job_parts` has a row for each kind with the paths of its templates; live clusters use the same table. Pod
sets are named and ordered as in Kueue, leaders first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from shoal.api.decode import Unknown, convert
from shoal.api.meta import DEFAULT_NAMESPACE, ObjectMeta
from shoal.api.pod import PodTemplate
from shoal.api.workloads import Job
from shoal.engine.from_api.membership import whole_number
from shoal.engine.from_api.queues import TemplatePods
from shoal.store.inventory import Inventory, Placed
from shoal.store.queues.job_parts import SHAPES, JobShape, ObjectLookup, PodPart, dig, path_of
from shoal.store.queues.job_parts.plain import LEAST_ANNOTATION
from shoal.store.replicas import name_of
from shoal.units.errors import Where

LONGEST_LABEL = "kueue.x-k8s.io/max-exec-time-seconds"

_RUNTIMES = frozenset({"TrainingRuntime", "ClusterTrainingRuntime"})


@dataclass(frozen=True, slots=True)
class AnyJob:
    """A job of any kind."""

    placed: Placed[Job] | Placed[Unknown]
    kind: str
    meta: ObjectMeta
    name: str
    batches: tuple[TemplatePods, ...]
    is_finished: bool
    is_suspended: bool
    longest_s: float | None
    """The time after which Kueue stops the job."""
    deadline_s: float | None = None
    """The time after which the job fails."""


def jobs_of(inventory: Inventory) -> Iterator[AnyJob]:
    for placed in inventory.of(Job):
        yield _batch_job(placed)
    yield from raw_jobs_of(inventory, inventory.others())


def raw_jobs_of(inventory: Inventory, others: Iterable[Placed[Unknown]]) -> Iterator[AnyJob]:
    """Jobs of kinds without a type. `inventory`: the objects that they may refer to."""
    look = _look_in(inventory)
    for other in others:
        raw = other.value
        shape = SHAPES.get((raw.api_version.partition("/")[0], raw.kind))
        if shape is not None and not shape.is_left_alone(raw.raw):
            yield _raw_job(other, shape, look)


def _look_in(inventory: Inventory) -> ObjectLookup:
    """Runtimes of training jobs, which are few."""
    known = {
        (each.value.kind, each.value.metadata.namespace, each.value.metadata.name): each.value.raw
        for each in inventory.others()
        if each.value.kind in _RUNTIMES
    }

    def look(kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        found = known.get((kind, namespace, name))
        if found is None and namespace == DEFAULT_NAMESPACE:
            found = known.get((kind, "", name))
        return found

    return look


def _batch_job(placed: Placed[Job]) -> AnyJob:
    job = placed.value
    meta, spec = job.metadata, job.spec
    count = structs.replace(job, spec=structs.replace(spec, suspend=False)).pods_at_once()
    least = None
    if LEAST_ANNOTATION in meta.annotations:
        here = placed.at("metadata.annotations").key(LEAST_ANNOTATION)
        least = whole_number(meta.annotations[LEAST_ANNOTATION], here)
    batch = TemplatePods(spec.template, count, least=least if least is not None and 0 < least < count else None)
    return AnyJob(
        placed,
        "Job",
        meta,
        name_of(job),
        (batch,),
        is_finished=job.is_finished(),
        is_suspended=spec.suspend,
        longest_s=_longest(placed, meta),
        deadline_s=None if spec.active_deadline_seconds is None else float(spec.active_deadline_seconds),
    )


def _raw_job(placed: Placed[Unknown], shape: JobShape, look: ObjectLookup) -> AnyJob:
    value, where = placed.value, placed.where
    # Raw objects have no defaults, unlike typed ones.
    meta = structs.replace(value.metadata, namespace=value.metadata.namespace or DEFAULT_NAMESPACE)
    for field in ("spec", "status"):
        convert(value.raw.get(field) or {}, dict[str, Any], where.with_path(field))
    suspend = dig(value.raw, shape.suspend) if shape.suspend else None
    is_suspended = convert(suspend or False, bool, where.with_path(path_of(shape.suspend)))
    return AnyJob(
        placed,
        value.kind,
        meta,
        meta.name or meta.generate_name.rstrip("-"),
        tuple(_batch(part, where) for part in shape.read(value.raw, where.with_path(""), look)),
        is_finished=shape.ending(value.raw) is not None,
        is_suspended=is_suspended,
        longest_s=_longest(placed, meta),
    )


def _batch(part: PodPart, where: Where) -> TemplatePods:
    path = path_of(part.at)
    template = convert(part.template, PodTemplate, where.with_path(path))
    return TemplatePods(template, part.count, name=part.name, least=part.least, path=path)


def _longest(placed: Placed[Any], meta: ObjectMeta) -> float | None:
    """Kueue ignores a limit of 0."""
    label = meta.labels.get(LONGEST_LABEL)
    if label is None:
        return None
    return float(whole_number(label, placed.at("metadata.labels").key(LONGEST_LABEL))) or None
