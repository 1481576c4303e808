"""Controllers as far as they make gangs of their pods: what is written on them, and how many pods they will have.

A Job has as many pods at once as its parallelism says, and towards its end no more than are still to succeed; a JobSet
has those of all its Jobs; who keeps replicas has so many. Of other kinds only a number that is written on them is
known.

Rejected: counting the pods that are there. While a controller makes them, the first would be a gang of its own.
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
"""`true`: all pods of the controller start together; a number: so many of them; `false`: each goes its own way."""
RENDEZVOUS = "shoal.dev/rendezvous"
"""`true` on pods: they are told of each other when they start, and wait for each other then."""
VOLCANO_MINIMUM = "scheduling.volcano.sh/group-min-member"
KAI_MINIMUM = "kai.scheduler/batch-min-member"
JOB_SET = ("jobset.x-k8s.io", "JobSet")

Owner = tuple[str, str, str]
"""(namespace, kind, name)."""
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class _JobTemplate(ApiStruct, frozen=True):
    spec: JobSpec = field(default_factory=JobSpec)


class _ReplicatedJob(ApiStruct, frozen=True):
    replicas: Count = 1
    template: _JobTemplate = field(default_factory=_JobTemplate)


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
        """A number that is written on it."""
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

    def expected(self, ended: int) -> int | None:
        """How many pods it is to have now, when so many that are still seen have succeeded; None: unknown."""
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
    """All controllers that are there. Kinds without a type are among them if something of ours is written on them."""
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
    """The owner of the owner, if there is one; an owner that declares itself a gang is its own."""
    maker = makers.get(owner)
    above = maker.meta.controller() if maker is not None and GANG not in maker.annotations else None
    return owner if above is None else (owner[0], above.kind, above.name)


def _of_job(job: Job, ended: int) -> int | None:
    status = job.status
    succeeded = max(status.succeeded, ended)
    if job.spec.completions is None:
        # Of a queue of work: once a pod has found it empty, no pod comes in the place of another.
        return None if succeeded else job.spec.parallelism
    left = max(job.spec.completions - succeeded - status.failed_index_count(), 0)
    return min(job.spec.parallelism, left)


def _at_once(spec: JobSpec) -> int:
    return spec.parallelism if spec.completions is None else min(spec.parallelism, spec.completions)
