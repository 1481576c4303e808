"""Reports the outcomes of writes to the next scheduling cycle; repeated failures of the same write are reported with
backoff.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.engine.cluster import Cluster
from shoal.engine.events import Event

_LONGEST_S = 60.0
_MANY = 10_000


class Outcomes:
    def __init__(self, cluster: Cluster, wake: Callable[[], None]) -> None:
        self._cluster = cluster
        self._wake = wake
        self._events: list[Event] = []
        self._failures: dict[str, int] = {}
        self._most_kept = _MANY

    def say(self, event: Event) -> None:
        self._events.append(event)
        self._wake()

    def take(self) -> list[Event]:
        """The outcomes since the last call."""
        if not self._events:
            return []
        events, self._events = self._events, []
        return events

    def delay_s(self, key: str) -> float:
        """The delay before a failure of this pod is reported; 0 for the first one."""
        if len(self._failures) > self._most_kept:
            self._forget_who_went()
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return 0.0 if failures == 1 else min(0.5 * (1 << min(failures - 1, 10)), _LONGEST_S)

    def is_failing(self, key: str) -> bool:
        """Whether it failed more than once since its last success."""
        return self._failures.get(key, 0) > 1

    def _forget_who_went(self) -> None:
        """Removes the counts of deleted pods."""
        cluster = self._cluster
        self._failures = {
            key: count for key, count in self._failures.items() if key in cluster.pods or key in cluster.pending
        }
        self._most_kept = max(_MANY, 2 * len(self._failures))

    def forget(self, key: str) -> None:
        """Reset the count after a success or the deletion of the pod."""
        self._failures.pop(key, None)
