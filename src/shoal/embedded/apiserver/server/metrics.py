"""Serves `/metrics` with the names of Kubernetes' API server.

Rejected: prometheus_client. Three counters and a histogram do not pay for its import and its locks on every request.
"""

from __future__ import annotations

import resource as process
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sized

_BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0)
_Labels = tuple[str, str, str, str, str]


class Metrics:
    def __init__(self, started_s: float, watches: Sized, more: Callable[[], Iterable[str]] = tuple) -> None:
        """`more` gives lines of others, in the same form."""
        self._more = more
        self._started_s = started_s
        self._requests: dict[tuple[_Labels, int], int] = {}
        self._durations: dict[_Labels, list[float]] = {}
        self._watches = watches

    def count(self, labels: _Labels, code: int, seconds: float, *, is_long: bool) -> None:
        """One request that is answered; `labels` are verb, group, version, resource, subresource."""
        key = (labels, code)
        self._requests[key] = self._requests.get(key, 0) + 1
        if is_long:
            return
        found = self._durations.get(labels)
        if found is None:
            found = self._durations[labels] = [0.0] * (len(_BUCKETS) + 2)
        found[bisect_left(_BUCKETS, seconds)] += 1
        found[-1] += seconds

    def text(self, revision: int, objects: Iterable[tuple[str, int]]) -> bytes:
        lines = [
            "# HELP apiserver_request_total Counter of apiserver requests broken out for each verb, resource and code.",
            "# TYPE apiserver_request_total counter",
        ]
        for (labels, code), number in self._requests.items():
            lines.append(f'apiserver_request_total{{{_written(labels)},code="{code}"}} {number}')
        lines += [
            "# HELP apiserver_request_duration_seconds How long requests took that are not watches.",
            "# TYPE apiserver_request_duration_seconds histogram",
        ]
        for labels, found in self._durations.items():
            lines += _histogram(_written(labels), found)
        lines += [
            "# HELP apiserver_longrunning_requests Watches that are open now.",
            "# TYPE apiserver_longrunning_requests gauge",
            f'apiserver_longrunning_requests{{verb="WATCH"}} {len(self._watches)}',
            "# HELP apiserver_storage_objects Number of stored objects by resource.",
            "# TYPE apiserver_storage_objects gauge",
        ]
        lines += [f'apiserver_storage_objects{{resource="{name}"}} {number}' for name, number in sorted(objects)]
        used = process.getrusage(process.RUSAGE_SELF)
        lines += [
            "# HELP shoal_storage_revision The newest revision that is stored.",
            "# TYPE shoal_storage_revision gauge",
            f"shoal_storage_revision {revision}",
            "# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.",
            "# TYPE process_cpu_seconds_total counter",
            f"process_cpu_seconds_total {used.ru_utime + used.ru_stime:.3f}",
            "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.",
            "# TYPE process_start_time_seconds gauge",
            f"process_start_time_seconds {self._started_s:.3f}",
            *self._more(),
            "",
        ]
        return "\n".join(lines).encode()


def _written(labels: _Labels) -> str:
    names = ("verb", "group", "version", "resource", "subresource")
    return ",".join(f'{name}="{value}"' for name, value in zip(names, labels, strict=True))


def _histogram(labels: str, found: list[float]) -> list[str]:
    name, total, lines = "apiserver_request_duration_seconds", 0.0, []
    for bound, number in zip((*_BUCKETS, "+Inf"), found, strict=False):
        total += number
        lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {total:.0f}')
    return [*lines, f"{name}_sum{{{labels}}} {found[-1]:.6f}", f"{name}_count{{{labels}}} {total:.0f}"]
