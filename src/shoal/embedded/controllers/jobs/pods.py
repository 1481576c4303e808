"""Defines the view of a pod that the Job controller reads: its state, and when it finished.

The view has only flat fields, because a job may have thousands of pods. Each version of a pod is decoded once.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from shoal.api.conditions import Condition
from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.api.partial import (
    PartialPod,
    PartialPodStatus,
)
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.item import Item
from shoal.embedded.controllers.jobs.names import (
    INDEX,
    INDEX_FAILURES,
    INDEX_IGNORED_FAILURES,
    JOB_NAME_LABELS,
    TRACKING,
)
from shoal.units.numbers import whole_of

_MOST = 2**31 - 1


class JobPod(msgspec.Struct, frozen=True, gc=False):
    namespace: str
    name: str
    uid: str
    owner_uid: str
    """The uid of the controller; empty without one."""
    job_name: str
    """The name of the controlling job, or of the job in the labels without a controller."""
    labels: dict[str, str]
    phase: str
    node: str
    index: int | None
    index_failures: int
    index_ignored: int
    is_tracked: bool
    """Whether the pod has the finalizer, and so is not counted yet."""
    is_deleting: bool
    ready_since: float | None
    created_s: float
    ended_s: float
    """When the pod finished, as far as known; meaningless while it runs."""
    restarts: int
    most_restarts: int
    exits: tuple[tuple[str, int], ...]
    """The terminated containers, main containers first."""
    conditions: tuple[tuple[str, str], ...]

    @property
    def is_finished(self) -> bool:
        return self.phase in TERMINAL_PHASES

    @property
    def has_succeeded(self) -> bool:
        return self.phase == "Succeeded"

    @property
    def is_active(self) -> bool:
        return not self.is_deleting and not self.is_finished

    @property
    def is_terminating(self) -> bool:
        return self.is_deleting and not self.is_finished

    @property
    def is_ready(self) -> bool:
        return self.ready_since is not None

    def has_failed(self, only_when_ended: bool) -> bool:
        """Whether the pod failed; a terminating pod also counts, unless `only_when_ended`."""
        if self.phase == "Failed":
            return True
        return not only_when_ended and self.is_deleting and not self.has_succeeded


def job_pod(item: Item) -> JobPod:
    pod = item.read(PartialPod)
    meta, status = pod.metadata, pod.status
    owner = next((one for one in meta.owner_references if one.controller), None)
    ready = next((one for one in status.conditions if one.type == "Ready"), None)
    containers = (*status.container_statuses, *status.init_container_statuses)
    return JobPod(
        meta.namespace,
        meta.name,
        meta.uid,
        owner.uid if owner is not None else "",
        _job_name(meta, owner),
        meta.labels,
        status.phase,
        pod.spec.node_name,
        _number(meta.annotations.get(INDEX)),
        _number(meta.annotations.get(INDEX_FAILURES)) or 0,
        _number(meta.annotations.get(INDEX_IGNORED_FAILURES)) or 0,
        TRACKING in meta.finalizers,
        meta.deletion_timestamp is not None,
        _seconds(ready.last_transition_time) if ready is not None and ready.status == "True" else None,
        _seconds(meta.creation_timestamp),
        _ended_s(meta, status, ready),
        sum(one.restart_count for one in containers),
        max((one.restart_count for one in status.container_statuses), default=0),
        tuple((one.name, one.state.terminated.exit_code) for one in containers if one.state.terminated is not None),
        tuple((one.type, one.status) for one in status.conditions),
    )


def _job_name(meta: ObjectMeta, owner: OwnerReference | None) -> str:
    if owner is not None:
        return owner.name if owner.kind == "Job" and owner.api_version.startswith("batch/") else ""
    return next((meta.labels[key] for key in JOB_NAME_LABELS if key in meta.labels), "")


def _ended_s(meta: ObjectMeta, status: PartialPodStatus, ready: Condition | None) -> float:
    """The end of its containers, or else of its readiness, its deletion time, or its creation time."""
    ends = [one.state.terminated for one in status.container_statuses]
    times = [end.finished_at for end in ends if end is not None and end.finished_at is not None]
    if times and len(times) == len(ends):
        return max(times).timestamp()
    if ready is not None and ready.status == "False" and ready.last_transition_time:
        return _seconds(ready.last_transition_time)
    if meta.deletion_timestamp is not None:
        return _seconds(meta.deletion_timestamp) - (meta.deletion_grace_period_seconds or 0)
    return _seconds(meta.creation_timestamp)


def _seconds(time: datetime | None) -> float:
    return 0.0 if time is None else time.timestamp()


def _number(text: str | None) -> int | None:
    number = whole_of(text or "")
    return number if number is not None and number <= _MOST else None


def removal_rank(pod: JobPod) -> tuple[bool, int, bool, float, int, float]:
    """The order of deletion of surplus pods: pods with less progress first."""
    phase = {"Pending": 0, "Unknown": 1, "Running": 2}.get(pod.phase, 1)
    return (bool(pod.node), phase, pod.is_ready, -(pod.ready_since or 0.0), -pod.most_restarts, -pod.created_s)
