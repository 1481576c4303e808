"""How long pods are not replaced after failures: 10 s, doubled by each failure since the last success, at most 10 min.

The count of a job is kept in memory only, as Kubernetes does: a new controller starts afresh. That of an index stands
in its pods' annotations.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.controllers.jobs.pods import JobPod

_FIRST_S, _LONGEST_S = 10.0, 600.0


class Failures(msgspec.Struct, frozen=True):
    """In a row, and when the last was."""

    count: int = 0
    last_s: float = 0.0

    def after(self, succeeded: Sequence[JobPod], failed: Sequence[JobPod]) -> Failures:
        """With pods that ended since."""
        if not succeeded:
            if not failed:
                return self
            return Failures(self.count + len(failed), max(pod.ended_s for pod in failed))
        success_s = max(pod.ended_s for pod in succeeded)
        since = [pod.ended_s for pod in failed if pod.ended_s > success_s]
        return Failures(len(since), max(since)) if since else NO_FAILURES

    def wait_s(self, now_s: float) -> float:
        """Until a pod may be created."""
        if not self.count:
            return 0.0
        pause_s = min(_FIRST_S * float(1 << min(self.count - 1, 10)), _LONGEST_S)
        return max(pause_s - (now_s - self.last_s), 0.0)


NO_FAILURES = Failures()


def index_failures(last: JobPod | None) -> Failures:
    """Those of an index whose last pod failed."""
    if last is None:
        return NO_FAILURES
    return Failures(last.index_failures + last.index_ignored + 1, last.ended_s)
