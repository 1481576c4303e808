"""Reads process metrics from the operating system, with the names of Prometheus' client libraries."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from shoal.prometheus.families import MetricHead, Values
from shoal.prometheus.registry import Registry

_SELF = Path("/proc/self")
_LATEST = resource.RLIM_INFINITY


def measure_process(registry: Registry, version: str, started_s: float) -> None:
    """`started_s`: seconds since the epoch. Metrics that the operating system does not provide are left out."""
    rows: tuple[tuple[MetricHead, Callable[[], float | None]], ...] = (
        (
            MetricHead("counter", "process_cpu_seconds_total", "Time on processors, user and system, in seconds."),
            _cpu_s,
        ),
        (MetricHead("gauge", "process_resident_memory_bytes", "Memory that is held, in bytes."), _resident_bytes),
        (MetricHead("gauge", "process_virtual_memory_bytes", "Addresses in use, in bytes."), _virtual_bytes),
        (MetricHead("gauge", "process_open_fds", "Open files and connections."), _open_files),
        (MetricHead("gauge", "process_max_fds", "How many files and connections may be open."), _most_files),
        (MetricHead("gauge", "process_start_time_seconds", "When it was started, since the epoch."), lambda: started_s),
    )
    for head, look in rows:
        registry.reads(head, partial(_one, look))
    info = MetricHead("gauge", "shoal_build_info", "Always 1; the label says which version runs.", ("version",))
    registry.reads(info, lambda: [((version,), 1.0)])


def _one(look: Callable[[], float | None]) -> Iterator[tuple[Values, float]]:
    number = look()
    if number is not None:
        yield (), number


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _pages(field: int) -> float | None:
    try:
        return float(int((_SELF / "statm").read_text().split()[field]) * resource.getpagesize())
    except (OSError, ValueError, IndexError):
        return None


def _resident_bytes() -> float | None:
    return _pages(1)


def _virtual_bytes() -> float | None:
    return _pages(0)


def _open_files() -> float | None:
    try:
        return float(sum(1 for _ in (_SELF / "fd").iterdir()))
    except OSError:
        return None


def _most_files() -> float | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == _LATEST else float(soft)
