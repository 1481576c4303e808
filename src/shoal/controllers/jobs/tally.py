"""Counting pods exactly once.

A pod that ended keeps its finalizer until its uid stands in `uncountedTerminatedPods` (or, of an indexed job, its index
in `completedIndexes`). Then the finalizer is taken away, and only when it is gone does the uid become one more in a
count. Whoever is interrupted between any two of these steps leaves enough behind for the next to go on from.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import msgspec

from shoal.controllers.jobs.ending import End
from shoal.controllers.jobs.failure_policy import judge
from shoal.controllers.jobs.indexes import write_indexes
from shoal.controllers.jobs.job import JobStatus, Uncounted
from shoal.controllers.jobs.pods import JobPod
from shoal.controllers.jobs.stock import Stock

MOST_UNCOUNTED = 500
"""Uids in a status; more wait for the next time, so that the status stays small."""


class Tally(msgspec.Struct, frozen=True):
    status: JobStatus
    """To be written before any finalizer goes."""
    release: tuple[JobPod, ...]
    is_all: bool
    """No pod is left for the next time."""


def tally(stock: Stock, status: JobStatus, end: End | None) -> Tally:
    spec = stock.job.spec
    tracked = frozenset(pod.uid for pod in stock.pods if pod.is_tracked)
    status = count_released(status, tracked)
    before = status.uncounted_terminated_pods or Uncounted()
    succeeded, failed = list(before.succeeded), list(before.failed)
    known, indexes = {*succeeded, *failed}, set(stock.counted_indexes)
    new_indexes, release, is_all = 0, list[JobPod](), True
    for pod in sorted(stock.pods, key=_by_index) if spec.is_indexed else stock.pods:
        if not pod.is_tracked or not _may_go(stock, pod, end):
            continue
        if new_indexes + len(succeeded) + len(failed) >= MOST_UNCOUNTED:
            is_all = False
            break
        release.append(pod)
        is_asked_for = not spec.is_indexed or spec.has_index(pod.index)
        if not is_asked_for or pod.uid in known:
            continue
        if pod.has_succeeded:
            if pod.index is None or not spec.is_indexed:
                succeeded.append(pod.uid)
            elif pod.index not in indexes:
                indexes.add(pod.index)
                new_indexes += 1
        elif _counts_as_failed(stock, pod, end):
            failed.append(pod.uid)
    uncounted = Uncounted(tuple(succeeded), tuple(failed))
    status = msgspec.structs.replace(status, uncounted_terminated_pods=uncounted)
    return Tally(_with_indexes(stock, status, indexes), tuple(release), is_all)


def count_released(status: JobStatus, tracked: AbstractSet[str]) -> JobStatus:
    """The uids without a finalizer made numbers."""
    uncounted = status.uncounted_terminated_pods or Uncounted()
    succeeded = tuple(uid for uid in uncounted.succeeded if uid in tracked)
    failed = tuple(uid for uid in uncounted.failed if uid in tracked)
    return msgspec.structs.replace(
        status,
        succeeded=status.succeeded + len(uncounted.succeeded) - len(succeeded),
        failed=status.failed + len(uncounted.failed) - len(failed),
        uncounted_terminated_pods=Uncounted(succeeded, failed),
    )


def _with_indexes(stock: Stock, status: JobStatus, indexes: AbstractSet[int]) -> JobStatus:
    if not stock.job.spec.is_indexed:
        return status
    failed = write_indexes(stock.failed_indexes) if stock.job.spec.backoff_limit_per_index is not None else None
    return msgspec.structs.replace(
        status, succeeded=len(indexes), completed_indexes=write_indexes(indexes), failed_indexes=failed
    )


def _may_go(stock: Stock, pod: JobPod, end: End | None) -> bool:
    if pod.has_succeeded or end is not None or stock.job.is_deleting:
        return True
    if not pod.has_failed(stock.job.spec.replaces_only_failed):
        return False
    held = stock.held.get(pod.index) if pod.index is not None else None
    return held is None or held.uid != pod.uid


def _counts_as_failed(stock: Stock, pod: JobPod, end: End | None) -> bool:
    """When a job fails, its pods that run fail with it."""
    is_failed = pod.has_failed(stock.job.spec.replaces_only_failed)
    if not is_failed and (end is None or end.is_success):
        return False
    return judge(stock.job.spec.pod_failure_policy, pod).counts


def _by_index(pod: JobPod) -> int:
    return -1 if pod.index is None else pod.index
