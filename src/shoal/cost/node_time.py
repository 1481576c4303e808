"""Puts every moment of every part of a machine into exactly one class.

`booting` time is overhead; `not-ready` time and broken devices are unhealthy, also while a pod holds them. What a
holding has is startup until its containers run, then active or idle as its use says; without a record of its use it is
`unmeasured`. The free part of a device is fragmented where no request that waits or is usual fits there, else
unallocated; it is `unknown` while nothing was recorded. CPU and memory follow the same classes, except that their free
part is never fragmented. The sum over all classes is the price of the machine, exactly: costs are whole numbers, and
what a division leaves over goes to the last class of its sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from shoal.cost.price_curves import PriceCurve
from shoal.cost.records import FULL_SHARE, PPM, Holding, Machine, Span, WantedRequest

TimeClass = Literal[
    "allocated-active",
    "allocated-idle",
    "allocated-unmeasured",
    "startup",
    "fragmented",
    "unallocated",
    "unhealthy",
    "overhead",
    "unknown",
]
CLASSES: tuple[TimeClass, ...] = (
    "allocated-active",
    "allocated-idle",
    "allocated-unmeasured",
    "startup",
    "fragmented",
    "unallocated",
    "unhealthy",
    "overhead",
    "unknown",
)
ACTIVE, IDLE, UNMEASURED, STARTUP, FRAGMENTED, UNALLOCATED, UNHEALTHY, OVERHEAD, UNKNOWN = range(len(CLASSES))
NO_HOLDER = -1
GPU, CPU, MEMORY, GPU_TIME, USED = range(5)
"""The fields of a sum: cost times share of the GPUs, the CPUs, the memory; time times share; used cost times share."""


class NodeSums(NamedTuple):
    """By holding (its number, or NO_HOLDER), class and day: costs in units of the machine's price times shares."""

    gpu_whole: int
    cpu_whole: int
    memory_whole: int
    """What the shares of each part add up to."""
    sums: dict[tuple[int, int, int], list[int]]


class _Held:
    """A holding on the machine at hand."""

    __slots__ = ("cpu", "end", "holding", "memory", "number", "running", "share", "shares", "start", "uses")

    def __init__(self, number: int, holding: Holding, machine: Machine, end_ms: int) -> None:
        self.number = number
        self.holding = holding
        self.start = max(holding.start_ms, machine.start_ms)
        self.end = end_ms if holding.end_ms is None else min(holding.end_ms, end_ms)
        self.running = self.end if holding.running_ms is None else holding.running_ms
        indexes = {device: at for at, device in enumerate(machine.devices)}
        self.shares = [(indexes[one.device], one.share) for one in holding.devices if one.device in indexes]
        self.share = sum(share for _, share in self.shares)
        self.cpu, self.memory = holding.cpu_milli, holding.memory_mib
        self.uses = sorted(holding.uses, key=lambda use: use.start_ms)


class NodeTime:
    """The sums of one machine over a window; `days` are the moments at which the days of the window begin."""

    def __init__(
        self,
        machine: Machine,
        holdings: Iterable[tuple[int, Holding]],
        curve: PriceCurve,
        days: Sequence[int],
        end_ms: int,
    ) -> None:
        self._machine = machine
        self._curve = curve
        self._days = days
        self._end = end_ms if machine.end_ms is None else min(end_ms, machine.end_ms)
        self._start = max(machine.start_ms, days[0])
        self._held = [_Held(number, holding, machine, self._end) for number, holding in holdings]
        self._gpu_whole = FULL_SHARE * len(machine.devices)
        self.sums: dict[tuple[int, int, int], list[int]] = {}

    def counted(self, wanted: Sequence[WantedRequest], gaps: Sequence[Span]) -> NodeSums:
        machine = self._machine
        if self._start < self._end:
            self._sweep(wanted, gaps)
        return NodeSums(self._gpu_whole or 1, machine.cpu_milli or 1, machine.memory_mib or 1, self.sums)

    def _sweep(self, wanted: Sequence[WantedRequest], gaps: Sequence[Span]) -> None:
        order = sorted((one for one in self._held if one.end > self._start), key=lambda one: one.start)
        cuts = self._cuts(order, wanted, gaps)
        day, upcoming, active = 0, 0, list[_Held]()
        for start, end in pairwise(cuts):
            while day + 1 < len(self._days) and self._days[day + 1] <= start:
                day += 1
            while upcoming < len(order) and order[upcoming].start <= start:
                active.append(order[upcoming])
                upcoming += 1
            active = [one for one in active if one.end > start]
            self._segment(start, end, day, active, wanted, gaps)

    def _cuts(self, order: Iterable[_Held], wanted: Iterable[WantedRequest], gaps: Iterable[Span]) -> list[int]:
        machine = self._machine
        found: set[int | None] = {self._start, self._end, *self._days}
        for one in order:
            found.update((one.start, one.running, one.end))
            for use in one.uses:
                found.update((use.start_ms, use.end_ms))
        for spans in (machine.conditions, machine.broken, wanted, gaps):
            for span in spans:
                found.update((span.start_ms, span.end_ms))
        return sorted(at for at in found if at is not None and self._start <= at <= self._end)

    def _segment(
        self,
        start: int,
        end: int,
        day: int,
        active: Sequence[_Held],
        wanted: Sequence[WantedRequest],
        gaps: Sequence[Span],
    ) -> None:
        machine, length = self._machine, end - start
        cost = self._curve.units(start, end)
        for condition in machine.conditions:
            if _covers(condition.start_ms, condition.end_ms, start):
                whole = OVERHEAD if condition.condition == "booting" else UNHEALTHY
                parts = (self._gpu_whole, machine.cpu_milli or 1, machine.memory_mib or 1)
                self._add(NO_HOLDER, whole, day, (cost, length), parts)
                return
        broken = {
            machine.devices.index(one.device)
            for one in machine.broken
            if one.device in machine.devices and _covers(one.start_ms, one.end_ms, start)
        }
        free = [0 if at in broken else FULL_SHARE for at in range(len(machine.devices))]
        if broken:
            self._add(NO_HOLDER, UNHEALTHY, day, (cost, length), (FULL_SHARE * len(broken), 0, 0))
        cpu_left = (machine.cpu_milli or 1) - machine.reserved_cpu_milli
        memory_left = (machine.memory_mib or 1) - machine.reserved_memory_mib
        for held in active:
            share = 0
            for at, wish in held.shares:
                given = min(wish, free[at])
                free[at] -= given
                share += given
            cpu, memory = min(held.cpu, cpu_left), min(held.memory, memory_left)
            cpu_left -= cpu
            memory_left -= memory
            self._holding(held, start, day, (cost, length), (share, cpu, memory))
        reserved = (0, machine.reserved_cpu_milli, machine.reserved_memory_mib)
        if any(reserved):
            self._add(NO_HOLDER, OVERHEAD, day, (cost, length), reserved)
        self._free(start, day, (cost, length), (free, cpu_left, memory_left), wanted, gaps)

    def _holding(self, held: _Held, start: int, day: int, at: tuple[int, int], parts: tuple[int, int, int]) -> None:
        if held.holding.holder.is_overhead:
            self._add(held.number, OVERHEAD, day, at, parts)
        elif start < held.running:
            self._add(held.number, STARTUP, day, at, parts)
        else:
            for use in held.uses:
                if use.start_ms <= start < use.end_ms:
                    cost, length = at
                    busy = cost * use.active_ppm // PPM, length * use.active_ppm // PPM
                    if use.active_ppm:
                        self._add(held.number, ACTIVE, day, busy, parts)
                        used = self.sums[held.number, ACTIVE, day]
                        used[USED] += cost * use.used_ppm // PPM * parts[0]
                    if use.active_ppm < PPM:
                        self._add(held.number, IDLE, day, (cost - busy[0], length - busy[1]), parts)
                    return
            self._add(held.number, UNMEASURED, day, at, parts)

    def _free(
        self,
        start: int,
        day: int,
        at: tuple[int, int],
        left: tuple[list[int], int, int],
        wanted: Sequence[WantedRequest],
        gaps: Sequence[Span],
    ) -> None:
        free, cpu, memory = left
        if any(_covers(gap.start_ms, gap.end_ms, start) for gap in gaps):
            self._add(NO_HOLDER, UNKNOWN, day, at, (sum(free), cpu, memory))
            return
        usable = sum(free)
        if usable and wanted:
            asked = [one for one in wanted if _covers(one.start_ms, one.end_ms, start)]
            usable = usable_share(free, cpu, memory, asked) if asked else usable
        if usable or cpu or memory:
            self._add(NO_HOLDER, UNALLOCATED, day, at, (usable, cpu, memory))
        if fragments := sum(free) - usable:
            self._add(NO_HOLDER, FRAGMENTED, day, at, (fragments, 0, 0))

    def _add(self, number: int, kind: int, day: int, at: tuple[int, int], parts: tuple[int, int, int]) -> None:
        cost, length = at
        gpu, cpu, memory = parts
        found = self.sums.get((number, kind, day))
        if found is None:
            self.sums[number, kind, day] = [cost * gpu, cost * cpu, cost * memory, length * gpu, 0]
            return
        found[GPU] += cost * gpu
        found[CPU] += cost * cpu
        found[MEMORY] += cost * memory
        found[GPU_TIME] += length * gpu


def usable_share(free: Sequence[int], cpu_milli: int, memory_mib: int, wanted: Iterable[WantedRequest]) -> int:
    """The free share of all devices that some request can use, with the CPU and memory that are free beside it."""
    whole = sum(1 for share in free if share == FULL_SHARE)
    use_whole, least = False, FULL_SHARE + 1
    for one in wanted:
        if one.cpu_milli > cpu_milli or one.memory_mib > memory_mib:
            continue
        if one.gpus:
            use_whole = use_whole or one.gpus <= whole
        elif one.share:
            least = min(least, one.share)
    return sum(share for share in free if share >= least or (use_whole and share == FULL_SHARE))


def _covers(start_ms: int | None, end_ms: int | None, at_ms: int) -> bool:
    return (start_ms is None or start_ms <= at_ms) and (end_ms is None or at_ms < end_ms)
