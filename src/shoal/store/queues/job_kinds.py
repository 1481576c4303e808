"""Jobs of every kind that is read, as pod templates and how many of each.

A kind whose replicas lie in a map or a list of its own is a row of a table and is read raw: quota asks nothing else of
it. Pod sets are named and ordered as Kueue does it, whoever leads coming first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, field, structs

from shoal.api.decode import Unknown, convert
from shoal.api.meta import DEFAULT_NAMESPACE, ObjectMeta
from shoal.api.pod import PodTemplate
from shoal.api.wire import ApiStruct
from shoal.api.workloads import Job, JobCondition, JobSpec
from shoal.engine.from_api.membership import whole_number
from shoal.engine.from_api.queues import Batch
from shoal.store.inventory import Inventory, Placed
from shoal.store.replicas import name_of
from shoal.units.errors import Where

LEAST_ANNOTATION = "kueue.x-k8s.io/job-min-parallelism"
LONGEST_LABEL = "kueue.x-k8s.io/max-exec-time-seconds"

_ENDED = frozenset({"Complete", "Completed", "Succeeded", "Failed"})
_LEADERS = ("launcher", "chief", "master")

Replicas = Annotated[int, Meta(ge=0, le=2**31 - 1)]


@dataclass(frozen=True, slots=True)
class AnyJob:
    """A job of some kind."""

    placed: Placed[Job] | Placed[Unknown]
    kind: str
    meta: ObjectMeta
    name: str
    batches: tuple[Batch, ...]
    is_finished: bool
    is_suspended: bool
    longest_s: float | None
    """After so long Kueue stops it."""
    deadline_s: float | None = None
    """After so long it gives up."""


class _ReplicaSpec(ApiStruct, frozen=True):
    replicas: Replicas = 1
    template: PodTemplate = field(default_factory=PodTemplate)


class _JobTemplate(ApiStruct, frozen=True):
    spec: JobSpec = field(default_factory=JobSpec)


class _ReplicatedJob(ApiStruct, frozen=True):
    name: str
    replicas: Replicas = 1
    template: _JobTemplate = field(default_factory=_JobTemplate)


class _RunPolicy(ApiStruct, frozen=True):
    suspend: bool = False


class _Switch(ApiStruct, frozen=True):
    """Where kinds keep the word that holds their pods back."""

    suspend: bool = False
    run_policy: _RunPolicy = field(default_factory=_RunPolicy)


class _Status(ApiStruct, frozen=True):
    conditions: tuple[JobCondition, ...] = ()


Reader = Callable[[dict[str, Any], Where], tuple[Batch, ...]]
"""The batches of a spec; the place is the spec's."""


def jobs_of(inventory: Inventory) -> Iterator[AnyJob]:
    for placed in inventory.of(Job):
        yield _batch_job(placed)
    for other in inventory.others():
        raw = other.value
        row = _TABLE.get((raw.api_version.partition("/")[0], raw.kind))
        if row is not None:
            yield _raw_job(other, row)


def _batch_job(placed: Placed[Job]) -> AnyJob:
    job = placed.value
    meta, spec = job.metadata, job.spec
    count = structs.replace(job, spec=structs.replace(spec, suspend=False)).pods_at_once()
    least = None
    if LEAST_ANNOTATION in meta.annotations:
        here = placed.at("metadata.annotations").key(LEAST_ANNOTATION)
        least = whole_number(meta.annotations[LEAST_ANNOTATION], here)
    batch = Batch(spec.template, count, least=least if least is not None and 0 < least < count else None)
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


def _raw_job(placed: Placed[Unknown], read: Reader) -> AnyJob:
    value, where = placed.value, placed.where
    # A raw object has not been completed as typed ones are.
    meta = structs.replace(value.metadata, namespace=value.metadata.namespace or DEFAULT_NAMESPACE)
    spec = convert(value.raw.get("spec") or {}, dict[str, Any], where.with_path("spec"))
    status = convert(value.raw.get("status") or {}, _Status, where.with_path("status"))
    switch = convert(spec, _Switch, where.with_path("spec"))
    return AnyJob(
        placed,
        value.kind,
        meta,
        meta.name or meta.generate_name.rstrip("-"),
        read(spec, where.with_path("spec")),
        is_finished=any(each.type in _ENDED and each.status == "True" for each in status.conditions),
        is_suspended=switch.suspend or switch.run_policy.suspend,
        longest_s=_longest(placed, meta),
    )


def _replica_specs(name: str) -> Reader:
    """A map from the name of a role to its template and number."""

    def read(spec: dict[str, Any], where: Where) -> tuple[Batch, ...]:
        roles = convert(spec.get(name) or {}, dict[str, _ReplicaSpec], where.below(name))
        ordered = sorted(roles, key=lambda role: (role.lower() not in _LEADERS, role.lower()))
        return tuple(
            Batch(roles[role].template, roles[role].replicas, name=role.lower(), path=f"spec.{name}.{role}.template")
            for role in ordered
        )

    return read


def _replicated_jobs(spec: dict[str, Any], where: Where) -> tuple[Batch, ...]:
    """A list of jobs, each so many times."""
    here = where.below("replicatedJobs")
    jobs = convert(spec.get("replicatedJobs") or [], tuple[_ReplicatedJob, ...], here)
    return tuple(
        Batch(
            each.template.spec.template,
            each.replicas * Job(spec=structs.replace(each.template.spec, suspend=False)).pods_at_once(),
            name=each.name,
            path=f"spec.replicatedJobs[{index}].template.spec.template",
        )
        for index, each in enumerate(jobs)
    )


_TABLE: dict[tuple[str, str], Reader] = {
    ("kubeflow.org", "PyTorchJob"): _replica_specs("pytorchReplicaSpecs"),
    ("kubeflow.org", "TFJob"): _replica_specs("tfReplicaSpecs"),
    ("kubeflow.org", "XGBoostJob"): _replica_specs("xgbReplicaSpecs"),
    ("kubeflow.org", "PaddleJob"): _replica_specs("paddleReplicaSpecs"),
    ("kubeflow.org", "JAXJob"): _replica_specs("jaxReplicaSpecs"),
    ("kubeflow.org", "MPIJob"): _replica_specs("mpiReplicaSpecs"),
    ("jobset.x-k8s.io", "JobSet"): _replicated_jobs,
}
"""By API group and kind."""


def _longest(placed: Placed[Any], meta: ObjectMeta) -> float | None:
    """Kueue heeds no limit of 0."""
    label = meta.labels.get(LONGEST_LABEL)
    if label is None:
        return None
    return float(whole_number(label, placed.at("metadata.labels").key(LONGEST_LABEL))) or None
