"""Whether a job has come to its end, and why.

An end is announced first (`FailureTarget`, `SuccessCriteriaMet`), and what was announced is never thought over: the
pods that still run are being deleted for it.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from shoal.controllers.jobs.failure_policy import judge
from shoal.controllers.jobs.job import Job
from shoal.controllers.jobs.stock import Stock
from shoal.controllers.jobs.success_policy import met_rule


class End(msgspec.Struct, frozen=True):
    is_success: bool
    reason: str
    message: str

    @property
    def announcement(self) -> str:
        return "SuccessCriteriaMet" if self.is_success else "FailureTarget"

    @property
    def condition(self) -> str:
        return "Complete" if self.is_success else "Failed"


REACHED = End(True, "CompletionsReached", "Reached expected number of succeeded pods")
_TOO_MANY_FAILURES = End(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
_TOO_LATE = End(False, "DeadlineExceeded", "Job was active longer than specified deadline")
_TOO_MANY_INDEXES = End(
    False, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
)
_FAILED_INDEXES = End(False, "FailedIndexes", "Job has failed indexes")


def find_end(stock: Stock, now_s: float) -> End | None:
    """Other than by completion, which shows only when the pods that are wanted still are known."""
    job, spec = stock.job, stock.job.spec
    if (announced := _announced(job)) is not None:
        return announced
    if message := _failing_rule(stock):
        return End(False, "PodFailurePolicy", message)
    if stock.failed > spec.backoff_limit or _restarts_too_often(stock):
        return _TOO_MANY_FAILURES
    left_s = deadline_s(job, now_s)
    if left_s is not None and left_s <= 0:
        return _TOO_LATE
    if spec.backoff_limit_per_index is not None and spec.completions is not None:
        lost = len(stock.failed_indexes)
        if spec.max_failed_indexes is not None and lost > spec.max_failed_indexes:
            return _TOO_MANY_INDEXES
        if lost and lost + len(stock.succeeded_indexes) >= spec.completions:
            return _FAILED_INDEXES
    if words := met_rule(spec.success_policy, spec.completions or 0, stock.succeeded_indexes):
        return End(True, "SuccessPolicy", words)
    return None


def deadline_s(job: Job, now_s: float) -> float | None:
    """How long the job may still be active."""
    limit_s, started = job.spec.active_deadline_seconds, job.status.start_time
    if limit_s is None or started is None or job.spec.suspend:
        return None
    return datetime.fromisoformat(started).timestamp() + limit_s - now_s


def _announced(job: Job) -> End | None:
    if (success := job.status.condition("SuccessCriteriaMet")) is not None:
        return End(True, success.reason, success.message)
    if (failure := job.status.condition("FailureTarget")) is not None:
        return End(False, failure.reason, failure.message)
    return None


def _failing_rule(stock: Stock) -> str:
    spec = stock.job.spec
    if spec.pod_failure_policy is None:
        return ""
    failed = (pod for pod in stock.pods if pod.has_failed(spec.replaces_only_failed))
    return next((words for pod in failed if (words := judge(spec.pod_failure_policy, pod).message)), "")


def _restarts_too_often(stock: Stock) -> bool:
    """Containers that are restarted in place count as failures while their pods go on."""
    if not stock.job.spec.restarts_in_place:
        return False
    limit = stock.job.spec.backoff_limit
    restarts = sum(pod.restarts for pod in stock.pods if pod.phase in ("Running", "Pending"))
    return restarts >= max(limit, 1)
