"""Lets pods go whose job is queued itself: their template has the label of a queue, and so has their job.

Jobs of most kinds are suspended by admission policies, and their pods are not held at all. A policy cannot tell whether
a Job of Volcano is queued, because it sees only the pod. So such pods are held like any pod with the label, and are let
go here.

Guarantees: no pod counts against quota twice; a pod whose job is not in the cache yet stays held until it is.

Rejected: never holding pods of Volcano's Jobs. A Job with the label on its templates only would bypass all quota.
"""

from __future__ import annotations

from enum import Enum

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import VOLCANO_JOBS
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.client.loop import Loop
from shoal.client.served import Served
from shoal.controllers.queued_pods.kueue_names import QUEUE_LABEL
from shoal.controllers.queued_pods.pod_view import QueuedPod

_MARK = QUEUE_LABEL.encode()


class JobQueueing(Enum):
    NONE = "no job, or one without a queue"
    QUEUED = "the job is queued itself"
    UNKNOWN = "the job is not in the cache"


class PodsOfJobs:
    def __init__(self, context: Context, served: Served) -> None:
        self._context = context
        self._served = served
        self._jobs: Informer | None = None

    def follow(self, loop: Loop) -> None:
        self._served.when_there(VOLCANO_JOBS, lambda kind: self._follow(kind, loop))

    def _follow(self, kind: Kind, loop: Loop) -> None:
        self._jobs = self._context.informers.of(kind)
        loop.need(kind)

    def queueing(self, item: Item, pod: QueuedPod) -> JobQueueing:
        """Whether the job of the pod is queued. A pod that runs or ends keeps the Workload that it has."""
        owner = _job_of(pod) if pod.is_held() and not pod.is_terminating() else ""
        if not owner or self._jobs is None:
            return JobQueueing.NONE
        job = self._jobs.get(item.namespace, owner)
        if job is None:
            return JobQueueing.UNKNOWN
        is_queued = _MARK in job.data and bool((job.obj()["metadata"].get("labels") or {}).get(QUEUE_LABEL))
        return JobQueueing.QUEUED if is_queued else JobQueueing.NONE


def _job_of(pod: QueuedPod) -> str:
    owner = pod.controller()
    if owner is None or owner.kind != VOLCANO_JOBS.name:
        return ""
    return owner.name if owner.api_version.partition("/")[0] == VOLCANO_JOBS.group else ""
