"""Measures what this machine and its running containers use, for `kubectl top` and for scrapes of the kubelet.

All are measured at a time, and a figure is the average since the measurement before; the first one of a container is
that since its start. Rejected: a measurement for each request. A rate needs two, and a scrape does not wait.
"""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from shoal.agent.kubelet.pod_on_node import PodOnNode
from shoal.agent.kubelet.runtime import Consumption, PodRuntime, RunKey
from shoal.client.clock import Clock
from shoal.units.errors import TemporaryError

_log = logging.getLogger("shoal.agent.kubelet")
_EVERY_S = 15.0
_KIB = 1024


class MeasuredUse(msgspec.Struct, frozen=True):
    cpu_milli: int
    memory_bytes: int
    cpu_s: float = 0.0
    """Until now."""


def use_since(before: Consumption, now: Consumption) -> MeasuredUse | None:
    """None if no time has passed."""
    passed_s = now.at_s - before.at_s
    if passed_s <= 0:
        return None
    milli = max(round((now.cpu_s - before.cpu_s) / passed_s * 1000), 0)
    return MeasuredUse(milli, now.memory_bytes, now.cpu_s)


class UsageOfPods:
    def __init__(self, clock: Clock, pods: Callable[[], Mapping[str, PodOnNode]], proc: Path = Path("/proc")) -> None:
        """`pods`: by uid."""
        self._clock, self._pods, self._proc = clock, pods, proc
        self._last: dict[RunKey, Consumption] = {}
        self._used: dict[RunKey, MeasuredUse] = {}
        self._machine: Consumption | None = None
        self.machine = MeasuredUse(0, 0)

    def of(self, key: RunKey) -> MeasuredUse | None:
        """None if it was not measured yet."""
        return self._used.get(key)

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await self.measure()
            await self._clock.sleep(_EVERY_S)

    async def measure(self) -> None:
        self._measure_machine()
        started: dict[RunKey, float] = {}
        keys: dict[PodRuntime, list[RunKey]] = defaultdict(list)
        for uid, pod in self._pods().items():
            for one in pod.run.containers:
                if one.is_alive:
                    key = RunKey(uid, one.name, one.restarts)
                    started[key] = one.started_s
                    keys[pod.runtime].append(key)
        found: dict[RunKey, Consumption] = {}
        for runtime, own in keys.items():
            try:
                found |= await runtime.consumption(own)
            except TemporaryError as error:
                _log.debug("the usage of pods is not measured now: %s", error)
        used = {}
        for key, now in found.items():
            one_use = use_since(self._last.get(key, Consumption(started[key], 0.0, 0)), now) or self._used.get(key)
            if one_use is not None:
                used[key] = one_use
        self._last, self._used = found, used

    def _measure_machine(self) -> None:
        now = consumption_of_machine(self._proc, self._clock.seconds())
        if self._machine is not None:
            self.machine = use_since(self._machine, now) or self.machine
        else:
            self.machine = MeasuredUse(0, now.memory_bytes, now.cpu_s)
        self._machine = now


def consumption_of_machine(proc: Path, now_s: float) -> Consumption:
    """What all processors have done, and the memory that programs have; nothing where the files are missing."""
    busy_s, memory = 0.0, 0
    with suppress(OSError, ValueError, IndexError):
        user, nice, system, _, _, *interrupts = map(int, (proc / "stat").read_text().split("\n", 1)[0].split()[1:9])
        busy_s = (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
    with suppress(OSError, ValueError, KeyError):
        lines = (line.split() for line in (proc / "meminfo").read_text().splitlines())
        kib = {words[0]: int(words[1]) for words in lines if len(words) > 1}
        memory = (kib["MemTotal:"] - kib["MemAvailable:"]) * _KIB
    return Consumption(now_s, busy_s, memory)
