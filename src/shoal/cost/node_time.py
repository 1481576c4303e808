"""Puts every moment of every part of a machine into exactly one class.

`booting` time is overhead; `not-ready` time and broken devices are unhealthy, also while a pod holds them. What a
holding has is startup until its containers run, then active or idle as its use says; without a record of its use it is
`unmeasured`. The free part of a device is fragmented where no request that waits or is usual fits there, else
unallocated; it is `unknown` while nothing was recorded. CPU and memory follow the same classes, except that their free
part is never fragmented. The sum over all classes is the price of the machine, exactly: costs are whole numbers, and
what a division leaves over goes to the last class of its sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

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
CLASSES: tuple[TimeClass, ...] = get_args(TimeClass)
ACTIVE, IDLE, UNMEASURED, STARTUP, FRAGMENTED, UNALLOCATED, UNHEALTHY, OVERHEAD, UNKNOWN = range(len(CLASSES))
GPU, CPU, MEMORY, GPU_TIME, USED = range(5)
"""The fields of a sum: cost times share of the GPUs, the CPUs, the memory; time times share; used cost times share."""


class Shape(NamedTuple):
    """What the shares of each part of a machine add up to; sums of machines of one shape can be added."""

    gpu: int
    cpu: int
    memory: int


def shape_of(machine: Machine) -> Shape:
    return Shape(FULL_SHARE * len(machine.devices) or 1, machine.cpu_milli or 1, machine.memory_mib or 1)


Sums = dict[tuple[str, int, int], list[int]]
"""By group, day and class: costs of a machine's price times shares."""


class GroupedHolding(NamedTuple):
    holding: Holding
    group: str


class _Held:
    """A holding on the machine at hand."""

    __slots__ = ("cpu", "end", "group", "is_overhead", "memory", "running", "shares", "start", "uses")

    def __init__(self, given: GroupedHolding, machine: Machine, start_ms: int, end_ms: int) -> None:
        holding = given.holding
        self.group = given.group
        self.is_overhead = holding.holder.is_overhead
        self.start = max(holding.start_ms, start_ms)
        self.end = end_ms if holding.end_ms is None else min(holding.end_ms, end_ms)
        self.running = self.end if holding.running_ms is None else holding.running_ms
        indexes = {device: at for at, device in enumerate(machine.devices)}
        self.shares = [(indexes[one.device], one.share) for one in holding.devices if one.device in indexes]
        self.cpu, self.memory = holding.cpu_milli, holding.memory_mib
        self.uses = sorted(holding.uses, key=lambda use: use.start_ms)


_Parts = tuple[int, int, int]
"""Shares of the GPUs, the CPUs and the memory."""


class _NodeState(NamedTuple):
    """The parts of a machine between two changes of what is held, broken, wanted or recorded."""

    held: list[tuple[_Held, _Parts]]
    others: list[tuple[int, _Parts]]
    """Classes of what no pod holds."""


class NodeTime:
    """Adds the classes of one machine over a window to `sums`; `days` are the moments at which its days begin."""

    def __init__(
        self, machine: Machine, holdings: Iterable[GroupedHolding], curve: PriceCurve, days: Sequence[int], end_ms: int
    ) -> None:
        self._machine = machine
        self._curve = curve
        self._days = days
        self._end = end_ms if machine.end_ms is None else min(end_ms, machine.end_ms)
        self._start = max(machine.start_ms, days[0])
        held = (_Held(one, machine, self._start, self._end) for one in holdings)
        self._held = sorted((one for one in held if one.start < one.end), key=lambda one: one.start)

    def add_to(self, sums: Sums, free_group: str, wanted: Sequence[WantedRequest], gaps: Sequence[Span]) -> None:
        if self._start >= self._end:
            return
        changes = self._changes(wanted, gaps)
        cuts = self._cuts(changes)
        day, upcoming, active = 0, 0, list[_Held]()
        state = _NodeState([], [])
        for start, end in pairwise(cuts):
            while day + 1 < len(self._days) and self._days[day + 1] <= start:
                day += 1
            if start in changes:
                active = [one for one in active if one.end > start]
                while upcoming < len(self._held) and self._held[upcoming].start <= start:
                    active.append(self._held[upcoming])
                    upcoming += 1
                state = self._state(start, active, wanted, gaps)
            cost, length = self._curve.units(start, end), end - start
            for held, parts in state.held:
                _add_held(sums, held, day, start, (cost, length), parts)
            for kind, parts in state.others:
                _add(sums, (free_group, day, kind), cost, length, parts)

    def _changes(self, wanted: Iterable[WantedRequest], gaps: Iterable[Span]) -> set[int]:
        machine = self._machine
        found: set[int | None] = {self._start, self._end}
        for held in self._held:
            found.update((held.start, held.end))
        for spans in (machine.conditions, machine.broken, wanted, gaps):
            for span in spans:
                found.update((span.start_ms, span.end_ms))
        return {at for at in found if at is not None and self._start <= at <= self._end}

    def _cuts(self, changes: set[int]) -> list[int]:
        found = {*changes, *self._days}
        for held in self._held:
            found.add(held.running)
            for use in held.uses:
                found.update((use.start_ms, use.end_ms))
        return sorted(at for at in found if self._start <= at <= self._end)

    def _state(
        self, at: int, active: Sequence[_Held], wanted: Sequence[WantedRequest], gaps: Sequence[Span]
    ) -> _NodeState:
        machine = self._machine
        whole = shape_of(machine)
        for condition in machine.conditions:
            if _covers(condition.start_ms, condition.end_ms, at):
                kind = OVERHEAD if condition.condition == "booting" else UNHEALTHY
                return _NodeState([], [(kind, whole)])
        broken = {
            machine.devices.index(one.device)
            for one in machine.broken
            if one.device in machine.devices and _covers(one.start_ms, one.end_ms, at)
        }
        free = [0 if number in broken else FULL_SHARE for number in range(len(machine.devices))]
        others: list[tuple[int, _Parts]] = []
        if broken:
            others.append((UNHEALTHY, (FULL_SHARE * len(broken), 0, 0)))
        if machine.reserved_cpu_milli or machine.reserved_memory_mib:
            others.append((OVERHEAD, (0, machine.reserved_cpu_milli, machine.reserved_memory_mib)))
        cpu, memory = whole.cpu - machine.reserved_cpu_milli, whole.memory - machine.reserved_memory_mib
        given = []
        for held in active:
            share = 0
            for number, wish in held.shares:
                part = min(wish, free[number])
                free[number] -= part
                share += part
            parts = (share, min(held.cpu, cpu), min(held.memory, memory))
            cpu -= parts[1]
            memory -= parts[2]
            given.append((held, parts))
        is_unknown = any(_covers(gap.start_ms, gap.end_ms, at) for gap in gaps)
        others += _free(free, (cpu, memory), None if is_unknown else _asked(wanted, at))
        return _NodeState(given, others)


def _add_held(sums: Sums, held: _Held, day: int, start: int, costs: tuple[int, int], parts: _Parts) -> None:
    cost, length = costs
    group = held.group
    if held.is_overhead:
        _add(sums, (group, day, OVERHEAD), cost, length, parts)
        return
    if start < held.running:
        _add(sums, (group, day, STARTUP), cost, length, parts)
        return
    for use in held.uses:
        if use.start_ms <= start < use.end_ms:
            busy, busy_length = cost * use.active_ppm // PPM, length * use.active_ppm // PPM
            if use.active_ppm:
                found = _add(sums, (group, day, ACTIVE), busy, busy_length, parts)
                found[USED] += cost * use.used_ppm // PPM * parts[0]
            if use.active_ppm < PPM:
                _add(sums, (group, day, IDLE), cost - busy, length - busy_length, parts)
            return
    _add(sums, (group, day, UNMEASURED), cost, length, parts)


def _add(sums: Sums, key: tuple[str, int, int], cost: int, length: int, parts: _Parts) -> list[int]:
    gpu, cpu, memory = parts
    found = sums.get(key)
    if found is None:
        found = sums[key] = [cost * gpu, cost * cpu, cost * memory, length * gpu, 0]
        return found
    found[GPU] += cost * gpu
    found[CPU] += cost * cpu
    found[MEMORY] += cost * memory
    found[GPU_TIME] += length * gpu
    return found


def _asked(wanted: Iterable[WantedRequest], at_ms: int) -> list[WantedRequest]:
    return [one for one in wanted if _covers(one.start_ms, one.end_ms, at_ms)]


def _free(
    free: Sequence[int], left: tuple[int, int], asked: Sequence[WantedRequest] | None
) -> Iterator[tuple[int, _Parts]]:
    """Classes of the free parts. `left`: of CPU and memory; `asked`: None where nothing was recorded."""
    cpu, memory = left
    total = sum(free)
    if asked is None:
        yield UNKNOWN, (total, cpu, memory)
        return
    usable = usable_share(free, cpu, memory, asked) if asked and total else total
    if usable or cpu or memory:
        yield UNALLOCATED, (usable, cpu, memory)
    if total > usable:
        yield FRAGMENTED, (total - usable, 0, 0)


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
