"""Measures queue admission: Kueue's own loads in virtual time, and a cycle in which nothing has changed.

Counted is processor time of the process from the first workload told to the last one finished: lines, cycles, flavors,
topology, victims, quota given back, and the simulation around them. Queue use and waits are of virtual time, in which a
decision takes none; Kueue's figures beside them are of a wall clock and hold its API calls as well. Use is Kueue's: of
each cluster queue what was held over what it has, mean from its first workload to its last end, and of all queues the
least; work that is lost to preemption counts as use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from statistics import mean
from time import process_time

import msgspec
from msgspec import structs

from shoal.sim.queue_life import Batch, QueueLife
from shoal.sim.queue_load import LoadBounds, QueueLoad, published_loads
from shoal.units.errors import BugError

IDLE_WAITING = 50_000
IDLE_ROUNDS = 200
IDLE_BAR_MS = 5.0
_FOREVER_MS = 10**12
_NO_BOUNDS = LoadBounds()


class LoadFigures(msgspec.Struct, frozen=True):
    """One load, lived through."""

    load: str
    workloads: int
    cpu_s: float
    workloads_per_s: float
    batches: int
    cycles: int
    admissions: int
    preemptions: int
    makespan_s: float
    use_percent: float
    wait_ms: dict[str, float]
    """Kind of work -> mean time from creation to admission."""


class QueueFigures(msgspec.Struct, frozen=True):
    """What `shoal bench queues` prints."""

    loads: tuple[LoadFigures, ...]
    idle_ms: float
    idle_waiting: int


class BenchFigure(msgspec.Struct, frozen=True):
    """One figure beside its bar, and beside Kueue's."""

    title: str
    measured: float
    unit: str = ""
    least: float | None = None
    most: float | None = None
    kueue: float | None = None

    @property
    def is_met(self) -> bool:
        return (self.least is None or self.measured >= self.least) and (self.most is None or self.measured <= self.most)


def run(progress: Callable[[str], None], seed: int = 7, *, out_of_step: bool = False) -> QueueFigures:
    """All figures; about a minute."""
    loads = []
    for load in published_loads().values():
        progress(f"{load.name}: {load.workloads:,} workloads in {load.cohorts * load.queues:,} queues")
        loads.append(measure(load, seed, out_of_step=out_of_step))
    progress(f"a round with {IDLE_WAITING:,} waiting and nothing new")
    waiting, idle_s = idle_round(crowded(published_loads()["large-scale"]), IDLE_ROUNDS)
    if waiting < IDLE_WAITING:
        raise BugError(f"{waiting} workloads wait, not {IDLE_WAITING}")
    return QueueFigures(tuple(loads), round(1000 * idle_s, 4), waiting)


def measure(load: QueueLoad, seed: int, *, out_of_step: bool = False) -> LoadFigures:
    """A load from its first workload to its last end."""
    life = QueueLife(load, seed, out_of_step=out_of_step)
    begin = process_time()
    batches = life.run()
    return figures_of(life, batches, process_time() - begin)


def figures_of(life: QueueLife, batches: Iterable[Batch], cpu_s: float) -> LoadFigures:
    """The figures of a finished run. Workloads that are left can never be admitted."""
    left = sum(not job.is_done for job in life.jobs.values())
    if left:
        raise BugError(f"{left} workloads of the load {life.load.name} never finished")
    count = cycles = admissions = preemptions = 0
    for batch in batches:
        count += 1
        cycles += len(batch.cycles)
        admissions += sum(len(decisions.admitted) for decisions in batch.cycles)
        preemptions += sum(len(decisions.preempted) for decisions in batch.cycles)
    waits: dict[str, list[int]] = defaultdict(list)
    for job in life.jobs.values():
        waits[job.arrival.work.name].append(job.wait_ms)
    return LoadFigures(
        load=life.load.name,
        workloads=len(life.jobs),
        cpu_s=round(cpu_s, 3),
        workloads_per_s=round(len(life.jobs) / cpu_s) if cpu_s else 0,
        batches=count,
        cycles=cycles,
        admissions=admissions,
        preemptions=preemptions,
        makespan_s=max((job.end_ms for job in life.jobs.values()), default=0) / 1000,
        use_percent=round(100 * min(_use_by_queue(life).values(), default=0.0), 2),
        wait_ms={work.name: round(mean(waits[work.name]), 1) for work in life.load.work if waits[work.name]},
    )


def _use_by_queue(life: QueueLife) -> dict[str, float]:
    """Cluster queue -> mean of used over nominal while it had anything to do."""
    spans: dict[str, tuple[int, int]] = {}
    for job in life.jobs.values():
        first, last = spans.get(job.queue, (job.arrival.at_ms, job.end_ms))
        spans[job.queue] = (min(first, job.arrival.at_ms), max(last, job.end_ms))
    nominal = life.load.quota.nominal_milli
    return {
        queue: life.used_milli_ms[queue] / (nominal * (last - first))
        for queue, (first, last) in spans.items()
        if last > first
    }


def crowded(load: QueueLoad) -> QueueLoad:
    """The same with all workloads present from the start and none ever finished; a tenth more of each kind, for some
    hold quota and do not wait."""
    work = tuple(
        structs.replace(each, count=each.count + -(-each.count // 10), every_ms=0, runtime_ms=_FOREVER_MS)
        for each in load.work
    )
    return structs.replace(load, work=work)


def idle_round(load: QueueLoad, rounds: int) -> tuple[int, float]:
    """How many wait once all that can be decided is, and processor seconds of the slowest round after that."""
    life = QueueLife(load)
    batch = life.batch(0)
    while not all(decisions.is_quiet for decisions in batch.cycles):
        batch = life.batch(life.now_ms + 1)
    waiting = sum(1 for _ in life.kueue.states())
    seconds = []
    for number in range(rounds):
        begin = process_time()
        life.kueue.run(life.now_ms / 1000 + number)
        seconds.append(process_time() - begin)
    return waiting, max(seconds)


def tables_of(figures: QueueFigures) -> Iterator[tuple[str, list[BenchFigure]]]:
    """Title and rows, load by load."""
    loads = published_loads()
    for each in figures.loads:
        load = loads[each.load]
        yield f"{load.name}: {load.workloads:,} workloads, {load.cohorts * load.queues:,} queues", rows_of(each, load)
    title = f"a round, {figures.idle_waiting:,} waiting and nothing new"
    yield "idle", [BenchFigure(title, figures.idle_ms, " ms", most=IDLE_BAR_MS)]


def rows_of(figures: LoadFigures, load: QueueLoad) -> list[BenchFigure]:
    """A load's figures, each beside its bar and beside what Kueue measured where it did."""
    bounds, kueue = load.bounds or _NO_BOUNDS, load.kueue or _NO_BOUNDS
    wall_s = _seconds(kueue.wall_ms)
    rate = None if wall_s is None else load.workloads / wall_s
    rows = [
        BenchFigure("processor time, every decision", figures.cpu_s, " s", most=load.bar_cpu_s, kueue=wall_s),
        BenchFigure("workloads a second", figures.workloads_per_s, kueue=rate),
        BenchFigure("batches", figures.batches),
        BenchFigure("cycles", figures.cycles),
        BenchFigure("admissions", figures.admissions),
        BenchFigure("preemptions", figures.preemptions),
        BenchFigure("all finished after", figures.makespan_s, " s", most=_seconds(bounds.wall_ms), kueue=wall_s),
        BenchFigure(
            "use of the queue used least", figures.use_percent, " %", bounds.use_percent, kueue=kueue.use_percent
        ),
    ]
    for name, wait_ms in figures.wait_ms.items():
        most, theirs = _seconds(bounds.wait_ms.get(name)), _seconds(kueue.wait_ms.get(name))
        rows.append(BenchFigure(f"mean wait, {name}", wait_ms / 1000, " s", most=most, kueue=theirs))
    return rows


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
