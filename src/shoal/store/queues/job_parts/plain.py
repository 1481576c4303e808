"""Reads jobs whose pod templates are stored directly in them: batch Jobs, JobSets, training jobs, Volcano jobs."""

from __future__ import annotations

from typing import Any

from msgspec import field

from shoal.api.decode import convert
from shoal.api.wire import ApiStruct
from shoal.engine.from_api.membership import whole_number
from shoal.store.queues.job_parts.part import Obj, ObjectLookup, PodPart, Reader, Replicas, Steps, dig
from shoal.units.errors import Where

LEAST_ANNOTATION = "kueue.x-k8s.io/job-min-parallelism"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
REPLICA_INDEX = "training.kubeflow.org/replica-index"

_ORDER = ("chief", "launcher", "master", "ps", "worker")
"""Roles in their order: leaders first. Roles that are not listed here follow by name."""


class _Batch(ApiStruct, frozen=True):
    template: dict[str, Any] = field(default_factory=dict)
    parallelism: Replicas = 1
    completions: Replicas | None = None

    def at_once(self) -> int:
        return self.parallelism if self.completions is None else min(self.parallelism, self.completions)


class _Inner(ApiStruct, frozen=True):
    spec: _Batch = field(default_factory=_Batch)


class _ReplicatedJob(ApiStruct, frozen=True):
    name: str
    replicas: Replicas = 1
    template: _Inner = field(default_factory=_Inner)


class _Role(ApiStruct, frozen=True):
    replicas: Replicas = 1
    template: dict[str, Any] = field(default_factory=dict)


class _Task(ApiStruct, frozen=True):
    name: str = ""
    replicas: Replicas = 1
    template: dict[str, Any] = field(default_factory=dict)


def batch_job(job: Obj, where: Where, _look: ObjectLookup) -> tuple[PodPart, ...]:
    spec = convert(job.get("spec") or {}, _Batch, where.below("spec"))
    count = spec.at_once()
    said = dig(job, ("metadata", "annotations", LEAST_ANNOTATION))
    least = None
    if isinstance(said, str):
        least = whole_number(said, where.below("metadata.annotations").key(LEAST_ANNOTATION))
    least = least if least is not None and 0 < least < count else None
    return (PodPart("main", count, spec.template, ("spec", "template"), least=least, index_label=COMPLETION_INDEX),)


def job_set(job: Obj, where: Where, _look: ObjectLookup) -> tuple[PodPart, ...]:
    return replicated_jobs(job.get("spec") or {}, where.below("spec"), ("spec",))


def replicated_jobs(spec: Obj, where: Where, root: Steps) -> tuple[PodPart, ...]:
    """The parts of a JobSet's spec at `root`: a list of jobs, each with a number of replicas."""
    here = where.below("replicatedJobs")
    jobs = convert(spec.get("replicatedJobs") or [], tuple[_ReplicatedJob, ...], here)
    return tuple(
        PodPart(
            each.name,
            each.replicas * each.template.spec.at_once(),
            each.template.spec.template,
            (*root, "replicatedJobs", index, "template", "spec", "template"),
            index_label=COMPLETION_INDEX,
            sub_group_label=JOB_INDEX,
            sub_groups=each.replicas,
        )
        for index, each in enumerate(jobs)
    )


def replica_specs(name: str) -> Reader:
    """The parts of a map from the name of a role to its template and replicas."""

    def read(job: Obj, where: Where, _look: ObjectLookup) -> tuple[PodPart, ...]:
        spec = job.get("spec") or {}
        roles = convert(spec.get(name) or {}, dict[str, _Role], where.below("spec").below(name))
        return tuple(
            PodPart(
                role.lower(),
                roles[role].replicas,
                roles[role].template,
                ("spec", name, role, "template"),
                index_label=REPLICA_INDEX,
            )
            for role in sorted(roles, key=_rank)
        )

    return read


def _rank(role: str) -> tuple[int, str]:
    low = role.lower()
    return _ORDER.index(low) if low in _ORDER else len(_ORDER), low


def volcano_job(job: Obj, where: Where, _look: ObjectLookup) -> tuple[PodPart, ...]:
    spec = job.get("spec") or {}
    tasks = convert(spec.get("tasks") or [], tuple[_Task, ...], where.below("spec.tasks"))
    return tuple(
        # Volcano's default name of a task.
        PodPart((each.name or f"default{index}").lower(), each.replicas, each.template, _task_at(index))
        for index, each in enumerate(tasks)
    )


def _task_at(index: int) -> Steps:
    return ("spec", "tasks", index, "template")
