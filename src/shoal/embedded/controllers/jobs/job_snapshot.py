"""Sorts the pods of a job by what they mean for it, together with the counts in its status.

Only pods with the tracking finalizer are not counted yet; the others are in the status. All decisions about a job
(`outcome`, `pod_changes`, `tracking`) read one snapshot, so they agree about the state.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.embedded.controllers.jobs.indexes import Indexes, read_indexes
from shoal.embedded.controllers.jobs.job import BatchJob, Uncounted
from shoal.embedded.controllers.jobs.pods import JobPod
from shoal.embedded.controllers.jobs.policies import decide_failure


class JobSnapshot(msgspec.Struct, frozen=True):
    job: BatchJob
    pods: tuple[JobPod, ...]
    active: tuple[JobPod, ...]
    succeeded: int
    failed: int
    """Counted failures and uncounted ones, without those that a rule ignores."""
    new_succeeded: tuple[JobPod, ...]
    new_failed: tuple[JobPod, ...]
    counted_indexes: Indexes
    succeeded_indexes: Indexes
    failed_indexes: Indexes
    held: dict[int, JobPod]
    """For each index to be retried, the pod that failed last. It is kept until the next pod has its count of
    failures.
    """

    @property
    def taken(self) -> set[int]:
        """The indexes that need no pod now."""
        indexes = {pod.index for pod in self.active}
        if self.job.spec.replaces_only_failed:
            indexes |= {pod.index for pod in self.pods if pod.is_terminating}
        return {one for one in indexes if one is not None} | self.succeeded_indexes | self.failed_indexes

    @property
    def is_complete(self) -> bool:
        wanted = self.job.spec.completions
        return not self.active and (self.succeeded > 0 if wanted is None else self.succeeded >= wanted)


def take_snapshot(job: BatchJob, pods: Sequence[JobPod]) -> JobSnapshot:
    spec, status = job.spec, job.status
    uncounted = status.uncounted_terminated_pods or Uncounted()
    known = {*uncounted.succeeded, *uncounted.failed}
    news = [pod for pod in pods if pod.is_tracked and (not spec.is_indexed or spec.has_index(pod.index))]
    new_succeeded = tuple(pod for pod in news if pod.has_succeeded and pod.uid not in known)
    new_failed = tuple(pod for pod in news if pod.has_failed(spec.replaces_only_failed) and pod.uid not in known)
    active = tuple(pod for pod in pods if pod.is_active)
    counted, succeeded_indexes, failed_indexes = _indexes(job, news)
    succeeded = status.succeeded + len(new_succeeded) + len(uncounted.succeeded)
    counts = sum(decide_failure(spec.pod_failure_policy, pod).counts for pod in new_failed)
    return JobSnapshot(
        job,
        tuple(pods),
        active,
        len(succeeded_indexes) if spec.is_indexed else succeeded,
        status.failed + counts + len(uncounted.failed),
        new_succeeded,
        new_failed,
        counted,
        succeeded_indexes,
        failed_indexes,
        _held(job, news, active, succeeded_indexes | failed_indexes),
    )


def _indexes(job: BatchJob, news: Sequence[JobPod]) -> tuple[Indexes, Indexes, Indexes]:
    """The indexes counted as succeeded, newly succeeded, and failed."""
    spec, status, nothing = job.spec, job.status, frozenset[int]()
    if not spec.is_indexed or spec.completions is None:
        return nothing, nothing, nothing
    counted = read_indexes(status.completed_indexes, spec.completions)
    succeeded = counted | {pod.index for pod in news if pod.has_succeeded and pod.index is not None}
    if spec.backoff_limit_per_index is None:
        return counted, succeeded, nothing
    failed = read_indexes(status.failed_indexes or "", spec.completions)
    failed |= {pod.index for pod in news if pod.index is not None and _ends_index(job, pod)}
    return counted, succeeded, failed - succeeded


def _ends_index(job: BatchJob, pod: JobPod) -> bool:
    spec = job.spec
    if not pod.has_failed(spec.replaces_only_failed):
        return False
    judgement = decide_failure(spec.pod_failure_policy, pod, has_limit_per_index=True)
    if judgement.action == "FailIndex":
        return True
    return judgement.counts and pod.index_failures >= (spec.backoff_limit_per_index or 0)


def _held(job: BatchJob, news: Sequence[JobPod], active: Sequence[JobPod], settled: Indexes) -> dict[int, JobPod]:
    held: dict[int, JobPod] = {}
    if job.spec.backoff_limit_per_index is None:
        return held
    running = {pod.index for pod in active}
    for pod in news:
        if pod.index is None or pod.index in settled or pod.index in running:
            continue
        if not pod.has_failed(job.spec.replaces_only_failed):
            continue
        last = held.get(pod.index)
        if last is None or _order(pod) >= _order(last):
            held[pod.index] = pod
    return held


def _order(pod: JobPod) -> tuple[int, float, str]:
    return (pod.index_failures + pod.index_ignored, pod.ended_s, pod.name)
