"""Generates the pods that operators of other projects would create for training jobs and sets of jobs in manifests.

Pods are named `<job>-<role>-<n>`, as training operators do it, and have an owner reference. Objects of a cluster (with
a uid) are not expanded: their pods show whether the operator runs there, and missing pods would not be created.

Rejected: all kinds that queues read. The pods of Ray, Spark and TrainJobs do not follow from their own fields alone,
and Volcano's jobs have a group that only its controllers create.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.decode import Unknown
from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.api.pod import Pod
from shoal.store.inventory import Inventory, Placed
from shoal.store.queues.job_kinds import AnyJob, raw_jobs_of
from shoal.store.queues.job_parts import JOB_KINDS
from shoal.store.replicas import KUEUE_QUEUE_LABEL, MOST_REPLICAS

_KUBEFLOW = frozenset(row.kind.name for row in JOB_KINDS if row.replica_types)
_KINDS = frozenset((row.kind.group, row.kind.name) for row in JOB_KINDS if row.has_predictable_pods)
_LABELS = "training.kubeflow.org/"


class OperatorPods:
    def __init__(self, inventory: Inventory) -> None:
        named = {
            (pod.value.metadata.namespace, owner.kind, owner.name)
            for pod in inventory.of(Pod)
            if (owner := pod.value.metadata.controller()) is not None
        }
        found = list(raw_jobs_of(inventory, filter(_is_by_hand, inventory.others())))
        self.read = frozenset(id(job.placed.value) for job in found)
        """Objects that are not reported as skipped."""
        self._jobs = [
            job for job in found if not job.is_finished and (job.meta.namespace, job.kind, job.name) not in named
        ]

    def made(self, warnings: list[str]) -> Iterator[Placed[Pod]]:
        for job in self._jobs:
            if job.is_suspended and KUEUE_QUEUE_LABEL not in job.meta.labels:
                warnings.append(f"{job.placed.where}: is suspended and makes no pods")
                continue
            total = sum(batch.count for batch in job.batches)
            if total > MOST_REPLICAS:
                raise job.placed.wrong("spec", f"{total:,} pods of one job", fix=f"at most {MOST_REPLICAS:,} are made")
            yield from _pods(job)


def _is_by_hand(placed: Placed[Unknown]) -> bool:
    value = placed.value
    return (value.api_version.partition("/")[0], value.kind) in _KINDS and not value.metadata.uid


def _pods(job: AnyJob) -> Iterator[Placed[Pod]]:
    reference = OwnerReference(kind=job.kind, name=job.name, uid=job.meta.uid, controller=True)
    for batch in job.batches:
        template = batch.template
        reported = (
            {f"{_LABELS}job-name": job.name, f"{_LABELS}replica-type": batch.name} if job.kind in _KUBEFLOW else {}
        )
        for number in range(batch.count):
            index = {f"{_LABELS}replica-index": str(number)} if reported else {}
            meta = ObjectMeta(
                name=f"{job.name}-{batch.name}-{number}",
                namespace=job.meta.namespace,
                labels={**template.metadata.labels, **reported, **index},
                annotations=template.metadata.annotations,
                owner_references=(reference,),
                creation_timestamp=job.meta.creation_timestamp,
            )
            yield Placed(Pod(metadata=meta, spec=template.spec), job.placed.where, batch.path)
