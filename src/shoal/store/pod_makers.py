"""Reads which controllers make gangs of their pods: their annotations, and the number of pods that they will have.

A Job runs as many pods at once as its parallelism, and at its end no more than must still succeed; a JobSet has the
pods of all its Jobs; a controller with replicas has that number. For other kinds only an annotated number is known.

Rejected: counting the existing pods. While a controller creates them, the first would be a gang of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, field, structs

from shoal.api.decode import Unknown, convert
from shoal.api.meta import DEFAULT_NAMESPACE, ObjectMeta
from shoal.api.wire import ApiStruct
from shoal.api.workloads import Job, JobSpec
from shoal.engine.from_api.membership import whole_number
from shoal.store.inventory import Inventory, Placed
from shoal.store.replicas import KUEUE_QUEUE_LABEL, Maker, makers, name_of
from shoal.units.errors import UserError, Where, excerpt

GANG = "shoal.dev/gang"
"""`true`: all pods of the controller start together; a number: so many of them; `false`: they start independently."""
VOLCANO_MINIMUM = "scheduling.volcano.sh/group-min-member"
KAI_MINIMUM = "kai.scheduler/batch-min-member"
JOB_SET = ("jobset.x-k8s.io", "JobSet")

Owner = tuple[str, str, str]
"""(namespace, kind, name)."""
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class _ReplicatedJobTemplate(ApiStruct, frozen=True):
    spec: JobSpec = field(default_factory=JobSpec)


class _ReplicatedJob(ApiStruct, frozen=True):
    replicas: Count = 1
    template: _ReplicatedJobTemplate = field(default_factory=_ReplicatedJobTemplate)


class _JobSetSpec(ApiStruct, frozen=True):
    replicated_jobs: tuple[_ReplicatedJob, ...] = ()


class PodMaker:
    """One controller."""

    def __init__(self, kind: str, meta: ObjectMeta, placed: Placed[Maker] | Placed[Unknown]) -> None:
        self.kind = kind
        self.meta = meta
        self._placed = placed

    @property
    def where(self) -> Where:
        return self._placed.where

    @property
    def at_annotations(self) -> Where:
        return self.where.with_path("metadata.annotations")

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.meta.annotations

    @property
    def is_no_gang(self) -> bool:
        return self.annotations.get(GANG) == "false"

    @property
    def is_all_or_nothing(self) -> bool:
        """Whether all of its pods start together, however many these are."""
        return self.annotations.get(GANG) == "true" or (self.kind == "Job" and KUEUE_QUEUE_LABEL in self.meta.labels)

    def said_minimum(self) -> int | None:
        """A number in an annotation of it."""
        annotations, where = self.annotations, self.at_annotations
        own = annotations.get(GANG)
        if own is not None and own not in {"true", "false"}:
            if not own.isdigit():
                raise UserError(f"expected true, false or a number of pods, got {excerpt(own)}", where=where.key(GANG))
            return whole_number(own, where.key(GANG))
        if own is not None:
            return None
        for key in (VOLCANO_MINIMUM, KAI_MINIMUM):
            if key in annotations and (key is VOLCANO_MINIMUM or self.kind == "Job"):
                return whole_number(annotations[key], where.key(key))
        return None

    def declared_minimum(self) -> int | None:
        """The number of pods that must start together by this controller alone; None if it makes no gang, or if their
        number is unknown."""
        said = self.said_minimum()
        if said is not None or self.is_no_gang or not self.is_all_or_nothing:
            return said
        return self.expected(0)

    def expected(self, ended: int) -> int | None:
        """The number of pods that it is to have now, given the number of visible succeeded pods; None: unknown."""
        value = self._placed.value
        if isinstance(value, Job):
            return _of_job(value, ended)
        if not isinstance(value, Unknown):
            return max(value.spec.replicas - ended, 0)
        if (value.api_version.partition("/")[0], value.kind) != JOB_SET:
            return None
        spec = convert(value.raw.get("spec") or {}, _JobSetSpec, self.where.with_path("spec"))
        return max(sum(job.replicas * _at_once(job.template.spec) for job in spec.replicated_jobs) - ended, 0)


def makers_of(inventory: Inventory) -> dict[Owner, PodMaker]:
    """All controllers. Kinds without a type are included if they have Shoal's annotations."""
    found: dict[Owner, PodMaker] = {}
    for placed in makers(inventory):
        meta, kind = placed.value.metadata, type(placed.value).__name__
        found[meta.namespace, kind, name_of(placed.value)] = PodMaker(kind, meta, placed)
    for other in inventory.others():
        meta = other.value.metadata
        if GANG in meta.annotations:
            meta = structs.replace(meta, namespace=meta.namespace or DEFAULT_NAMESPACE)
            found[meta.namespace, other.value.kind, meta.name] = PodMaker(other.value.kind, meta, other)
    return found


def top_owner(owner: Owner, makers: Mapping[Owner, PodMaker]) -> Owner:
    """The owner of the owner, if it has one; an owner that is annotated as a gang counts as its own owner."""
    maker = makers.get(owner)
    above = maker.meta.controller() if maker is not None and GANG not in maker.annotations else None
    return owner if above is None else (owner[0], above.kind, above.name)


def _of_job(job: Job, ended: int) -> int | None:
    status = job.status
    succeeded = max(status.succeeded, ended)
    if job.spec.completions is None:
        # For a Job with a work queue: once a pod has found the queue empty, pods are not replaced.
        return None if succeeded else job.spec.parallelism
    left = max(job.spec.completions - succeeded - status.failed_index_count(), 0)
    return min(job.spec.parallelism, left)


def _at_once(spec: JobSpec) -> int:
    return spec.parallelism if spec.completions is None else min(spec.parallelism, spec.completions)
