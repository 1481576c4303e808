"""Computes how long failed pods are not replaced: 10 s, doubled by each failure since the last success, at most 10 min.

The count of a job is kept only in memory, as in Kubernetes: a new controller starts from zero. The count of an index is
stored in the annotations of its pods.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.embedded.controllers.jobs.pods import JobPod

_FIRST_S, _LONGEST_S = 10.0, 600.0


class Failures(msgspec.Struct, frozen=True):
    """The number of failures in a row, and the time of the last one."""

    count: int = 0
    last_s: float = 0.0

    def after(self, succeeded: Sequence[JobPod], failed: Sequence[JobPod]) -> Failures:
        """The failures after these pods finished."""
        if not succeeded:
            if not failed:
                return self
            return Failures(self.count + len(failed), max(pod.ended_s for pod in failed))
        success_s = max(pod.ended_s for pod in succeeded)
        since = [pod.ended_s for pod in failed if pod.ended_s > success_s]
        return Failures(len(since), max(since)) if since else NO_FAILURES

    def wait_s(self, now_s: float) -> float:
        """The time until a pod may be created."""
        if not self.count:
            return 0.0
        pause_s = min(_FIRST_S * float(1 << min(self.count - 1, 10)), _LONGEST_S)
        return max(pause_s - (now_s - self.last_s), 0.0)


NO_FAILURES = Failures()


def index_failures(last: JobPod | None) -> Failures:
    """The failures of an index whose last pod failed."""
    if last is None:
        return NO_FAILURES
    return Failures(last.index_failures + last.index_ignored + 1, last.ended_s)
