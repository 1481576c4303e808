"""Counts each pod exactly once.

A finished pod keeps its finalizer until its uid is in `uncountedTerminatedPods` (or, for an indexed job, its index is
in `completedIndexes`). Then the finalizer is removed, and only after that is the uid added to a count. If the process
stops between two of these steps, the next one can continue from the stored state.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import msgspec

from shoal.embedded.controllers.jobs.finished_condition import JobOutcome
from shoal.embedded.controllers.jobs.indexes import write_indexes
from shoal.embedded.controllers.jobs.job import BatchJobStatus, Uncounted
from shoal.embedded.controllers.jobs.job_snapshot import JobSnapshot
from shoal.embedded.controllers.jobs.pods import JobPod
from shoal.embedded.controllers.jobs.policies import decide_failure

MAX_UNCOUNTED = 500
"""The maximum number of uids in a status, so that it stays small."""


class TrackingStep(msgspec.Struct, frozen=True):
    status: BatchJobStatus
    """The status to write before any finalizer is removed."""
    remove_finalizers: tuple[JobPod, ...]
    is_all: bool
    """Whether no pod is left for the next sync."""


def next_tracking_step(snapshot: JobSnapshot, status: BatchJobStatus, end: JobOutcome | None) -> TrackingStep:
    spec = snapshot.job.spec
    tracked = frozenset(pod.uid for pod in snapshot.pods if pod.is_tracked)
    status = count_released(status, tracked)
    before = status.uncounted_terminated_pods or Uncounted()
    succeeded, failed = list(before.succeeded), list(before.failed)
    known, indexes = {*succeeded, *failed}, set(snapshot.counted_indexes)
    new_indexes, remove_finalizers, is_all = 0, list[JobPod](), True
    for pod in sorted(snapshot.pods, key=_by_index) if spec.is_indexed else snapshot.pods:
        if not pod.is_tracked or not _may_go(snapshot, pod, end):
            continue
        if new_indexes + len(succeeded) + len(failed) >= MAX_UNCOUNTED:
            is_all = False
            break
        remove_finalizers.append(pod)
        is_asked_for = not spec.is_indexed or spec.has_index(pod.index)
        if not is_asked_for or pod.uid in known:
            continue
        if pod.has_succeeded:
            if pod.index is None or not spec.is_indexed:
                succeeded.append(pod.uid)
            elif pod.index not in indexes:
                indexes.add(pod.index)
                new_indexes += 1
        elif _counts_as_failed(snapshot, pod, end):
            failed.append(pod.uid)
    uncounted = Uncounted(tuple(succeeded), tuple(failed))
    status = msgspec.structs.replace(status, uncounted_terminated_pods=uncounted)
    return TrackingStep(_with_indexes(snapshot, status, indexes), tuple(remove_finalizers), is_all)


def count_released(status: BatchJobStatus, tracked: AbstractSet[str]) -> BatchJobStatus:
    """Adds the uids without a finalizer to the counts."""
    uncounted = status.uncounted_terminated_pods or Uncounted()
    succeeded = tuple(uid for uid in uncounted.succeeded if uid in tracked)
    failed = tuple(uid for uid in uncounted.failed if uid in tracked)
    return msgspec.structs.replace(
        status,
        succeeded=status.succeeded + len(uncounted.succeeded) - len(succeeded),
        failed=status.failed + len(uncounted.failed) - len(failed),
        uncounted_terminated_pods=Uncounted(succeeded, failed),
    )


def _with_indexes(snapshot: JobSnapshot, status: BatchJobStatus, indexes: AbstractSet[int]) -> BatchJobStatus:
    if not snapshot.job.spec.is_indexed:
        return status
    failed = write_indexes(snapshot.failed_indexes) if snapshot.job.spec.backoff_limit_per_index is not None else None
    return msgspec.structs.replace(
        status, succeeded=len(indexes), completed_indexes=write_indexes(indexes), failed_indexes=failed
    )


def _may_go(snapshot: JobSnapshot, pod: JobPod, end: JobOutcome | None) -> bool:
    if pod.has_succeeded or end is not None or snapshot.job.is_deleting:
        return True
    if not pod.has_failed(snapshot.job.spec.replaces_only_failed):
        return False
    held = snapshot.held.get(pod.index) if pod.index is not None else None
    return held is None or held.uid != pod.uid


def _counts_as_failed(snapshot: JobSnapshot, pod: JobPod, end: JobOutcome | None) -> bool:
    """Whether the pod counts as failed; the running pods of a failed job do."""
    is_failed = pod.has_failed(snapshot.job.spec.replaces_only_failed)
    if not is_failed and (end is None or end.is_success):
        return False
    return decide_failure(snapshot.job.spec.pod_failure_policy, pod).counts


def _by_index(pod: JobPod) -> int:
    return -1 if pod.index is None else pod.index
