"""Which pods are a job's own: those it controls, those it takes in, those it lets go.

A pod that nothing controls and that the selector takes is taken in, finalizer and all; a pod whose labels were changed
is let go. Both leave the pod's other owners and finalizers as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.controllers.jobs.job import Job, Obj
from shoal.controllers.jobs.names import TRACKING
from shoal.controllers.jobs.pods import JobPod
from shoal.store.live.kind import JOBS
from shoal.store.live.owning import controlled_by


class Claims(msgspec.Struct, frozen=True):
    own: tuple[JobPod, ...]
    adopt: tuple[JobPod, ...]
    let_go: tuple[JobPod, ...]
    strays: tuple[JobPod, ...]
    """Have a finalizer of a job that is gone."""


def find_claims(job: Job, controlled: Iterable[JobPod], orphans: Iterable[JobPod]) -> Claims:
    takes = job.spec.selector.selector().matches
    own: list[JobPod] = []
    let_go: list[JobPod] = []
    strays: list[JobPod] = []
    for pod in controlled:
        if pod.owner_uid != job.uid:
            if pod.is_tracked:
                strays.append(pod)
        elif job.is_deleting or takes(pod.labels):
            own.append(pod)
        else:
            let_go.append(pod)
    adopt: list[JobPod] = []
    for pod in orphans:
        if not job.is_deleting and not pod.is_deleting and takes(pod.labels):
            adopt.append(pod)
        elif pod.is_tracked and pod.job_name == job.metadata.name:
            strays.append(pod)
    return Claims(tuple(own), tuple(adopt), tuple(let_go), tuple(strays))


def owner_reference(job: Job) -> Obj:
    return controlled_by(JOBS, job.metadata.name, job.uid)


# Patches. Each names the uid, so that it does not hit another pod of the same name.


def release_patch(pod: JobPod) -> Obj:
    return {"metadata": {"uid": pod.uid, "$deleteFromPrimitiveList/finalizers": [TRACKING]}}


def adopt_patch(job: Job, pod: JobPod) -> Obj:
    return {"metadata": {"uid": pod.uid, "ownerReferences": [owner_reference(job)], "finalizers": [TRACKING]}}


def let_go_patch(job: Job, pod: JobPod) -> Obj:
    metadata = release_patch(pod)["metadata"]
    return {"metadata": metadata | {"ownerReferences": [{"$patch": "delete", "uid": job.uid}]}}
