"""Counts for one GPU how long pods held it, how long it was active, and how long its clocks were reduced.

Time without readings adds to no activity: it is unknown, as while a call of the driver did not return. Allocated and
active time are weighted by the part of the GPU, so that their quotient is the utilization of what pods hold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import inf
from typing import Generic, TypeVar

from shoal.devices.port import GpuReadings, InstalledGpu

K = TypeVar("K", int, str)
_STEPS = 300


class GpuAccount:
    def __init__(self, longest_s: float = inf) -> None:
        """`longest_s`: after a longer time between two readings it is unknown what the GPU did."""
        self._longest_s = longest_s
        self.allocated_s = 0.0
        self.active_s: float | None = None
        """None: the GPU does not report its activity."""
        self.throttled_s: dict[str, float] = {}
        self.idle_since_s: float | None = None
        """None: it is active, or its activity is unknown."""
        self.is_active = False
        self._last_s: float | None = None

    def add(self, at_s: float, allocated: float, readings: GpuReadings | None) -> None:
        """Count the time since the last call as if the GPU had been the whole time as it is now."""
        passed = 0.0 if self._last_s is None else max(at_s - self._last_s, 0.0)
        self._last_s = at_s
        self.allocated_s += allocated * passed
        if passed > self._longest_s:
            passed = 0.0
        activity = None if readings is None else activity_of(readings)
        self.is_active = bool(activity)
        if activity is None or activity > 0:
            self.idle_since_s = None
        elif self.idle_since_s is None:
            self.idle_since_s = at_s
        if activity is not None:
            self.active_s = (self.active_s or 0.0) + activity * passed
        reasons = () if readings is None or readings.throttle_reasons is None else readings.throttle_reasons
        for reason in reasons:
            self.throttled_s[reason] = self.throttled_s.get(reason, 0.0) + passed

    def idle_s(self, now_s: float) -> float | None:
        """How long nothing has run; None if that is unknown."""
        if self.is_active:
            return 0.0
        return None if self.idle_since_s is None else max(now_s - self.idle_since_s, 0.0)


def activity_of(readings: GpuReadings) -> float | None:
    """The part of the time in which the GPU was busy, 0 to 1."""
    if readings.util_percent is not None:
        return readings.util_percent / 100
    return None if readings.profiling is None else readings.profiling.graphics


def allocated_part(gpu: InstalledGpu, is_held: Mapping[str, bool]) -> float:
    """The part of a GPU that pods hold, 0 to 1: by memory for MIG instances. A shared GPU counts as a whole one.

    `is_held`: by the UUID of the GPU and of its MIG devices.
    """
    if is_held.get(gpu.uuid) or not gpu.is_mig:
        return float(is_held.get(gpu.uuid, False))
    sizes = {one.uuid: one.memory_mib or 1 for one in gpu.instances}
    held = sum(size for uuid, size in sizes.items() if is_held.get(uuid))
    return held / sum(sizes.values()) if sizes else 0.0


class RecentEvents(Generic[K]):
    """Counts events of the last time window, by what they are. Events of one kind within a 300th of the window have one
    time, so that any number of them has a bounded size.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._events: dict[K, deque[tuple[float, int]]] = {}
        """The time and number of each kind's events."""

    def __len__(self) -> int:
        """The number of entries that are kept."""
        return sum(map(len, self._events.values()))

    def add(self, at_s: float, what: K) -> None:
        self._drop(at_s)
        found = self._events.setdefault(what, deque())
        last_s, count = found[-1] if found else (-inf, 0)
        if at_s - last_s < self._window_s / _STEPS:
            found[-1] = last_s, count + 1
        else:
            found.append((at_s, 1))

    def counts(self, now_s: float) -> dict[K, int]:
        self._drop(now_s)
        return {what: sum(count for _, count in found) for what, found in self._events.items()}

    def _drop(self, now_s: float) -> None:
        for found in self._events.values():
            while found and found[0][0] < now_s - self._window_s:
                found.popleft()
        self._events = {what: found for what, found in self._events.items() if found}
