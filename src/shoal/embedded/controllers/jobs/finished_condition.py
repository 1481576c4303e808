"""Decides the condition with which a job finishes: failure, success policy, or (in `job_sync`) all completions reached.

The outcome is first set as a condition (`FailureTarget`, `SuccessCriteriaMet`), and is never changed after that: the
running pods are deleted because of it.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from shoal.embedded.controllers.jobs.job import BatchJob
from shoal.embedded.controllers.jobs.job_snapshot import JobSnapshot
from shoal.embedded.controllers.jobs.policies import decide_failure, met_rule


class JobOutcome(msgspec.Struct, frozen=True):
    is_success: bool
    reason: str
    message: str

    @property
    def announcement(self) -> str:
        return "SuccessCriteriaMet" if self.is_success else "FailureTarget"

    @property
    def condition(self) -> str:
        return "Complete" if self.is_success else "Failed"


COMPLETIONS_REACHED = JobOutcome(True, "CompletionsReached", "Reached expected number of succeeded pods")
_BACKOFF_LIMIT_EXCEEDED = JobOutcome(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
_DEADLINE_EXCEEDED = JobOutcome(False, "DeadlineExceeded", "Job was active longer than specified deadline")
_MAX_FAILED_INDEXES_EXCEEDED = JobOutcome(
    False, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
)
_FAILED_INDEXES = JobOutcome(False, "FailedIndexes", "Job has failed indexes")


def find_outcome(snapshot: JobSnapshot, now_s: float) -> JobOutcome | None:
    """The outcome, except completion, which also depends on the pods that are still needed."""
    job, spec = snapshot.job, snapshot.job.spec
    if (announced := _announced(job)) is not None:
        return announced
    if message := _matched_failure_rule(snapshot):
        return JobOutcome(False, "PodFailurePolicy", message)
    if snapshot.failed > spec.backoff_limit or _restarts_too_often(snapshot):
        return _BACKOFF_LIMIT_EXCEEDED
    left_s = deadline_s(job, now_s)
    if left_s is not None and left_s <= 0:
        return _DEADLINE_EXCEEDED
    if spec.backoff_limit_per_index is not None and spec.completions is not None:
        lost = len(snapshot.failed_indexes)
        if spec.max_failed_indexes is not None and lost > spec.max_failed_indexes:
            return _MAX_FAILED_INDEXES_EXCEEDED
        if lost and lost + len(snapshot.succeeded_indexes) >= spec.completions:
            return _FAILED_INDEXES
    if words := met_rule(spec.success_policy, spec.completions or 0, snapshot.succeeded_indexes):
        return JobOutcome(True, "SuccessPolicy", words)
    return None


def deadline_s(job: BatchJob, now_s: float) -> float | None:
    """The remaining time until the active deadline."""
    limit_s, started = job.spec.active_deadline_seconds, job.status.start_time
    if limit_s is None or started is None or job.spec.suspend:
        return None
    return datetime.fromisoformat(started).timestamp() + limit_s - now_s


def _announced(job: BatchJob) -> JobOutcome | None:
    if (success := job.status.condition("SuccessCriteriaMet")) is not None:
        return JobOutcome(True, success.reason, success.message)
    if (failure := job.status.condition("FailureTarget")) is not None:
        return JobOutcome(False, failure.reason, failure.message)
    return None


def _matched_failure_rule(snapshot: JobSnapshot) -> str:
    spec = snapshot.job.spec
    if spec.pod_failure_policy is None:
        return ""
    failed = (pod for pod in snapshot.pods if pod.has_failed(spec.replaces_only_failed))
    return next((words for pod in failed if (words := decide_failure(spec.pod_failure_policy, pod).message)), "")


def _restarts_too_often(snapshot: JobSnapshot) -> bool:
    """Container restarts in place count as failures while the pod continues."""
    if not snapshot.job.spec.restarts_in_place:
        return False
    limit = snapshot.job.spec.backoff_limit
    restarts = sum(pod.restarts for pod in snapshot.pods if pod.phase in ("Running", "Pending"))
    return restarts >= max(limit, 1)
