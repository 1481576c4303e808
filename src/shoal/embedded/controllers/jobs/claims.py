"""Finds the pods that belong to a job: the ones it controls, adopts and releases.

A pod without a controller that the selector matches is adopted and gets the finalizer; a pod whose labels no longer
match is released. Other owners and finalizers of the pod are kept.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.client.kind import JOBS
from shoal.client.owner_reference import controlled_by
from shoal.embedded.controllers.jobs.job import BatchJob, Obj
from shoal.embedded.controllers.jobs.names import TRACKING
from shoal.embedded.controllers.jobs.pods import JobPod


class Claims(msgspec.Struct, frozen=True):
    own: tuple[JobPod, ...]
    adopt: tuple[JobPod, ...]
    release: tuple[JobPod, ...]
    stale_pods: tuple[JobPod, ...]
    """Pods with the finalizer of a deleted job."""


def find_claims(job: BatchJob, controlled: Iterable[JobPod], orphans: Iterable[JobPod]) -> Claims:
    takes = job.spec.selector.selector().matches
    own: list[JobPod] = []
    release: list[JobPod] = []
    stale_pods: list[JobPod] = []
    for pod in controlled:
        if pod.owner_uid != job.uid:
            if pod.is_tracked:
                stale_pods.append(pod)
        elif job.is_deleting or takes(pod.labels):
            own.append(pod)
        else:
            release.append(pod)
    adopt: list[JobPod] = []
    for pod in orphans:
        if not job.is_deleting and not pod.is_deleting and takes(pod.labels):
            adopt.append(pod)
        elif pod.is_tracked and pod.job_name == job.metadata.name:
            stale_pods.append(pod)
    return Claims(tuple(own), tuple(adopt), tuple(release), tuple(stale_pods))


def owner_reference(job: BatchJob) -> Obj:
    return controlled_by(JOBS, job.metadata.name, job.uid)


# Patches. Each names the uid, so that it does not change another pod of the same name.


def remove_finalizer_patch(pod: JobPod) -> Obj:
    return {"metadata": {"uid": pod.uid, "$deleteFromPrimitiveList/finalizers": [TRACKING]}}


def adopt_patch(job: BatchJob, pod: JobPod) -> Obj:
    return {"metadata": {"uid": pod.uid, "ownerReferences": [owner_reference(job)], "finalizers": [TRACKING]}}


def release_patch(job: BatchJob, pod: JobPod) -> Obj:
    metadata = remove_finalizer_patch(pod)["metadata"]
    return {"metadata": metadata | {"ownerReferences": [{"$patch": "delete", "uid": job.uid}]}}
